// Serves requests of one scenario on the simulated platform, so that a tool which counts instructions finds the same number
// each time:
//
//     penstock_budget_simulated SCENARIO REQUESTS
//     penstock_budget_simulated                     lists the scenarios, as JSON
//
// Everything that is to be counted happens within Reactor::run_turn, less what is within penstock::platform.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"
#include "penstock/platform/net.h"
#include "penstock/platform/sim/world.h"
#include "scenarios.h"

namespace {

using namespace penstock;

constexpr std::uint16_t kPort = 80;
// A connection is idle long before a reactor has turned so often.
constexpr int kTurnLimit = 1'000;

[[noreturn]] void fail(std::string_view text) {
    std::fprintf(stderr, "penstock_budget_simulated: %.*s\n", static_cast<int>(text.size()), text.data());
    std::exit(1);
}

void list_scenarios() {
    std::printf("[");
    const char* separator = "\n";
    for (const perf::Scenario& scenario : perf::scenarios()) {
        std::printf(R"(%s{"name": "%.*s", "depth": %d, "body_bytes": %zu, "closes": %s, "has_file": %s, "request": ")",
                    separator, static_cast<int>(scenario.name.size()), scenario.name.data(), scenario.depth,
                    scenario.body_bytes, scenario.closes ? "true" : "false", scenario.has_file ? "true" : "false");
        for (const char c : scenario.request) {
            if (c == '"') {
                std::printf("\\\"");
            } else if (c < ' ') {
                std::printf("\\u%04x", static_cast<unsigned>(c));
            } else {
                std::putchar(c);
            }
        }
        std::printf("\"}");
        separator = ",\n";
    }
    std::printf("\n]\n");
}

class Simulation {
public:
    explicit Simulation(const perf::Scenario& scenario) : scenario_(scenario) {
        for (const perf::SiteFile& file : perf::site_files()) {
            const std::string path = "/site/" + std::string(file.name);
            world_.add_file(path, std::string(file.bytes, 'x'));
            world_.set_modified_ns(path, (sim::World::kStartWallSeconds - 1'000) * 1'000'000'000);  // long ago
        }
        factory_ = make_protocol_factory(perf::make_router("/site"));
        if (const Result<void> prepared = factory_->prepare(config_); !prepared.ok()) {
            fail(prepared.error().message);
        }
        reactor_ = std::make_unique<Reactor>(config_, 0, nullptr);
        platform::ListenTarget target;
        target.port = kPort;
        const auto listener = platform::open_listener(target);
        if (!reactor_->open().ok() || !listener.ok() || !reactor_->add_listener(listener.value(), *factory_).ok()) {
            fail("the simulated server does not start");
        }
        together_.reserve(scenario.request.size() * static_cast<std::size_t>(scenario.depth));
        for (int i = 0; i < scenario.depth; ++i) {
            together_ += scenario.request;
        }
    }

    void serve(int requests) {
        sim::Peer peer = world_.connect(kPort);
        peer.send(scenario_.request);
        settle();
        const std::string first = peer.take_received();
        const std::size_t head_bytes = first.find("\r\n\r\n") + 4;
        if (!first.starts_with("HTTP/1.1 200 ") || first.size() != head_bytes + scenario_.body_bytes) {
            fail("the first answer is not the one that was expected: " + first.substr(0, 200));
        }
        answer_bytes_ = first.size();
        peer.discard_received();
        for (int served = 0; served < requests; served += scenario_.depth) {
            if (scenario_.closes) {
                peer = world_.connect(kPort);
                peer.discard_received();
            }
            const std::uint64_t before = peer.received_count();
            peer.send(together_);
            settle();
            if (peer.received_count() - before != answer_bytes_ * static_cast<std::size_t>(scenario_.depth)) {
                fail("an answer has another size than the first");
            }
        }
    }

private:
    void settle() {
        for (int turns = 0; turns < kTurnLimit; ++turns) {
            reactor_->run_turn(0);
            if (world_.quiet() && !reactor_->has_work()) {
                return;
            }
        }
        fail("the reactor does not come to rest");
    }

    const perf::Scenario& scenario_;
    sim::World world_;
    Config config_{.reactors = 1};
    std::shared_ptr<ProtocolFactory> factory_;
    std::unique_ptr<Reactor> reactor_;
    std::string together_;
    std::size_t answer_bytes_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    if (count == 1) {
        list_scenarios();
        return 0;
    }
    const perf::Scenario* const scenario = perf::find_scenario(arguments[1]);
    int requests = 0;
    const std::string_view number = count == 3 ? arguments[2] : "";
    std::from_chars(number.data(), number.data() + number.size(), requests);
    if (scenario == nullptr || requests <= 0) {
        fail("usage: penstock_budget_simulated SCENARIO REQUESTS; without arguments it lists the scenarios");
    }
    Simulation(*scenario).serve(requests);
    return 0;
}
