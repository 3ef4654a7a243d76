// Internal.
// Handlers that do anything a handler may do, at any time, drawn at random: plain ones that go on in callbacks, timers and
// posted functions, and coroutines that await several things at once. They keep to what is written for their callers:
// one read and one write at a time, and nothing after `done`. Owned by one test; its thread alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine_fixture.h"

namespace penstock::test {

struct StormAgent;

// What the handlers of one world share.
struct StormWeather {
    std::mt19937 random{};
    // What a callback holds answers, ends or aborts when it is destroyed.
    bool destructors_act = false;
    int depth = 0;
    std::vector<std::weak_ptr<StormAgent>> agents{};
    std::map<const Request*, std::weak_ptr<StormAgent>> by_request{};

    // Below `limit`. Raw numbers of the generator, which the standard fixes.
    std::uint32_t draw(std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); }
    [[nodiscard]] bool one_in(std::uint32_t count) { return draw(count) == 0; }
};

// "/s/:id" plain with its body in pieces, "/p/:id" plain, "/c/:id" a coroutine, "/k/:id" answers at once. Answers that are
// whole carry the id as X-Id. The weather outlives the router.
Router storm_handlers(StormWeather& weather);

// Timers hold no agent, but an agent holds its timers.
void stop_storm_timers(StormWeather& weather);

}  // namespace penstock::test
