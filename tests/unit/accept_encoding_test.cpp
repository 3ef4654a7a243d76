#include "penstock/protocols/http/accept_encoding.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace penstock;
using namespace std::string_view_literals;

namespace {

constexpr ContentCoding kAll[] = {ContentCoding::brotli, ContentCoding::zstd, ContentCoding::gzip, ContentCoding::deflate};

std::string chosen(std::string_view field, std::span<const ContentCoding> offered = kAll) {
    const std::optional<ContentCoding> coding = choose_content_coding(field, offered);
    return coding ? std::string(content_coding_name(*coding)) : "none";
}

struct Case {
    std::string_view field;
    std::string_view coding;
};

// All are offered: br, zstd, gzip, deflate.
constexpr Case kCases[] = {
    // Without weights the server's order decides.
    {"gzip", "gzip"},
    {"deflate", "deflate"},
    {"br", "br"},
    {"zstd", "zstd"},
    {"x-gzip", "gzip"},
    {"GZip", "gzip"},
    {"gzip, deflate", "gzip"},
    {"deflate, gzip", "gzip"},
    {"gzip, deflate, br, zstd", "br"},
    {"gzip, deflate, zstd", "zstd"},
    {"compress, gzip", "gzip"},
    {"*", "br"},
    // What means identity.
    {"", "identity"},
    {"   ", "identity"},
    {",", "identity"},
    {"identity", "identity"},
    {"compress", "identity"},
    {"gzip;q=0", "identity"},
    {"gzip;q=0, br;q=0.000", "identity"},
    // Weights.
    {"gzip;q=1.0, br;q=0.9", "gzip"},
    {"gzip;q=0.001", "gzip"},
    {"gzip;q=0.5, deflate;q=0.51", "deflate"},
    {"gzip;q=0.5, deflate;q=0.501", "deflate"},
    {"gzip;q=0.499, deflate;q=0.5", "deflate"},
    {"gzip;q=1, deflate;q=1.000", "gzip"},
    {"gzip;q=0., deflate;q=1.", "deflate"},
    {"gzip;Q=0.2, deflate;Q=0.3", "deflate"},
    {"gzip ; q=0.2\t,\tdeflate\t;\tq=0.3", "deflate"},
    {"gzip;q=0.2,deflate;q=0.3", "deflate"},
    // Identity has a weight too, once it is named.
    {"identity;q=0.5, gzip;q=0.4", "identity"},
    {"identity;q=0.4, gzip;q=0.5", "gzip"},
    {"identity, gzip", "gzip"},
    {"identity;q=1, *;q=0", "identity"},
    {"*;q=0, identity;q=0.001", "identity"},
    // All others.
    {"*;q=0.5, br;q=0", "zstd"},
    {"br;q=0.1, *", "zstd"},
    {"gzip;q=1.0, *;q=0.5", "gzip"},
    {"gzip, *;q=0", "gzip"},
    {"gzip;q=0.4, *;q=0.5, br;q=0, zstd;q=0, deflate;q=0", "identity"},
    {"gzip;q=1.0, identity; q=0.5, *;q=0", "gzip"},
    // Nothing is acceptable.
    {"identity;q=0", "none"},
    {"*;q=0", "none"},
    {"*;q=0.000", "none"},
    {"compress, identity;q=0", "none"},
    {"gzip;q=0, identity;q=0", "none"},
    {"identity;q=0, compress;q=1, *;q=0", "none"},
    {"identity;q=0, deflate;q=0.001", "deflate"},
    // What breaks the grammar is passed over, and nothing else.
    {"gzip;q=2, deflate", "deflate"},
    {"gzip;q=1.001, deflate", "deflate"},
    {"gzip;q=0.1234, deflate;q=0.1", "deflate"},
    {"gzip;q=-1, deflate", "deflate"},
    {"gzip;q=+1, deflate", "deflate"},
    {"gzip;q=.5, deflate;q=0.1", "deflate"},
    {"gzip;q=01, deflate;q=0.1", "deflate"},
    {"gzip;q=0.5.5, deflate;q=0.1", "deflate"},
    {"gzip;q=1.0000, deflate;q=0.1", "deflate"},
    {"gzip;q=0,5, deflate", "deflate"},
    {"gzip;q=, deflate", "deflate"},
    {"gzip;q, deflate", "deflate"},
    {"gzip;, deflate", "deflate"},
    {"gzip;q =1, deflate;q=0.1", "deflate"},
    {"gzip;q= 1, deflate;q=0.1", "deflate"},
    {"gzip;q=\"1\", deflate;q=0.1", "deflate"},
    {"gzip;level=9, deflate;q=0.1", "deflate"},
    {"gzip;q=1;q=1, deflate;q=0.1", "deflate"},
    {"gzip deflate, deflate;q=0.1", "deflate"},
    {";q=1, deflate;q=0.1", "deflate"},
    {"gzip;q=1\0, deflate;q=0.1"sv, "deflate"},
    {"identity;q=zero", "identity"},
    {"*;q=x", "identity"},
    {",,gzip,,", "gzip"},
    // Said twice: the lower weight.
    {"gzip, gzip;q=0", "identity"},
    {"gzip;q=0.9, deflate;q=0.8, x-gzip;q=0.1", "deflate"},
    {"*;q=0, *", "none"},
};

}  // namespace

TEST_CASE("a content coding is chosen by the client's weights, then by the server's order") {
    for (const Case& one : kCases) {
        CAPTURE(std::string(one.field));
        CHECK(chosen(one.field) == one.coding);
    }
}

TEST_CASE("without the field nothing is encoded") {
    CHECK(chosen({}) == "identity");
}

TEST_CASE("only what is offered is chosen, in its order") {
    const std::vector<ContentCoding> gzip_first = {ContentCoding::gzip, ContentCoding::brotli};
    CHECK(chosen("br, gzip", gzip_first) == "gzip");
    CHECK(chosen("gzip;q=0.9, br", gzip_first) == "br");
    CHECK(chosen("zstd, deflate", gzip_first) == "identity");
    CHECK(chosen("zstd, identity;q=0", gzip_first) == "none");
    CHECK(chosen("gzip", {}) == "identity");
    CHECK(chosen("*;q=0", {}) == "none");
    CHECK(chosen("*", {}) == "identity");
}

TEST_CASE("a server may prefer identity, which counts once the client has named it") {
    const std::vector<ContentCoding> identity_first = {ContentCoding::identity, ContentCoding::gzip};
    CHECK(chosen("gzip, identity", identity_first) == "identity");
    CHECK(chosen("gzip, identity;q=0.9", identity_first) == "gzip");
    CHECK(chosen("*", identity_first) == "identity");
    CHECK(chosen("gzip", identity_first) == "gzip");
    CHECK(chosen("identity;q=0", identity_first) == "none");
}

TEST_CASE("a long field is read to its end") {
    std::string field;
    for (int i = 0; i < 5'000; ++i) {
        field += "gzip;q=7,";
    }
    CHECK(chosen(field) == "identity");
    CHECK(chosen(field + "deflate") == "deflate");
}

TEST_CASE("content codings have names, in any letter case") {
    CHECK(find_content_coding("BR") == ContentCoding::brotli);
    CHECK(find_content_coding("X-GZIP") == ContentCoding::gzip);
    CHECK(find_content_coding("Identity") == ContentCoding::identity);
    CHECK_FALSE(find_content_coding("").has_value());
    CHECK_FALSE(find_content_coding("compress").has_value());
    CHECK_FALSE(find_content_coding("gzip ").has_value());
    CHECK(is_available(ContentCoding::gzip));
    CHECK(is_available(ContentCoding::deflate));
    CHECK_FALSE(is_available(ContentCoding::identity));
    CHECK(available_codings().size() >= 2);
}
