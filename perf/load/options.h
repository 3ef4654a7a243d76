// Internal.
// What the command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::load {

struct Options {
    std::uint32_t address = 0x7f000001;  // within 127.0.0.0/8
    std::uint16_t port = 0;
    std::string path = "/";
    std::string method = "GET";
    std::uint32_t body_bytes = 0;
    std::uint32_t connections = 50;
    std::uint32_t depth = 1;  // requests that are on their way at once on a connection
    bool closes = false;      // a connection for each request
    double rate = 0;          // requests that are due in a second, in all; 0: the next after an answer
    double seconds = 1;
    double warm_s = 0;
    std::uint64_t requests = UINT64_MAX;  // at most so many, those before READY aside
    double patience_s = 5;
    unsigned status = 200;
    std::optional<std::uint64_t> length;  // that of the first response
    bool in_step = false;
    bool is_json = false;  // the body of each request
    bool prints_histogram = false;
    bool is_tls = false;
    bool resumes = false;     // each connection the session of the one before
    std::string tls_version;  // this and the next two as OpenSSL has them; empty: what it offers by itself
    std::string tls_groups;
    std::string tls_suites;
};

// Nothing after it has said on stderr what is wrong.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace penstock::load
