// Internal.
// Bodies and shorthands that the tests of the encoder and of the decoder share.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "penstock/protocols/http/content_decoder.h"
#include "penstock/protocols/http/content_encoder.h"
#include "support/seed.h"

namespace penstock::test {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
using Sizes = std::vector<std::size_t>;

inline std::string random_body(std::size_t size) {
    std::mt19937_64 random(test_seed());
    std::string body(size, '\0');
    for (char& byte : body) {
        byte = static_cast<char>(random());
    }
    return body;
}

// Words in a random order, which every coding makes smaller.
inline std::string text_body(std::size_t size) {
    static constexpr std::string_view kWords[] = {"water ", "runs ", "down ", "the ", "penstock ", "and ", "turns ", "a ", "wheel\n"};
    std::mt19937_64 random(test_seed());
    std::string body;
    while (body.size() < size) {
        body += kWords[random() % std::size(kWords)];
    }
    body.resize(size);
    return body;
}

// In pieces of that size, flushed after every `flush_every` of them (0: never).
inline std::string encoded(ContentCoding coding, std::string_view body, std::size_t piece_size, std::size_t flush_every = 0,
                           int level = 5) {
    const auto encoder = ContentEncoder::create(coding, level);
    REQUIRE(encoder != nullptr);
    std::string out;
    std::size_t pieces = 0;
    while (!body.empty()) {
        const std::string piece(body.substr(0, piece_size));  // of its own, so that reading beyond it is noticed
        body.remove_prefix(piece.size());
        ++pieces;
        const bool flushes = flush_every != 0 && pieces % flush_every == 0;
        REQUIRE(encoder->encode(piece, flushes ? Flush::flush : Flush::none, out));
    }
    REQUIRE(encoder->encode({}, Flush::finish, out));
    return out;
}

inline std::string encoded(ContentCoding coding, std::string_view body) {
    return encoded(coding, body, body.size() + 1);
}

struct Decoded {
    std::string body;
    unsigned status;  // 0: it was whole
};

inline Decoded decoded(ContentCoding coding, std::string_view bytes, std::size_t piece_size,
                       std::uint64_t limit_bytes = kNoLimit) {
    const auto decoder = ContentDecoder::create(coding, limit_bytes);
    REQUIRE(decoder != nullptr);
    Decoded result{};
    bool good = true;
    while (good && !bytes.empty()) {
        const std::string piece(bytes.substr(0, piece_size));
        bytes.remove_prefix(piece.size());
        good = decoder->decode(piece, result.body);
    }
    good = decoder->finish() && good;
    result.status = decoder->error_status();
    CHECK(good == (result.status == 0));
    CHECK(decoder->decoded_bytes() == result.body.size());
    CHECK(decoder->peak_memory_bytes() <= kDecoderMemoryLimitBytes);
    return result;
}

inline Decoded decoded(ContentCoding coding, std::string_view bytes) {
    return decoded(coding, bytes, bytes.size() + 1);
}

}  // namespace penstock::test
