// Taking a request target apart, and checking the Host that comes with it.
#include <cstddef>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "micro/allocations.h"
#include "penstock/engine/arena.h"
#include "penstock/engine/block_pool.h"
#include "penstock/protocols/http/target.h"

namespace {

using namespace penstock;

void parse(benchmark::State& state, std::string_view text) {
    BlockPool pages(4096, 1, 1);
    std::byte* const page = pages.try_acquire();
    std::size_t length = 0;
    const perf::AllocationCounter allocations;
    for (auto _ : state) {
        Arena arena(pages, page, 0);  // as each request has its own
        Target target;
        benchmark::DoNotOptimize(text);
        if (parse_target(text, false, false, arena, &target) != TargetError::none) {
            state.SkipWithError("the target was refused");
            break;
        }
        length += target.path.size();
    }
    allocations.report(state);
    benchmark::DoNotOptimize(length);
    pages.release(page);
}
BENCHMARK_CAPTURE(parse, root, "/");
BENCHMARK_CAPTURE(parse, plain_10, "/plaintext");
BENCHMARK_CAPTURE(parse, plain_40, "/api/v1/customers/12345/invoices/6789012");
BENCHMARK_CAPTURE(parse, file, "/assets/application-3f9a1c.min.js");
BENCHMARK_CAPTURE(parse, query, "/search?q=water+turbine&page=12&sort=newest");
BENCHMARK_CAPTURE(parse, escaped, "/files/annual%20report%202024.pdf");
BENCHMARK_CAPTURE(parse, dot_segments, "/a/./b/../c/index.html");
BENCHMARK_CAPTURE(parse, absolute, "http://www.example.org:8080/api/v1/items");

void check_host(benchmark::State& state, std::string_view text) {
    const perf::AllocationCounter allocations;
    for (auto _ : state) {
        benchmark::DoNotOptimize(text);
        benchmark::DoNotOptimize(is_valid_host(text));
    }
    allocations.report(state);
}
BENCHMARK_CAPTURE(check_host, address, "127.0.0.1:8080");
BENCHMARK_CAPTURE(check_host, name, "www.example.org");
BENCHMARK_CAPTURE(check_host, long_name, "customer-12345.eu-central-1.storage.example.org:8443");
BENCHMARK_CAPTURE(check_host, ipv6, "[2001:db8::ff00:42:8329]:8080");

}  // namespace
