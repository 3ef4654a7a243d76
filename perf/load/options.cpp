#include "load/options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

namespace penstock::load {

namespace {

constexpr std::uint32_t kConnectionsLimit = 10'000;
constexpr std::uint32_t kDepthLimit = 1'024;
constexpr std::uint32_t kBodyLimitBytes = 64 << 20;
constexpr double kSecondsLimit = 60;
constexpr double kRateLimit = 10e6;
constexpr std::array<std::string_view, 5> kMethods = {"GET", "HEAD", "POST", "PUT", "DELETE"};
constexpr const char* kUsage = R"(usage: penstock_load --port N [OPTION...]

Makes requests to a server on the loopback interface, prints READY when each connection has had an answer, and counts
from there. Ends with one line of JSON, and within seven minutes whatever the server does.

  --port N            of the server
  --address A         of it, within 127.0.0.0/8 (127.0.0.1)
  --path PATH         what is asked for (/)
  --method METHOD     GET, HEAD, POST, PUT or DELETE (GET)
  --body BYTES        of each request (0)
  --json              it is JSON, a string, and the request says so; of 2 bytes or more
  --connections N     1 to 10,000 (50)
  --depth N           so many requests are sent at once, and the next after the last answer (1)
  --close             a new connection for each request
  --rate N            so many requests are due in each second, whatever has been answered; their latency counts from
                      when they were due. Without it a connection's next request follows its last answer.
  --seconds S         how long requests are made, at most 60 (1)
  --warm S            seconds of the same before READY (0)
  --requests N        at most so many, those before READY not among them
  --patience S        how long to wait for an answer at the beginning and at the end, at most 60 (5)
  --status N          of the expected response (200)
  --length BYTES      of its body (that of the first response)
  --in-step           after READY wait for a byte on standard input, and after the result for another or its end
  --histogram         the result has the latencies too, by buckets, so that those of several programs can be added
  --tls               by TLS; certificates are not verified
  --tls-version V     only 1.2 or 1.3
  --tls-groups LIST   of key exchange, for example X25519:P-256
  --tls-suites LIST   those of 1.3, or with --tls-version 1.2 those of 1.2 by OpenSSL's names
  --resume            a new connection for each request, which resumes the session of the one before
)";

enum Choice : int {
    choose_port = 1,
    choose_address,
    choose_path,
    choose_method,
    choose_body,
    choose_connections,
    choose_depth,
    choose_close,
    choose_rate,
    choose_seconds,
    choose_warm,
    choose_requests,
    choose_patience,
    choose_status,
    choose_length,
    choose_in_step,
    choose_json,
    choose_histogram,
    choose_tls,
    choose_tls_version,
    choose_tls_groups,
    choose_tls_suites,
    choose_resume,
};

constexpr std::array<option, 24> kOptions = {{
    {"port", required_argument, nullptr, choose_port},
    {"address", required_argument, nullptr, choose_address},
    {"path", required_argument, nullptr, choose_path},
    {"method", required_argument, nullptr, choose_method},
    {"body", required_argument, nullptr, choose_body},
    {"connections", required_argument, nullptr, choose_connections},
    {"depth", required_argument, nullptr, choose_depth},
    {"close", no_argument, nullptr, choose_close},
    {"rate", required_argument, nullptr, choose_rate},
    {"seconds", required_argument, nullptr, choose_seconds},
    {"warm", required_argument, nullptr, choose_warm},
    {"requests", required_argument, nullptr, choose_requests},
    {"patience", required_argument, nullptr, choose_patience},
    {"status", required_argument, nullptr, choose_status},
    {"length", required_argument, nullptr, choose_length},
    {"in-step", no_argument, nullptr, choose_in_step},
    {"json", no_argument, nullptr, choose_json},
    {"histogram", no_argument, nullptr, choose_histogram},
    {"tls", no_argument, nullptr, choose_tls},
    {"tls-version", required_argument, nullptr, choose_tls_version},
    {"tls-groups", required_argument, nullptr, choose_tls_groups},
    {"tls-suites", required_argument, nullptr, choose_tls_suites},
    {"resume", no_argument, nullptr, choose_resume},
    {nullptr, 0, nullptr, 0},
}};

bool take(int choice, std::string_view value, Options* options);
template <typename Number>
bool parse_number(std::string_view text, Number* number, Number lowest, Number highest);
bool parse_address(std::string_view text, std::uint32_t* address);
bool parse_path(std::string_view text, std::string* path);
bool parse_method(std::string_view text, std::string* method);

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
    Options options;
    for (int choice = 0, at = 0; (choice = ::getopt_long(argc, argv, "", kOptions.data(), &at)) != -1;) {
        const std::string_view value = optarg == nullptr ? "" : optarg;
        if (choice == '?' || !take(choice, value, &options)) {
            if (choice != '?') {
                std::fprintf(stderr, "penstock_load: --%s cannot be \"%s\"\n",
                             kOptions[static_cast<std::size_t>(at)].name, optarg);
            }
            std::fputs(kUsage, stderr);
            return {};
        }
    }
    if (optind != argc || options.port == 0) {
        std::fputs(kUsage, stderr);
        return {};
    }
    if (options.closes && options.depth > 1) {
        std::fputs("penstock_load: --close is for one request on each connection, without --depth\n", stderr);
        return {};
    }
    const bool wants_tls = options.resumes || !options.tls_version.empty() || !options.tls_groups.empty() ||
                           !options.tls_suites.empty();
    if (wants_tls && !options.is_tls) {
        std::fputs("penstock_load: --resume, --tls-version, --tls-groups and --tls-suites are for --tls\n", stderr);
        return {};
    }
    if (options.is_json && options.body_bytes < 2) {
        std::fputs("penstock_load: --json is for a --body of 2 bytes or more\n", stderr);
        return {};
    }
    return options;
}

namespace {

bool take(int choice, std::string_view value, Options* options) {
    switch (choice) {
        case choose_port: return parse_number<std::uint16_t>(value, &options->port, 1, UINT16_MAX);
        case choose_address: return parse_address(value, &options->address);
        case choose_path: return parse_path(value, &options->path);
        case choose_method: return parse_method(value, &options->method);
        case choose_body: return parse_number(value, &options->body_bytes, 0u, kBodyLimitBytes);
        case choose_connections: return parse_number(value, &options->connections, 1u, kConnectionsLimit);
        case choose_depth: return parse_number(value, &options->depth, 1u, kDepthLimit);
        case choose_close: return options->closes = true;
        case choose_rate: return parse_number(value, &options->rate, 1e-3, kRateLimit);
        case choose_seconds: return parse_number(value, &options->seconds, 1e-3, kSecondsLimit);
        case choose_warm: return parse_number(value, &options->warm_s, 0.0, kSecondsLimit);
        case choose_requests: return parse_number<std::uint64_t>(value, &options->requests, 1, UINT64_MAX);
        case choose_patience: return parse_number(value, &options->patience_s, 1e-3, kSecondsLimit);
        case choose_status: return parse_number(value, &options->status, 200u, 599u);
        case choose_length:
            return parse_number<std::uint64_t>(value, &options->length.emplace(), 0, UINT64_MAX);
        case choose_in_step: return options->in_step = true;
        case choose_json: return options->is_json = true;
        case choose_histogram: return options->prints_histogram = true;
        case choose_tls: return options->is_tls = true;
        case choose_tls_version: options->tls_version = value; return value == "1.2" || value == "1.3";
        case choose_tls_groups: options->tls_groups = value; return !value.empty();
        case choose_tls_suites: options->tls_suites = value; return !value.empty();
        case choose_resume: return options->resumes = options->closes = true;
        default: return false;
    }
}

template <typename Number>
bool parse_number(std::string_view text, Number* number, Number lowest, Number highest) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc{} && end == text.data() + text.size() && *number >= lowest &&
           *number <= highest;
}

bool parse_address(std::string_view text, std::uint32_t* address) {
    constexpr std::uint32_t kLoopbackNet = 127;  // RFC 1122 §3.2.1.3
    in_addr parsed{};
    const bool is_one = ::inet_pton(AF_INET, std::string(text).c_str(), &parsed) == 1;
    *address = ntohl(parsed.s_addr);
    return is_one && *address >> 24 == kLoopbackNet;
}

bool parse_path(std::string_view text, std::string* path) {
    *path = text;
    return text.starts_with('/') &&
           std::ranges::all_of(text, [](char each) { return each > ' ' && each < 0x7f; });
}

bool parse_method(std::string_view text, std::string* method) {
    *method = text;
    return std::ranges::find(kMethods, text) != kMethods.end();
}

}  // namespace

}  // namespace penstock::load
