// The heads that the budgets ask with, read by our own reader and by llhttp alone, a parser that records nothing. Ours
// records fields in a request, and needs one for each head: what taking up and ending an exchange costs stands beside it.
#include <llhttp.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include <benchmark/benchmark.h>

#include "budget/scenarios.h"
#include "micro/allocations.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/plain_head.h"

namespace penstock {

namespace {

std::string_view head_of(std::string_view scenario) { return perf::find_scenario(scenario)->request; }

struct Reading {
    const Config config{.reactors = 1};
    Reactor reactor{config, 0, nullptr};
    Http1 http{reactor, perf::make_router("").build().value()};
    Connection connection;  // it was never opened
};

void read_plain_head(benchmark::State& state, std::string_view name) {
    const std::string_view head = head_of(name);
    Reading reading;
    const PlainHeadLimits limits{reading.config.target_limit_bytes, reading.config.header_count_limit};
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        Exchange* const exchange = Exchange::try_create(reading.http, reading.connection);
        RequestLine line{};
        const std::size_t size = PlainHead::try_read(head, limits, exchange->request(), &line);
        exchange->destroy();
        if (size != head.size()) {
            state.SkipWithError("the head is not plain");
            break;
        }
    }
    allocations.report(state);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(head.size()));
}
BENCHMARK_CAPTURE(read_plain_head, plaintext, "plaintext");
BENCHMARK_CAPTURE(read_plain_head, browser, "browser");

void exchange_alone(benchmark::State& state) {
    Reading reading;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        Exchange* const exchange = Exchange::try_create(reading.http, reading.connection);
        benchmark::DoNotOptimize(exchange);
        exchange->destroy();
    }
    allocations.report(state);
}
BENCHMARK(exchange_alone);

void llhttp_head(benchmark::State& state, std::string_view name) {
    const std::string_view head = head_of(name);
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        llhttp_t parser;
        llhttp_init(&parser, HTTP_REQUEST, &settings);
        if (llhttp_execute(&parser, head.data(), head.size()) != HPE_OK) {
            state.SkipWithError("the head is refused");
            break;
        }
    }
    allocations.report(state);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(head.size()));
}
BENCHMARK_CAPTURE(llhttp_head, plaintext, "plaintext");
BENCHMARK_CAPTURE(llhttp_head, browser, "browser");

}  // namespace

}  // namespace penstock
