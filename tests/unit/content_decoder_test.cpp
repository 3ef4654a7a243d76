#include "penstock/protocols/http/content_decoder.h"

#include "unit/coding_bodies.h"

namespace penstock::test {

using namespace std::string_view_literals;

namespace {

struct Sample {
    ContentCoding coding;
    std::string_view bytes;
};

constexpr std::string_view kZstdFrame = "\x28\xb5\x2f\xfd\0\x58\x41\0\0penstock"sv;

// "penstock", as other programs write it; Brotli's is a stored block, put together from RFC 7932 §9.
constexpr Sample kSamples[] = {
    {ContentCoding::gzip, "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x2b\x48\xcd\x2b\x2e\xc9\x4f\xce\x06\0\xec\xe2\x16\xaf\x08\0\0\0"sv},
    // With a name in its header: FNAME (RFC 1952 §2.3).
    {ContentCoding::gzip,
     "\x1f\x8b\x08\x08\0\0\0\0\x02\x03p.txt\0\x2b\x48\xcd\x2b\x2e\xc9\x4f\xce\x06\0\xec\xe2\x16\xaf\x08\0\0\0"sv},
    {ContentCoding::deflate, "\x78\x9c\x2b\x48\xcd\x2b\x2e\xc9\x4f\xce\x06\0\x0f\x6c\x03\x68"sv},
    {ContentCoding::brotli, "\x8b\x03\x80penstock\x03"sv},
    {ContentCoding::brotli, "\x8f\x03\x80penstock\x03"sv},  // with the largest window, 16 MiB
    {ContentCoding::zstd, kZstdFrame},
    {ContentCoding::zstd, "\x28\xb5\x2f\xfd\x04\x58\x41\0\0penstock\x73\x56\x9c\x8a"sv},
};

constexpr std::string_view kZstdSkippable = "\x50\x2a\x4d\x18\x03\0\0\0abc"sv;

bool has_checksum(ContentCoding coding) {
    return coding == ContentCoding::gzip || coding == ContentCoding::deflate;
}

unsigned status(ContentCoding coding, std::string_view bytes) {
    return decoded(coding, bytes).status;
}

}  // namespace

TEST_CASE("what other programs encoded is decoded, whole and byte by byte") {
    for (const Sample& sample : kSamples) {
        if (!is_available(sample.coding)) {
            continue;
        }
        CAPTURE(content_coding_name(sample.coding));
        for (const std::size_t piece : Sizes{1, 2, 3, 5, 100}) {
            const Decoded result = decoded(sample.coding, sample.bytes, piece);
            CHECK(result.status == 0);
            CHECK(result.body == "penstock");
        }
    }
}

TEST_CASE("a body that ends too early is broken, wherever it was cut") {
    const std::string body = text_body(2'000);
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string bytes = encoded(coding, body);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CAPTURE(size);
            const Decoded result = decoded(coding, std::string_view(bytes).substr(0, size), 50);
            CHECK(result.status == 400);
            CHECK((body.compare(0, result.body.size(), result.body) == 0));
        }
    }
}

TEST_CASE("a body with a wrong byte is broken, or at least comes to an end") {
    const std::string body = text_body(3'000);
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string good = encoded(coding, body);
        std::size_t broken = 0;
        for (std::size_t i = 0; i < good.size(); ++i) {
            CAPTURE(i);
            std::string bytes = good;
            bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
            const Decoded result = decoded(coding, bytes, 64, 100'000);
            broken += result.status != 0 ? 1U : 0U;
            CHECK((result.status == 0 || result.status == 400 || result.status == 413));
            // Without a checksum a wrong byte may pass for another text.
            CHECK((!has_checksum(coding) || result.status != 0 || result.body == body));
        }
        CHECK(broken > good.size() / 4);
    }
}

TEST_CASE("random bytes are no body") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        for (std::size_t size = 1; size < 300; ++size) {
            const Decoded result = decoded(coding, random_body(300).substr(size), 16, 100'000);
            CHECK((result.status == 400 || coding == ContentCoding::brotli));
        }
        CHECK(status(coding, "") == 400);
        CHECK(status(coding, "penstock penstock penstock penstock") == 400);
    }
}

TEST_CASE("each coding refuses the others") {
    for (const Sample& sample : kSamples) {
        for (const ContentCoding coding : available_codings()) {
            if (coding != sample.coding) {
                CAPTURE(content_coding_name(coding));
                CHECK(status(coding, sample.bytes) == 400);
            }
        }
    }
    CHECK(status(ContentCoding::deflate, "\x2b\x48\xcd\x2b\x2e\xc9\x4f\xce\x06\0"sv) == 400);  // without zlib's header
}

TEST_CASE("a bomb stops at the limit") {
    const std::string zeros(std::size_t{32} << 20, '\0');
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string bomb = encoded(coding, zeros, std::size_t{1} << 20);
        CHECK(bomb.size() < 40'000);
        for (const std::size_t limit : Sizes{0, 1, 8'191, 8'192, 8'193, 1'000'000}) {
            CAPTURE(limit);
            const auto decoder = ContentDecoder::create(coding, limit);
            REQUIRE(decoder != nullptr);
            std::uint64_t given = 0;
            auto sink = [&given](std::string_view bytes) {
                CHECK(bytes.size() <= ContentDecoder::kPieceBytes);
                given += bytes.size();
                return true;
            };
            CHECK_FALSE(decoder->decode(bomb, sink));
            CHECK(decoder->error_status() == 413);
            CHECK(std::string(decoder->error()).find("more bytes") != std::string::npos);
            CHECK(given <= limit);
            CHECK_FALSE(decoder->decode(bomb, sink));
            CHECK_FALSE(decoder->finish());
            CHECK(given <= limit);
            CHECK(decoder->error_status() == 413);
        }
    }
}

TEST_CASE("a body may be exactly as large as the limit") {
    for (const std::size_t size : Sizes{0, 1, 8'191, 8'192, 8'193, 50'000}) {
        CAPTURE(size);
        const std::string body = text_body(size);
        for (const ContentCoding coding : available_codings()) {
            CAPTURE(content_coding_name(coding));
            const std::string bytes = encoded(coding, body);
            for (const std::size_t piece : {std::size_t{1}, bytes.size()}) {
                const Decoded whole = decoded(coding, bytes, piece, size);
                CHECK(whole.status == 0);
                CHECK((whole.body == body));
                if (size > 0) {
                    CHECK(decoded(coding, bytes, piece, size - 1).status == 413);
                }
            }
        }
    }
}

TEST_CASE("members of gzip and frames of Zstandard may follow each other, and count together") {
    for (const ContentCoding coding : available_codings()) {
        if (coding != ContentCoding::gzip && coding != ContentCoding::zstd) {
            continue;
        }
        CAPTURE(content_coding_name(coding));
        const std::string body = text_body(1'000);
        const std::string bytes = encoded(coding, body) + encoded(coding, "") + encoded(coding, "x") + encoded(coding, body);
        for (const std::size_t piece : Sizes{1, 2, 7, 100, 100'000}) {
            CAPTURE(piece);
            const Decoded result = decoded(coding, bytes, piece);
            CHECK(result.status == 0);
            CHECK(result.body == body + "x" + body);
            CHECK(decoded(coding, bytes, piece, 2'001).status == 0);
            CHECK(decoded(coding, bytes, piece, 2'000).status == 413);
            CHECK(decoded(coding, std::string_view(bytes).substr(0, bytes.size() - 1), piece).status == 400);
        }
    }
}

TEST_CASE("nothing else may stand behind the end") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string bytes = encoded(coding, "penstock");
        for (const std::string_view behind : {"x"sv, "\0"sv, "penstock penstock"sv}) {
            for (const std::size_t piece : Sizes{1, 1'000}) {
                CHECK(decoded(coding, bytes + std::string(behind), piece).status == 400);
            }
        }
        const bool repeats = coding == ContentCoding::gzip || coding == ContentCoding::zstd;
        CHECK(status(coding, bytes + bytes) == (repeats ? 0 : 400));
    }
}

TEST_CASE("of Zstandard only what RFC 8878 has is read, with a window of 8 MiB at most") {
    if (!is_available(ContentCoding::zstd)) {
        return;
    }
    const std::string frame(kZstdFrame);
    for (const std::size_t piece : Sizes{1, 3, 100}) {
        const Decoded result = decoded(ContentCoding::zstd, std::string(kZstdSkippable) + frame + std::string(kZstdSkippable), piece);
        CHECK(result.status == 0);
        CHECK(result.body == "penstock");
        // What the library wrote before there was a standard: versions 0.5 to 0.7.
        for (const char version : {'\x25', '\x26', '\x27'}) {
            const std::string old = version + frame.substr(1);
            CHECK(decoded(ContentCoding::zstd, old, piece).status == 400);
            CHECK(decoded(ContentCoding::zstd, frame + old, piece).status == 400);
        }
    }
    // A window descriptor (§3.1.1.1.2) in place of the size: 8 MiB, then the next larger one, above a stored block.
    const std::string block = std::string("\x41\0\0", 3) + "penstock";
    CHECK(status(ContentCoding::zstd, std::string("\x28\xb5\x2f\xfd\0\x68", 6) + block) == 0);
    CHECK(status(ContentCoding::zstd, std::string("\x28\xb5\x2f\xfd\0\x69", 6) + block) == 400);
}

TEST_CASE("a decoder without memory is null, or says so") {
    const std::string body = text_body(300'000);
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string bytes = encoded(coding, body);
        std::size_t refused = 0;
        for (std::size_t limit = 0; limit <= 600'000; limit += 2'048) {
            const auto decoder = ContentDecoder::create(coding, kNoLimit, limit);
            std::string back;
            if (decoder == nullptr) {
                ++refused;
            } else if (!decoder->decode(bytes, back)) {
                ++refused;
                CHECK(decoder->error_status() == 503);
            } else {
                CHECK(decoder->finish());
                CHECK((back == body));
                CHECK(decoder->peak_memory_bytes() <= limit);
            }
        }
        CHECK(refused > 0);
    }
}

TEST_CASE("a sink that refuses ends the decoding") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const auto decoder = ContentDecoder::create(coding, kNoLimit);
        REQUIRE(decoder != nullptr);
        int calls = 0;
        auto sink = [&calls](std::string_view) { return ++calls < 2; };
        CHECK_FALSE(decoder->decode(encoded(coding, text_body(100'000)), sink));
        CHECK(decoder->error_status() == 500);
        CHECK(calls == 2);
        CHECK_FALSE(decoder->finish());
        CHECK(decoder->error_status() == 500);
    }
}

}  // namespace penstock::test
