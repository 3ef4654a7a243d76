// What is kept of compressed bodies: found again byte for byte, told apart by everything that matters, and never too much.
#include "penstock/protocols/http/compress_cache.h"

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "penstock/protocols/http/compress.h"
#include "penstock/protocols/http/compress_policy.h"
#include "support/seed.h"

namespace penstock::test {

TEST_CASE("a body is found by its bytes, its coding and its level") {
    CompressCache cache(100'000, 1);
    CHECK_FALSE(cache.find("body", ContentCoding::gzip, 6).has_value());
    cache.put("body", ContentCoding::gzip, 6, "g6");
    cache.put("body", ContentCoding::gzip, 7, "g7");
    cache.put("body", ContentCoding::brotli, 6, "b6");
    cache.put("noise", ContentCoding::gzip, 6, "");
    CHECK(cache.find("body", ContentCoding::gzip, 6) == "g6");
    CHECK(cache.find("body", ContentCoding::gzip, 7) == "g7");
    CHECK(cache.find("body", ContentCoding::brotli, 6) == "b6");
    CHECK(cache.find("noise", ContentCoding::gzip, 6) == "");
    CHECK_FALSE(cache.find("bodY", ContentCoding::gzip, 6).has_value());
    CHECK_FALSE(cache.find("body", ContentCoding::zstd, 6).has_value());
    cache.put("body", ContentCoding::gzip, 6, "again");
    CHECK(cache.find("body", ContentCoding::gzip, 6) == "again");
    CHECK(cache.size() == 4);
    const std::size_t used = cache.used_bytes();
    cache.put(std::string(90'000, 'n'), ContentCoding::gzip, 6, "");  // gets no smaller: only its hash is kept
    CHECK(cache.find(std::string(90'000, 'n'), ContentCoding::gzip, 6) == "");
    CHECK(cache.used_bytes() < used + 1'000);
}

TEST_CASE("what is kept stays below its limit, whatever is put, and what was used last stays") {
    constexpr std::size_t kLimit = 20'000;
    CompressCache cache(kLimit, 7);
    std::mt19937_64 random(test_seed());
    for (int i = 0; i < 20'000; ++i) {
        const std::string body = std::to_string(random() % 200);
        const std::string padded = body + std::string(random() % 100 == 0 ? kLimit : std::stoul(body) * 20, 'x');
        if (const auto hit = cache.find(padded, ContentCoding::gzip, 1)) {
            CHECK(*hit == body);
        } else {
            cache.put(padded, ContentCoding::gzip, 1, body);
            CHECK(cache.find(padded, ContentCoding::gzip, 1).has_value() == (padded.size() < kLimit - 1'000));
        }
        CHECK(cache.used_bytes() <= kLimit);
        CHECK((cache.size() == 0) == (cache.used_bytes() == 0));
    }
    CHECK(cache.size() > 2);
}

TEST_CASE("which types fit") {
    const Result<CompressPolicy> made = CompressPolicy::make({});
    REQUIRE(made.ok());
    const CompressPolicy& policy = made.value();
    for (const char* type : {"", "text/plain", "text/html; charset=utf-8", "TEXT/CSS", "application/json", "application/ld+json",
                             "image/svg+xml", "application/javascript", "text/event-stream", "application/wasm", "font/ttf",
                             "application/manifest+json;x=y", "application/xml ;a=b", "application/xhtml+xml"}) {
        CAPTURE(std::string(type));
        CHECK(policy.fits(type));
    }
    for (const char* type : {"image/png", "image/jpeg", "font/woff2", "font/woff", "application/zip", "video/mp4", "text",
                             "application/jsonp", "application/octet-stream", "xtext/plain", "/", "*/*"}) {
        CAPTURE(std::string(type));
        CHECK_FALSE(policy.fits(type));
    }
    CHECK_FALSE(policy.fits(std::string(100'000, 'a')));
    CHECK(policy.codings().size() == available_codings().size());
}

}  // namespace penstock::test
