// Internal.
// Cases of HTTP: bytes in, statuses out. Their tables, in this folder, are part of two test programs: in one
// `run_cases` feeds them to a reactor on the simulated platform, in the other to a server on real sockets. Nothing
// here may know which. A table belongs to its test; one thread.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "http/http_text.h"
#include "penstock/penstock.h"

namespace penstock::test {

// What becomes of the connection when all bytes are sent.
enum class Ending : std::uint8_t {
    stays,            // and takes another request
    closes,           // by the server, and cleanly: what the client still sends does not cost it the answer
    closes_as_asked,  // likewise, but the client asked for it: if it sends on all the same, it may meet a reset
    waits,            // for the rest of a message; if the client ends its side instead, nothing more is answered
};

inline bool is_closing(Ending ending) { return ending == Ending::closes || ending == Ending::closes_as_asked; }

// One stream of requests and all that must come of it.
struct Case {
    std::string name;
    std::string request;
    std::string statuses;  // of every reply, as statuses_in gives them
    Ending ending = Ending::closes;
    std::string contains = "";
    std::string lacks = "";
    std::size_t heads = 0;  // so many replies in front answer HEAD
};

inline constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

// Gives back what it was asked with, so that a table can see it.
inline Router case_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("home"); });
    router.any("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.get("/only-get", [](Request&, Response& response) { response.send_static("got"); });
    router.get("/host", [](Request& request, Response& response) { response.send(request.host()); });
    router.get("/value", [](Request& request, Response& response) {
        response.send("[" + std::string(request.header("X-Value")) + "]");
    });
    router.get("/letters", [](Request&, Response& response) { response.send_static(kLetters); });
    return router;
}

inline Config case_config() {
    Config config;
    config.reactors = 1;
    return config;
}

// Each case whole, cut in two, byte by byte and behind a good request, all of which must come to the same.
void run_cases(std::span<const Case> cases, Config config = case_config());

// What came back for some bytes, and whether the server ended its side.
struct Answer {
    std::string bytes;
    bool closed = false;

    bool operator==(const Answer&) const = default;
};

inline void check_answer(const Case& expected, const Answer& answer) {
    CHECK(statuses_in(answer.bytes, expected.heads) == expected.statuses);
    CHECK(answer.closed == is_closing(expected.ending));
    CHECK(answer.bytes.find(expected.contains) != std::string::npos);
    CHECK((expected.lacks.empty() || answer.bytes.find(expected.lacks) == std::string::npos));
}

// A request for /echo with fields as given and a body behind them.
inline std::string post(std::string_view fields, std::string_view body = "") {
    return "POST /echo HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

inline std::string chunked(std::string_view body) {
    return post("Transfer-Encoding: chunked\r\n", body);
}

}  // namespace penstock::test
