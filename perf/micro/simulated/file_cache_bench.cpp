// What a reactor's cache of files costs: a file that is known, one of many, one that is not there, one that is looked at anew.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "micro/allocations.h"
#include "penstock/engine/reactor.h"
#include "penstock/platform/descriptor.h"
#include "penstock/platform/file.h"
#include "penstock/platform/sim/world.h"
#include "penstock/protocols/http/file_cache.h"

namespace penstock {

namespace {

constexpr std::size_t kFileBytes = 1'024;

struct CacheOnReactor {
    sim::World world;
    Config config{.reactors = 1};
    std::unique_ptr<Reactor> reactor;
    std::unique_ptr<FileCache> cache;

    CacheOnReactor(std::int64_t files, const FileCacheLimits& limits) {
        for (std::int64_t i = 0; i < files; ++i) {
            const std::string path = "/site/" + name_of(i);
            world.add_file(path, std::string(kFileBytes, 'x'));
            world.set_modified_ns(path, 1'000'000'000);  // long ago
        }
        reactor = std::make_unique<Reactor>(config, 0, nullptr);
        auto root = std::make_shared<FileRoot>();
        root->directory = platform::Descriptor(platform::open_directory("/site").value());
        cache = std::make_unique<FileCache>(*reactor, std::move(root), limits);
    }
    ~CacheOnReactor() { cache.reset(); }

    static std::string name_of(std::int64_t number) { return "file" + std::to_string(number); }
};

constexpr FileCacheLimits kLimits{.entries = 4'096,
                                  .descriptors = 256,
                                  .bytes = 32 << 20,
                                  .content_bytes = 128 << 10,
                                  .time_to_live_ms = 1'000};

// Goes round so many names of the first `files`, or of what is not there.
void find_names(benchmark::State& state, std::int64_t files, const FileCacheLimits& limits, std::int64_t first) {
    CacheOnReactor on(files, limits);
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < state.range(0); ++i) {
        names.push_back(CacheOnReactor::name_of(first + i));
    }
    std::size_t next = 0;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        const FileReference found = on.cache->find(names[next].c_str());
        if (!found) {
            state.SkipWithError("it is not looked at");
            break;
        }
        next = next + 1 < names.size() ? next + 1 : 0;
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations());
}

void find_known_file(benchmark::State& state) { find_names(state, 4'096, kLimits, 0); }
BENCHMARK(find_known_file)->Arg(1)->Arg(100)->Arg(4'000);

void find_known_absence(benchmark::State& state) { find_names(state, 1, kLimits, 1); }
BENCHMARK(find_known_absence)->Arg(1)->Arg(100);

// More names than there are places: each look opens and reads, and another file is evicted.
void find_with_eviction(benchmark::State& state) {
    FileCacheLimits limits = kLimits;
    limits.entries = 64;
    find_names(state, 128, limits, 0);
}
BENCHMARK(find_with_eviction)->Arg(128);

// Its time to live is over each time, so the file is looked at, and found unchanged.
void find_and_look_again(benchmark::State& state) {
    FileCacheLimits limits = kLimits;
    limits.time_to_live_ms = 0;
    find_names(state, 1, limits, 0);
}
BENCHMARK(find_and_look_again)->Arg(1);

}  // namespace

}  // namespace penstock
