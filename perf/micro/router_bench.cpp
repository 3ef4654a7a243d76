// Matching a path in tables of 1, 10 and 1,000 routes of each kind.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "micro/allocations.h"
#include "penstock/protocols/http/route_table.h"
#include "penstock/protocols/http/router.h"

namespace {

using namespace penstock;

// Of each number an exact route, one with one parameter, one with two and one with a wildcard.
std::shared_ptr<const RouteTable> make_table(std::int64_t count) {
    const auto nothing = [](Request&, Response&) {
    };
    Router router;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        router.get("/api/v1/list" + number, nothing);
        router.get("/api/v1/resource" + number + "/:id", nothing);
        router.get("/api/v1/items" + number + "/:item/parts/:part", nothing);
        router.get("/files" + number + "/*path", nothing);
    }
    return router.build().value();
}

// Walks through the routes, so that a large table is not measured by its one hot entry. With "#" for the
// number.
void match_paths(benchmark::State& state, Method method, const std::string& shape, bool is_found) {
    const auto table = make_table(state.range(0));
    std::vector<std::string> paths;
    for (std::int64_t i = 0; i < state.range(0); ++i) {
        std::string path = shape;
        path.replace(path.find('#'), 1, std::to_string(i * 7 % state.range(0)));
        paths.push_back(path);
    }
    std::size_t next = 0;
    const Route* found = nullptr;
    const perf::AllocationCounter allocations;
    for (auto _ : state) {
        found = table->match(method, paths[next]).route;
        benchmark::DoNotOptimize(found);
        next = next + 1 == paths.size() ? 0 : next + 1;
    }
    allocations.report(state);
    if ((found != nullptr) != is_found) {
        state.SkipWithError("the path was matched otherwise than meant");
    }
}

void exact_hit(benchmark::State& state) {
    match_paths(state, Method::get, "/api/v1/list#", true);
}
BENCHMARK(exact_hit)->Arg(1)->Arg(10)->Arg(1000);

void miss(benchmark::State& state) {
    match_paths(state, Method::get, "/api/v1/absent#", false);
}
BENCHMARK(miss)->Arg(1)->Arg(10)->Arg(1000);

void method_miss(benchmark::State& state) {
    match_paths(state, Method::post, "/api/v1/list#", false);
}
BENCHMARK(method_miss)->Arg(1)->Arg(10)->Arg(1000);

void two_parameters(benchmark::State& state) {
    match_paths(state, Method::get, "/api/v1/items#/12345/parts/67", true);
}
BENCHMARK(two_parameters)->Arg(1)->Arg(10)->Arg(1000);

void one_parameter(benchmark::State& state) {
    match_paths(state, Method::get, "/api/v1/resource#/7", true);
}
BENCHMARK(one_parameter)->Arg(1)->Arg(10)->Arg(1000);

void parameter_miss(benchmark::State& state) {
    match_paths(state, Method::get, "/api/v1/items#/12345/absent/67", false);
}
BENCHMARK(parameter_miss)->Arg(1)->Arg(10)->Arg(1000);

void wildcard(benchmark::State& state) {
    match_paths(state, Method::get, "/files#/images/2024/photo.jpg", true);
}
BENCHMARK(wildcard)->Arg(1)->Arg(10)->Arg(1000);

}  // namespace
