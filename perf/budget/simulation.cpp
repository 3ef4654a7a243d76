#include "simulation.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "penstock/platform/net.h"

namespace penstock::perf {

namespace {

constexpr std::uint16_t kPort = 80;
// A connection is idle long before a reactor has turned so often.
constexpr int kTurnLimit = 1'000;

[[noreturn]] void fail(const Scenario& scenario, std::string_view text) {
    std::fprintf(stderr, "scenario %.*s: %.*s\n", static_cast<int>(scenario.name.size()), scenario.name.data(),
                 static_cast<int>(text.size()), text.data());
    std::exit(1);
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, const std::function<Router()>& make_routes) : scenario_(scenario) {
    for (const SiteFile& file : site_files()) {
        const std::string path = "/site/" + std::string(file.name);
        world_.add_file(path, std::string(file.bytes, 'x'));
        world_.set_modified_ns(path, (sim::World::kStartWallSeconds - 1'000) * 1'000'000'000);  // long ago
    }
    factory_ = make_protocol_factory(make_routes());
    if (const Result<void> prepared = factory_->prepare(config_); !prepared.ok()) {
        fail(scenario, prepared.error().message);
    }
    reactor_ = std::make_unique<Reactor>(config_, 0, nullptr);
    platform::ListenTarget target;
    target.port = kPort;
    const auto listener = platform::open_listener(target);
    if (!reactor_->open().ok() || !listener.ok() || !reactor_->add_listener(listener.value(), *factory_).ok()) {
        fail(scenario, "the simulated server does not start");
    }
    peer_ = world_.connect(kPort);
    peer_.send(scenario.request);
    settle();
    const std::string first = peer_.take_received();
    if (!first.starts_with("HTTP/1.1 200 ") || first.size() != first.find("\r\n\r\n") + 4 + scenario.body_bytes) {
        fail(scenario, "it is answered by " + first.substr(0, 200));
    }
    answer_bytes_ = first.size();
    peer_.discard_received();
    for (int i = 0; i < scenario.depth; ++i) {
        together_ += scenario.request;
    }
}

void Simulation::serve_together() {
    if (scenario_.closes) {
        peer_ = world_.connect(kPort);
        peer_.discard_received();
    }
    const std::uint64_t before = peer_.received_count();
    peer_.send(together_);
    settle();
    if (peer_.received_count() - before != answer_bytes_ * static_cast<std::size_t>(scenario_.depth)) {
        fail(scenario_, "an answer has another size than the first");
    }
}

void Simulation::settle() {
    for (int turns = 0; turns < kTurnLimit; ++turns) {
        reactor_->run_turn(0);
        if (world_.quiet() && !reactor_->has_work()) {
            return;
        }
    }
    fail(scenario_, "the reactor does not come to rest");
}

}  // namespace penstock::perf
