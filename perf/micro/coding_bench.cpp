// A body compressed and decompressed whole, by each content coding of this build, at the level that compress() begins with.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>

#include "micro/allocations.h"
#include "penstock/protocols/http/compress.h"
#include "penstock/protocols/http/content_coding.h"
#include "penstock/protocols/http/content_decoder.h"
#include "penstock/protocols/http/content_encoder.h"

namespace penstock {

namespace {

constexpr std::size_t kBodyBytes = 10 * 1'024;

// JSON as services answer it: the same names again and again, other values.
std::string make_body() {
    std::string body = "[";
    for (unsigned i = 0; body.size() < kBodyBytes; ++i) {
        body += R"({"id":)" + std::to_string(i * 7'919) + R"(,"name":"item )" + std::to_string(i) +
                R"(","price":)" + std::to_string(i * 31 % 977) + R"(.50,"in_stock":true},)";
    }
    body.resize(kBodyBytes);
    return body;
}

std::string encode(ContentCoding coding, int level, const std::string& body) {
    std::string encoded;
    auto append = [&encoded](std::string_view piece) {
        encoded += piece;
        return true;
    };
    const auto encoder = ContentEncoder::create(coding, level);
    return encoder != nullptr && encoder->encode(body, Flush::finish, append) ? encoded : std::string();
}

void encode_body(benchmark::State& state, ContentCoding coding, int level) {
    const std::string body = make_body();
    std::size_t encoded_bytes = 0;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        encoded_bytes = encode(coding, level, body).size();
        if (encoded_bytes == 0) {
            state.SkipWithError("it is not encoded");
            break;
        }
    }
    allocations.report(state);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBodyBytes));
    state.counters["of_its_size"] = static_cast<double>(encoded_bytes) / static_cast<double>(kBodyBytes);
}

void decode_body(benchmark::State& state, ContentCoding coding, int level) {
    const std::string encoded = encode(coding, level, make_body());
    auto take = [](std::string_view) { return true; };
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        const auto decoder = ContentDecoder::create(coding, kBodyBytes);
        if (decoder == nullptr || !decoder->decode(encoded, take) || !decoder->finish()) {
            state.SkipWithError("it is not decoded");
            break;
        }
    }
    allocations.report(state);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBodyBytes));
}

const bool g_registered = [] {
    for (const ContentCoding coding : available_codings()) {
        const std::string name(content_coding_name(coding));
        for (const int level : {1, 6}) {
            const std::string which = name + "/" + std::to_string(level);
            benchmark::RegisterBenchmark(("encode_body/" + which).c_str(), encode_body, coding, level);
            benchmark::RegisterBenchmark(("decode_body/" + which).c_str(), decode_body, coding, level);
        }
    }
    return true;
}();

}  // namespace

}  // namespace penstock
