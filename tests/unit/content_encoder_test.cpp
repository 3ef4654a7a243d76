#include "penstock/protocols/http/content_encoder.h"

#include <limits>

#include "unit/coding_bodies.h"

namespace penstock::test {

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// Not whole bodies: doctest would print them.
bool round_trip_holds(ContentCoding coding, const std::string& body, std::size_t piece, std::size_t flush_every) {
    const std::string bytes = encoded(coding, body, piece, flush_every);
    const Decoded back = decoded(coding, bytes, piece);
    return back.status == 0 && back.body == body;
}

}  // namespace

TEST_CASE("what was encoded is decoded to the same, in pieces of all sizes and with flushes") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{10'240}}) {
            for (const std::string& body : {random_body(size), text_body(size), std::string(size, '\0')}) {
                for (const std::size_t piece : Sizes{1, 7, 511, 4'096, 8'192, 20'000}) {
                    CAPTURE(size);
                    CAPTURE(piece);
                    CHECK(round_trip_holds(coding, body, piece, 0));
                    CHECK(round_trip_holds(coding, body, piece, piece < 511 ? 97 : 1));
                }
            }
        }
    }
}

TEST_CASE("a large body is encoded and decoded to the same") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        for (const std::string& body : {random_body(kMebibyte), text_body(kMebibyte), std::string(kMebibyte, '\0')}) {
            CHECK(round_trip_holds(coding, body, 1'000, 0));
            CHECK(round_trip_holds(coding, body, 65'537, 3));
            CHECK(round_trip_holds(coding, body, kMebibyte, 0));
        }
    }
}

TEST_CASE("text becomes smaller, and random bytes hardly larger") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        CHECK(encoded(coding, text_body(100'000)).size() < 30'000);
        CHECK(encoded(coding, std::string(100'000, '\0')).size() < 500);
        CHECK(encoded(coding, random_body(100'000)).size() < 100'200);
    }
}

TEST_CASE("the formats are those that the names stand for") {
    const std::string gzip = encoded(ContentCoding::gzip, "x");
    CHECK(gzip.substr(0, 3) == "\x1f\x8b\x08");
    CHECK(gzip.substr(gzip.size() - 4) == std::string("\1\0\0\0", 4));  // the length of the body (RFC 1952 §2.3.1)
    const std::string deflate = encoded(ContentCoding::deflate, "x");
    CHECK((deflate[0] & 0x0f) == 8);  // RFC 1950 §2.2: deflate, and a checksum over two bytes
    CHECK((static_cast<unsigned char>(deflate[0]) * 256 + static_cast<unsigned char>(deflate[1])) % 31 == 0);
    CHECK(deflate.substr(deflate.size() - 4) == std::string("\0\x79\0\x79", 4));  // Adler-32 of "x"
    if (is_available(ContentCoding::zstd)) {
        CHECK(encoded(ContentCoding::zstd, "x").substr(0, 4) == "\x28\xb5\x2f\xfd");
    }
}

TEST_CASE("a flush gives all, also of what is much larger than the pieces of encoder and decoder") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const auto encoder = ContentEncoder::create(coding, 5);
        const auto decoder = ContentDecoder::create(coding, kNoLimit);
        for (const std::string& body : {random_body(40'000), text_body(200'000), random_body(1)}) {
            std::string bytes;
            std::string out;
            for (std::size_t at = 0; at < body.size(); at += 16'384) {
                const bool is_last = at + 16'384 >= body.size();
                REQUIRE(encoder->encode(std::string_view(body).substr(at, 16'384), is_last ? Flush::flush : Flush::none, bytes));
            }
            REQUIRE(decoder->decode(bytes, out));
            CHECK(out.size() == body.size());
            CHECK((out == body));
        }
    }
}

TEST_CASE("steps of any size give what all at once gives") {
    const std::string body = random_body(30'000) + text_body(30'000);
    for (const ContentCoding coding : available_codings()) {
        for (const std::size_t room : Sizes{1, 7, 100'000}) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(room);
            const auto encoder = ContentEncoder::create(coding, 3);
            std::string memory(room, '\0');
            std::string bytes;
            std::string_view left = body;
            for (CodingStep step; step.state == CodingStep::State::more;) {
                step = encoder->step(left, Flush::finish, memory.data(), room);
                bytes.append(memory, 0, step.produced);
            }
            const auto decoder = ContentDecoder::create(coding, body.size());
            std::string out;
            left = bytes;
            for (CodingStep step; step.state == CodingStep::State::more;) {
                step = decoder->step(left, memory.data(), room);
                out.append(memory, 0, step.produced);
                REQUIRE(decoder->error_status() == 0);
            }
            CHECK(decoder->finish());
            CHECK((out == body));
        }
    }
}

TEST_CASE("a flush, also one without bytes, gives all that came so far") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const auto encoder = ContentEncoder::create(coding, 5);
        const auto decoder = ContentDecoder::create(coding, kNoLimit);
        REQUIRE(encoder != nullptr);
        REQUIRE(decoder != nullptr);
        std::string body;
        std::string back;
        for (int i = 0; i < 50; ++i) {
            const std::string line = "event " + std::to_string(i) + "\n";
            body += line;
            std::string bytes;
            CHECK(encoder->encode(line, i % 2 == 0 ? Flush::flush : Flush::none, bytes));
            CHECK(encoder->encode({}, Flush::flush, bytes));
            CHECK(decoder->decode(bytes, back));
            REQUIRE(back == body);
        }
        std::string more;
        CHECK(encoder->encode({}, Flush::flush, more));
        CHECK(more.size() < 10);  // nothing was kept back
        CHECK(encoder->encode({}, Flush::finish, more));
        CHECK(decoder->decode(more, back));
        CHECK(decoder->finish());
        CHECK(back == body);
    }
}

TEST_CASE("the sink gets pieces of bounded size, and may refuse one") {
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string body = random_body(100'000);
        const auto encoder = ContentEncoder::create(coding, 1);
        REQUIRE(encoder != nullptr);
        std::size_t pieces = 0;
        auto sink = [&pieces](std::string_view bytes) {
            CHECK_FALSE(bytes.empty());
            CHECK(bytes.size() <= ContentEncoder::kPieceBytes);
            return ++pieces < 3;
        };
        CHECK_FALSE(encoder->encode(body, Flush::finish, sink));
        CHECK(pieces == 3);
        CHECK_FALSE(encoder->encode({}, Flush::flush, sink));
        CHECK(pieces == 3);
    }
}

TEST_CASE("any level will do, and none takes more memory than an encoder may") {
    std::string body = text_body(kMebibyte) + random_body(kMebibyte);
    for (std::size_t i = 0; i < 200; ++i) {  // changes of what is likely, for which Brotli keeps a table each
        body += i % 2 == 0 ? random_body(1'000 + i * 7) : text_body(2'000) + std::string(1'500, static_cast<char>(i));
    }
    for (const ContentCoding coding : available_codings()) {
        for (const int level : {std::numeric_limits<int>::min(), 1, 2, 3, 4, 5, 6, 7, 8, 9, std::numeric_limits<int>::max()}) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(level);
            const auto encoder = ContentEncoder::create(coding, level);
            REQUIRE(encoder != nullptr);
            std::string out;
            for (std::size_t at = 0; at < body.size(); at += 16'384) {  // its length is not known, which costs more
                REQUIRE(encoder->encode(std::string_view(body).substr(at, 16'384), Flush::none, out));
            }
            REQUIRE(encoder->encode({}, Flush::finish, out));
            CHECK(decoded(coding, out).body.size() == body.size());
            CHECK(encoder->peak_memory_bytes() > 0);
            CHECK(encoder->peak_memory_bytes() <= encoder_memory_bytes(coding, level));
            CHECK(encoder_memory_bytes(coding, level) <= kEncoderMemoryLimitBytes);
        }
    }
}

TEST_CASE("an encoder without memory is null, or fails") {
    const std::string body = text_body(200'000);
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        std::size_t refused = 0;
        for (std::size_t limit = 0; limit <= kEncoderMemoryLimitBytes; limit += 32'768) {
            const auto encoder = ContentEncoder::create(coding, 5, limit);
            std::string out;
            if (encoder == nullptr || !encoder->encode(body, Flush::finish, out)) {
                ++refused;
                continue;
            }
            CHECK(encoder->peak_memory_bytes() <= limit);
            CHECK(decoded(coding, out).status == 0);
        }
        CHECK(refused > 0);
        CHECK(ContentEncoder::create(coding, 5, kEncoderMemoryLimitBytes) != nullptr);
    }
}

TEST_CASE("there is no encoder for identity, nor for what is not compiled in") {
    CHECK(ContentEncoder::create(ContentCoding::identity, 5) == nullptr);
    for (const ContentCoding coding : {ContentCoding::gzip, ContentCoding::deflate, ContentCoding::brotli, ContentCoding::zstd}) {
        CAPTURE(content_coding_name(coding));
        CHECK((ContentEncoder::create(coding, 5) != nullptr) == is_available(coding));
        CHECK((ContentDecoder::create(coding, 5) != nullptr) == is_available(coding));
    }
}

}  // namespace penstock::test
