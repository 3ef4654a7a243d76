// The reader of a client's first TLS message, which is anything that a peer may send.
#include "penstock/engine/client_hello.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace penstock::test {
namespace {

using Bytes = std::string;

// A run behind its length, which takes so many bytes.
Bytes run(std::size_t length_bytes, const Bytes& content) {
    Bytes result;
    for (std::size_t i = length_bytes; i-- > 0;) {
        result += static_cast<char>(content.size() >> (8 * i));
    }
    return result + content;
}

Bytes number(unsigned value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }
Bytes extension(unsigned type, const Bytes& content) { return number(type) + run(2, content); }

Bytes server_name(const Bytes& name) { return extension(0, run(2, Bytes(1, '\0') + run(2, name))); }
Bytes schemes() { return extension(13, run(2, number(0x0403) + number(0x0804))); }
Bytes protocols() { return extension(16, run(2, run(1, "h2") + run(1, "http/1.1"))); }
Bytes versions() { return extension(43, run(1, number(0x7a7a) + number(0x0304) + number(0x0303))); }

Bytes key_shares(const Bytes& shares) { return extension(51, run(2, shares)); }
Bytes groups() { return extension(10, run(2, number(29) + number(23))); }

Bytes message(const Bytes& body) { return Bytes(1, 1) + run(3, body); }
Bytes record(const Bytes& content) { return Bytes("\x16\x03\x01", 3) + run(2, content); }

Bytes body(const Bytes& extensions, const Bytes& session_id = Bytes(32, 's'), const Bytes& suites = number(0x1301) + number(0xc02b)) {
    return number(0x0303) + Bytes(32, 'r') + run(1, session_id) + run(2, suites) + run(1, Bytes(1, '\0')) + run(2, extensions);
}

Bytes usual() { return message(body(server_name("Example.org") + schemes() + protocols() + versions())); }

HelloStatus read(const Bytes& input, ClientHello* hello, std::vector<std::byte>& scratch) {
    scratch.resize(input.size() + 1);
    return read_client_hello(std::as_bytes(std::span(input)), scratch, hello);
}

HelloStatus status_of(const Bytes& input) {
    ClientHello hello;
    std::vector<std::byte> scratch;
    return read(input, &hello, scratch);
}

void check_usual(const Bytes& input) {
    ClientHello hello;
    std::vector<std::byte> scratch;
    REQUIRE(read(input, &hello, scratch) == HelloStatus::complete);
    CHECK(hello.server_name == "Example.org");
    CHECK(hello.has_session_id);
    CHECK(hello.offers_tls13);
    CHECK(hello.offers_suite(0x1301));
    CHECK(hello.offers_protocol("h2"));
    CHECK(hello.offers_protocol("http/1.1"));
    CHECK_FALSE(hello.offers_protocol("http/1"));
    CHECK_FALSE(hello.offers_protocol("http/1.10"));
    CHECK_FALSE(hello.offers_suite(0x1302));
    CHECK(hello.offers_ecdsa_suite());
    CHECK(hello.offers_scheme(0x0804));
    CHECK_FALSE(hello.offers_scheme(0x0807));
    CHECK(hello.protocols.size() == 12);
}

}  // namespace

TEST_CASE("a hello says whom the client wants and what it takes, however it is cut into records") {
    check_usual(record(usual()));
    for (std::size_t size = 1; size < usual().size(); ++size) {
        CAPTURE(size);
        Bytes cut;
        for (std::size_t at = 0; at < usual().size(); at += size) {
            cut += record(usual().substr(at, size));
        }
        check_usual(cut);
    }
    check_usual(record(usual()) + "what follows is not its business");
}

TEST_CASE("every beginning of a hello is incomplete") {
    const Bytes whole = record(usual());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK(status_of(whole.substr(0, size)) == HelloStatus::incomplete);
    }
}

TEST_CASE("a hello may have no extensions at all, as before TLS 1.2") {
    const Bytes old = number(0x0301) + Bytes(32, 'r') + run(1, "") + run(2, number(0x002f)) + run(1, Bytes(1, '\0'));
    ClientHello hello;
    std::vector<std::byte> scratch;
    const Bytes input = record(message(old));
    REQUIRE(read(input, &hello, scratch) == HelloStatus::complete);
    CHECK(hello.server_name.empty());
    CHECK_FALSE(hello.has_session_id);
    CHECK_FALSE(hello.offers_tls13);
    CHECK_FALSE(hello.offers_ecdsa_suite());
    CHECK_FALSE(hello.falls_back());
}

TEST_CASE("a hello tells that it offers less than its client can do") {
    const auto falls_back = [](const Bytes& extensions, unsigned last_suite) {
        ClientHello hello;
        std::vector<std::byte> scratch;
        const Bytes input = record(message(body(extensions, "", number(0xc02b) + number(last_suite))));
        REQUIRE(read(input, &hello, scratch) == HelloStatus::complete);
        return hello.falls_back();
    };
    CHECK(falls_back(schemes(), 0x5600));
    CHECK_FALSE(falls_back(schemes(), 0x00ff));
    CHECK_FALSE(falls_back(schemes() + versions(), 0x5600));
}

TEST_CASE("a hello tells of early data, and for which groups it has no key yet") {
    const Bytes shares = key_shares(number(0x2a2a) + run(2, "g") + number(29) + run(2, Bytes(32, 'k')));
    ClientHello hello;
    std::vector<std::byte> scratch;
    REQUIRE(read(record(message(body(versions() + groups() + shares + extension(42, "")))), &hello, scratch) == HelloStatus::complete);
    CHECK(hello.sends_early_data);
    CHECK_FALSE(hello.offers_group_later(29));
    CHECK(hello.offers_group_later(23));
    CHECK_FALSE(hello.offers_group_later(24));
    CHECK(hello.binder_bytes == 0);
    const Bytes tickets = extension(41, run(2, run(2, "ticket") + Bytes(4, 'a')) + run(2, run(1, Bytes(48, 'b')) + run(1, Bytes(32, 'b'))));
    REQUIRE(read(record(message(body(versions() + tickets))), &hello, scratch) == HelloStatus::complete);
    CHECK(hello.binder_bytes == 48);
    REQUIRE(read(record(message(body(versions() + groups() + key_shares("")))), &hello, scratch) == HelloStatus::complete);
    CHECK_FALSE(hello.sends_early_data);
    CHECK(hello.offers_group_later(29));
}

TEST_CASE("what is no record is no TLS") {
    for (const char* const text : {"GET / HTTP/1.1\r\n", "\x80\x2e\x01\x03\x01", "\x15\x03\x01", "\x17"}) {
        CHECK(status_of(text) == HelloStatus::no_tls);
    }
}

TEST_CASE("what breaks a rule of the message is malformed") {
    const Bytes usual_extensions = schemes() + versions();
    const std::vector<Bytes> cases = {
        Bytes("\x16\x02\x00\x00\x05\x01\x00\x00\x01\x00", 10),                         // version 2
        Bytes("\x16\x03\x01\x00\x00", 5),                                              // an empty record
        Bytes("\x16\x03\x01\x40\x01\x01", 6),                                          // a record that is too long
        record(Bytes(1, 2) + run(3, "x")),                                             // another message
        record(Bytes(1, 1)) + "x",                                                     // its rest is no record
        record(message("")),
        record(message(body(usual_extensions, Bytes(33, 's')))),                       // RFC 8446 §4.1.2: 32 at most
        record(message(body(usual_extensions, "", ""))),                               // no suites
        record(message(body(usual_extensions, "", "abc"))),                            // half a suite
        record(message(body(usual_extensions) + "x")),                                 // something behind it
        record(message(body("x"))),                                                    // half an extension
        record(message(body(number(0) + Bytes("\xff\xff", 2)))),                       // one that is longer than what there is
        record(message(body(server_name("")))),
        record(message(body(extension(0, run(2, Bytes(1, '\0') + run(2, "a")) + "x")))),
        record(message(body(extension(13, run(2, "abc"))))),
        record(message(body(extension(13, "")))),
        record(message(body(extension(16, run(2, ""))))),
        record(message(body(extension(16, run(2, run(1, "")))))),                      // RFC 7301 §3.1: not empty
        record(message(body(extension(43, run(1, "a"))))),
        record(message(body(extension(10, run(2, "abc"))))),
        record(message(body(extension(42, "a")))),
        record(message(body(key_shares(number(29) + run(2, ""))))),
        record(message(body(key_shares("a")))),
        record(message(body(extension(51, run(2, "") + "x")))),
        record(message(body(extension(41, run(2, "") + run(2, run(1, "b")))))),
        record(message(body(extension(41, run(2, "ticket") + run(2, ""))))),
        record(message(body(extension(41, run(2, "ticket") + run(2, run(1, "")))))),
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
        CAPTURE(i);
        CHECK(status_of(cases[i]) == HelloStatus::malformed);
    }
}

TEST_CASE("no change of one byte makes the reader look outside") {
    const Bytes whole = record(usual());
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const int value : {0x00, 0x01, 0x16, 0x7f, 0x80, 0xff}) {
            Bytes changed = whole;
            changed[at] = static_cast<char>(value);
            ClientHello hello;
            std::vector<std::byte> scratch;
            // An exact copy on the heap: AddressSanitizer sees what goes beyond.
            const std::vector<char> exact(changed.begin(), changed.end());
            scratch.resize(exact.size());
            if (read_client_hello(std::as_bytes(std::span(exact)), scratch, &hello) == HelloStatus::complete) {
                std::size_t sum = 0;
                for (const char byte : hello.server_name) {
                    sum += static_cast<unsigned char>(byte);
                }
                CHECK(sum <= 255 * exact.size());
            }
        }
    }
}

}  // namespace penstock::test
