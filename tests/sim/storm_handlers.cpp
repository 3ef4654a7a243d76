#include "storm_handlers.h"

#include <functional>
#include <stdexcept>
#include <utility>

namespace penstock::test {
namespace {

constexpr std::uint32_t kLongWriteBytes = 200'000;
constexpr std::uint32_t kShortWriteBytes = 300;
// Of acts within destructors of what acts.
constexpr int kDepthLimit = 3;
constexpr std::size_t kTimersPerAgent = 4;

std::string_view storm_data(std::size_t size) {
    static const std::string data(kLongWriteBytes, 'd');
    return std::string_view(data).substr(0, size);
}

}  // namespace

// One request and what its handler may still do with it.
struct StormAgent : std::enable_shared_from_this<StormAgent> {
    StormWeather& weather;
    Request& request;
    Response& response;
    const std::string id;
    DeferredResponse later{};
    bool deferred = false;
    bool alive = true;  // until `done`
    bool reading = false;
    bool writing = false;
    std::vector<std::unique_ptr<Timer>> timers{};

    StormAgent(StormWeather& shared, Request& from, Response& to)
        : weather(shared), request(from), response(to), id(from.parameter("id")) {}

    void act(std::uint32_t times, bool may_throw = true);
    void act_rashly();

private:
    void read();
    void write();
    void send();
    void start_timer();
    void post();
};

namespace {

// Held by callbacks; acts when they are destroyed, where the weather is so.
class Remains {
public:
    explicit Remains(std::shared_ptr<StormAgent> agent) : agent_(std::move(agent)) {}
    Remains(const Remains&) = delete;
    Remains& operator=(const Remains&) = delete;
    ~Remains() {
        StormWeather& weather = agent_->weather;
        if (weather.destructors_act && agent_->alive && weather.depth < kDepthLimit && weather.one_in(3)) {
            ++weather.depth;
            agent_->act_rashly();
            --weather.depth;
        }
    }

private:
    std::shared_ptr<StormAgent> agent_;
};

// True for as long as a coroutine waits, also when it is destroyed there.
class Mark {
public:
    explicit Mark(bool& flag) : flag_(flag) { flag_ = true; }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    ~Mark() { flag_ = false; }

private:
    bool& flag_;
};

std::uint32_t draw_size(StormWeather& weather) {
    const std::uint32_t most = weather.one_in(5) ? kLongWriteBytes : kShortWriteBytes;
    return weather.draw(most);
}

std::shared_ptr<StormAgent> make_agent(StormWeather& weather, Request& request, Response& response) {
    auto agent = std::make_shared<StormAgent>(weather, request, response);
    weather.agents.push_back(agent);
    weather.by_request[&request] = agent;
    return agent;
}

}  // namespace

// ---- Plain handlers ------------------------------------------------------------------------------------

void StormAgent::act(std::uint32_t times, bool may_throw) {
    for (std::uint32_t i = 0; i < times && alive; ++i) {
        switch (weather.draw(16)) {
            case 0:
            case 1:
            case 2: read(); break;
            case 3:
            case 4:
            case 5: write(); break;
            case 6: send(); break;
            case 7:
                if (response.streaming() || weather.one_in(8)) {
                    response.end();
                }
                break;
            case 8:
                if (weather.one_in(3)) {
                    response.abort();
                }
                break;
            case 9:
            case 10:
                if (!std::exchange(deferred, true)) {
                    later = response.defer();
                }
                break;
            case 11:
                if (may_throw && weather.one_in(4)) {
                    throw std::runtime_error("the storm");
                }
                break;
            case 12: start_timer(); break;
            case 13: post(); break;
            case 14:
                if (!response.answered() && weather.one_in(4)) {
                    response.content_length(weather.draw(400));
                }
                break;
            default:
                if (weather.one_in(3)) {
                    response.on_abort([self = shared_from_this()] { self->act_rashly(); });
                }
                break;
        }
    }
}

// What needs no turn of its own and throws nothing: for destructors and hooks.
void StormAgent::act_rashly() {
    if (!weather.destructors_act) {
        return;
    }
    switch (weather.draw(4)) {
        case 0: response.send("rash"); break;
        case 1: response.abort(); break;
        case 2: response.end(); break;
        default: break;
    }
}

void StormAgent::read() {
    if (reading || response.complete()) {
        return;
    }
    reading = true;
    request.read([self = shared_from_this(), remains = std::make_shared<Remains>(shared_from_this())](std::string_view piece) {
        self->reading = false;
        CHECK(piece.find('\0') == std::string_view::npos);  // looks at every byte, for AddressSanitizer
        self->act(self->weather.draw(3));
    });
}

void StormAgent::write() {
    if (writing || response.complete()) {
        return;
    }
    writing = true;
    response.write(storm_data(draw_size(weather)),
                   [self = shared_from_this(), remains = std::make_shared<Remains>(shared_from_this())] {
                       self->writing = false;
                       self->act(self->weather.draw(3));
                   });
}

void StormAgent::send() {
    if (!response.answered()) {
        const std::uint32_t most = weather.one_in(4) ? 150'000 : 50;
        response.header("X-Id", id).send(std::string(weather.draw(most), 's'));
    }
}

void StormAgent::start_timer() {
    if (!deferred || timers.size() == kTimersPerAgent) {
        return;
    }
    timers.push_back(std::make_unique<Timer>());
    timers.back()->start(weather.draw(3'000), [weak = weak_from_this()] {
        const std::shared_ptr<StormAgent> self = weak.lock();
        if (self && self->alive && self->later.get() == &self->response) {
            self->act(1 + self->weather.draw(3), false);
        }
    });
}

void StormAgent::post() {
    if (deferred) {
        (void)later.post([self = shared_from_this()](Response& answer) {
            CHECK(&answer == &self->response);
            self->act(1 + self->weather.draw(3));
        });
    }
}

// ---- Coroutines ----------------------------------------------------------------------------------------

namespace {

Task<void> read_in_task(std::shared_ptr<StormAgent> agent) {
    if (agent->reading) {
        co_return;
    }
    const Mark mark(agent->reading);
    if (!agent->weather.one_in(3)) {
        (void)co_await agent->request.read();
        co_return;
    }
    const std::string_view body = co_await agent->request.read_all();
    const std::size_t nulls = co_await offload([body] { return body.find('\0'); });  // reads it all
    CHECK(nulls == std::string_view::npos);
}

Task<void> write_in_task(std::shared_ptr<StormAgent> agent) {
    if (!agent->writing) {
        const Mark mark(agent->writing);
        co_await agent->response.write(storm_data(draw_size(agent->weather)));
    }
}

// The function has a view into the request, which nobody else's bytes may come to stand in.
Task<void> offload_in_task(std::shared_ptr<StormAgent> agent) {
    const std::string_view key = agent->request.header("X-Key");
    const std::string seen = co_await offload([key] { return std::string(key); });
    CHECK(seen == "key-of-" + agent->id);
}

void act_in_task(StormAgent& agent) {
    StormWeather& weather = agent.weather;
    switch (weather.draw(4)) {
        case 0:
            if (weather.one_in(2)) {
                throw std::runtime_error("the storm");
            }
            break;
        case 1:
            if (weather.one_in(2)) {
                agent.response.abort();
            }
            break;
        case 2:
            if (!agent.response.answered()) {
                agent.response.header("X-Id", agent.id).send("task");
            }
            break;
        default:
            if (!std::exchange(agent.deferred, true)) {
                agent.later = agent.response.defer();
            }
            break;
    }
}

Task<void> step_in_task(std::shared_ptr<StormAgent> agent, std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i) {
        switch (agent->weather.draw(9)) {
            case 0:
            case 1: co_await read_in_task(agent); break;
            case 2:
            case 3: co_await write_in_task(agent); break;
            case 4: co_await sleep_ms(agent->weather.draw(2'000)); break;
            case 5: co_await offload_in_task(agent); break;
            case 6:
                if (steps > 1) {
                    co_await when_all(step_in_task(agent, steps - 1), step_in_task(agent, steps - 1));
                }
                break;
            default: act_in_task(*agent); break;
        }
    }
}

void note_done(StormWeather& weather, const Request& request) {
    const auto found = weather.by_request.find(&request);
    if (found == weather.by_request.end()) {
        return;
    }
    if (const std::shared_ptr<StormAgent> agent = found->second.lock()) {
        if (weather.one_in(6)) {
            agent->act_rashly();
        }
        agent->alive = false;
    }
    weather.by_request.erase(found);
}

}  // namespace

Router storm_handlers(StormWeather& weather) {
    Router router;
    router.use({
        .head = [&weather](const Request&, Response& response) {
            if (weather.one_in(10)) {
                response.header("X-Hook", "1");
            }
        },
        .done = [&weather](const Request& request, const Response&) { note_done(weather, request); },
    });
    const auto plain = [&weather](Request& request, Response& response) {
        const auto agent = make_agent(weather, request, response);
        response.on_abort([agent] {});
        agent->act(1 + weather.draw(4));
    };
    router.any("/s/:id", plain, {.body_timeout_ms = 3'000, .stream_body = true});
    router.any("/p/:id", plain);
    router.any("/c/:id", [&weather](Request& request, Response& response) -> Task<void> {
        return step_in_task(make_agent(weather, request, response), 4);
    });
    router.any("/k/:id", [](Request& request, Response& response) {
        response.header("X-Id", request.parameter("id")).send("ok");
    });
    return router;
}

void stop_storm_timers(StormWeather& weather) {
    for (const std::weak_ptr<StormAgent>& weak : weather.agents) {
        if (const std::shared_ptr<StormAgent> agent = weak.lock()) {
            agent->timers.clear();
        }
    }
}

}  // namespace penstock::test
