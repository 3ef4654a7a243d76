// A body decodes to the same however it is cut: whole, byte by byte, and in pieces of the input's choice. Never more comes
// out than is wanted, and never more memory is taken than is allowed. The input is
//
//     byte 0      the coding, and the limit of what may come out
//     byte 1      the limit of memory
//     byte 2      how many sizes of pieces follow, used over and over
//     ...         sizes of pieces
//     ...         the body
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/protocols/http/content_decoder.h"

namespace penstock {
namespace {

constexpr ContentCoding kCodings[] = {ContentCoding::gzip, ContentCoding::deflate, ContentCoding::brotli, ContentCoding::zstd};
// Around the size of a piece, and far below and above it.
constexpr std::uint64_t kDecodedLimits[] = {0, 1, 100, 8'191, 8'192, 8'193, 100'000, 1'000'000};
constexpr std::size_t kMemoryLimits[] = {kDecoderMemoryLimitBytes, 0, 1'000, 20'000, 50'000, 200'000, 1'000'000, 5'000'000};

void require(bool condition, const char* what, std::string_view about = "", std::string_view more = "") {
    if (!condition) {
        about = about.substr(0, 4'000);
        more = more.substr(0, 4'000);
        std::fprintf(stderr, "content_decoder_fuzz: %s\n%.*s\n----\n%.*s\n", what, static_cast<int>(about.size()),
                     about.data(), static_cast<int>(more.size()), more.data());
        std::abort();
    }
}

struct Limits {
    ContentCoding coding = ContentCoding::gzip;
    std::uint64_t decoded_bytes = 0;
    std::size_t memory_bytes = 0;
};

struct Outcome {
    std::string body;
    unsigned status = 0;
};

// What has failed stays failed, and gives nothing more.
void check_end(ContentDecoder& decoder, ByteSink sink, const std::string& body) {
    const unsigned status = decoder.error_status();
    require((status == 0) == (*decoder.error() == '\0'), "a sentence without a status, or the other way round");
    require(status == 0 || status == 400 || status == 413 || status == 503, "a status that is none of a decoder's");
    if (status != 0) {
        const std::size_t before = body.size();
        require(!decoder.decode("x", sink) && !decoder.finish(), "what has failed goes on");
        require(body.size() == before && decoder.error_status() == status, "what has failed gives more");
    }
}

// Each piece is a copy of its own, so that reading beyond it, or behind its life, is noticed.
template <class NextSize>
Outcome run(std::string_view bytes, const Limits& limits, NextSize next_size) {
    const auto decoder = ContentDecoder::create(limits.coding, limits.decoded_bytes, limits.memory_bytes);
    if (decoder == nullptr) {
        require(limits.memory_bytes < kDecoderMemoryLimitBytes, "there is no decoder, although there is memory");
        return {"", 503};
    }
    Outcome outcome;
    auto sink = [&](std::string_view piece) {
        require(!piece.empty() && piece.size() <= ContentDecoder::kPieceBytes, "a piece of no size, or of too much");
        outcome.body.append(piece);
        require(outcome.body.size() <= limits.decoded_bytes, "more comes out than is wanted");
        return true;
    };
    bool good = true;
    while (good && !bytes.empty()) {
        const std::size_t size = std::min<std::size_t>(next_size(), bytes.size());
        const std::unique_ptr<char[]> piece = std::make_unique<char[]>(size);
        std::copy_n(bytes.data(), size, piece.get());
        bytes.remove_prefix(size);
        good = decoder->decode({piece.get(), size}, sink);
        require(good == (decoder->error_status() == 0), "what `decode` says is not its status");
    }
    good = decoder->finish() && good;
    require(good == (decoder->error_status() == 0), "what `finish` says is not its status");
    require(decoder->decoded_bytes() == outcome.body.size(), "it counts other bytes than it gives");
    require(decoder->peak_memory_bytes() <= limits.memory_bytes, "more memory than is allowed");
    check_end(*decoder, sink, outcome.body);
    outcome.status = decoder->error_status();
    return outcome;
}

// How much of a broken body comes out before it is refused is the library's choice, and so is the memory that it asks for:
// both depend on what it sees at once.
void check_same(const Outcome& whole, const Outcome& cut) {
    if (whole.status == 503 || cut.status == 503) {
        return;
    }
    require((whole.status == 0) == (cut.status == 0), "cut, it has another status", std::to_string(whole.status),
            std::to_string(cut.status));
    if (whole.status == 0) {
        require(cut.body == whole.body, "cut, it is another body", whole.body, cut.body);
    } else {
        const std::size_t size = std::min(whole.body.size(), cut.body.size());
        require(whole.body.compare(0, size, cut.body, 0, size) == 0, "cut, it begins otherwise", whole.body, cut.body);
    }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    if (size < 3) {
        return 0;
    }
    const ContentCoding coding = kCodings[data[0] % std::size(kCodings)];
    if (!is_available(coding)) {
        return 0;
    }
    const Limits limits{
        .coding = coding,
        .decoded_bytes = kDecodedLimits[data[0] / std::size(kCodings) % std::size(kDecodedLimits)],
        .memory_bytes = kMemoryLimits[data[1] % std::size(kMemoryLimits)],
    };
    const std::span<const std::uint8_t> rest(data + 3, size - 3);
    const std::span<const std::uint8_t> sizes = rest.first(std::min<std::size_t>(data[2], rest.size()));
    const auto body = rest.subspan(sizes.size());
    const std::string_view bytes(reinterpret_cast<const char*>(body.data()), body.size());
    const Outcome whole = run(bytes, limits, [&bytes] { return bytes.size(); });
    check_same(whole, run(bytes, limits, [] { return std::size_t{1}; }));
    std::size_t at = 0;
    check_same(whole, run(bytes, limits, [&]() -> std::size_t {
        return 1u + (sizes.empty() ? 6u : sizes[at++ % sizes.size()]);
    }));
    return 0;
}
