// Internal.
// A reactor on the simulated platform that serves the requests of one scenario. Ends the program when an answer is not what it
// has to be: what is counted or timed then would mean nothing. Owned by its program; one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"
#include "penstock/platform/sim/world.h"
#include "scenarios.h"

namespace penstock::perf {

class Simulation {
public:
    // The routes are made when "/site" is there, with the site_files(). The first answer has come when it returns.
    Simulation(const Scenario& scenario, const std::function<Router()>& make_routes);

    // As many requests as the scenario sends together, and their answers.
    void serve_together();

private:
    void settle();

    const Scenario& scenario_;
    sim::World world_;
    Config config_{.reactors = 1};
    std::shared_ptr<ProtocolFactory> factory_;
    std::unique_ptr<Reactor> reactor_;
    sim::Peer peer_;
    std::string together_;
    std::size_t answer_bytes_ = 0;
};

}  // namespace penstock::perf
