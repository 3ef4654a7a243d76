// The load program: requests from one thread to a server on the loopback interface, checked and counted.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "load/load_loop.h"
#include "load/options.h"
#include "load/tls.h"

namespace {

using namespace penstock::load;

constexpr int kStepLimitMs = 60'000;  // how long the one who takes the measure may leave us waiting
// The ramp, warming up, the flow, the patience behind both, and the two steps take a minute each at most. By then this program
// is ended, whatever has become of it.
constexpr unsigned kLongestS = 7 * 60;

int measure(const Options& options);
bool raise_descriptor_limit(std::uint32_t connections);
bool wait_for_step();
void print_result(const Options& options, const Figures& figures, const Tally& tally,
                  const TlsFigures* tls);
void print_tls(const TlsFigures& tls);
void print_histogram(const Histogram& latency_ns);

}  // namespace

int main(int argc, char** argv) {
    const std::optional<Options> options = parse_options(argc, argv);
    if (!options) {
        return 2;
    }
    if (!raise_descriptor_limit(options->connections)) {
        std::fprintf(stderr,
                     "penstock_load: %u connections are more than the hard limit of descriptors allows\n",
                     options->connections);
        return EXIT_FAILURE;
    }
    ::alarm(kLongestS);
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL sends without MSG_NOSIGNAL
    ::prctl(PR_SET_TIMERSLACK, 1);  // requests that are due wake us then, and not 50 µs later
    try {
        return measure(*options);
    } catch (const std::runtime_error& problem) {
        std::fprintf(stderr, "penstock_load: %s\n", problem.what());
        return EXIT_FAILURE;
    }
}

namespace {

int measure(const Options& options) {
    LoadLoop loop(options);
    if (const std::string complaint = loop.ramp(); !complaint.empty()) {
        std::fprintf(stderr, "penstock_load: %s\n", complaint.c_str());
        return EXIT_FAILURE;
    }
    if (options.warm_s > 0) {
        loop.flow(options.warm_s, UINT64_MAX);
    }
    std::puts("READY");
    std::fflush(stdout);
    if (options.in_step && !wait_for_step()) {
        return EXIT_FAILURE;
    }
    loop.flow(options.seconds, options.requests);
    print_result(options, loop.figures(), loop.tally(), loop.tls());
    if (options.in_step) {
        wait_for_step();  // with all connections open: what it takes to end them is no part of the measure
    }
    return EXIT_SUCCESS;
}

bool raise_descriptor_limit(std::uint32_t connections) {
    constexpr rlim_t kOtherDescriptors = 16;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < connections + kOtherDescriptors) {
        return false;
    }
    limit.rlim_cur = limit.rlim_max;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// For one byte or the end of standard input; false at its end, and after the limit.
bool wait_for_step() {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    char byte = 0;
    return ::poll(&input, 1, kStepLimitMs) == 1 && ::read(STDIN_FILENO, &byte, 1) == 1;
}

void print_result(const Options& options, const Figures& figures, const Tally& tally,
                  const TlsFigures* tls) {
    const auto us = [](double ns) {
        return ns / 1e3;
    };
    const auto quantile_us = [&](double share) {
        return us(static_cast<double>(figures.latency_ns.quantile(share)));
    };
    const auto per_second = [&](std::uint64_t count) {
        return figures.seconds > 0 ? static_cast<double>(count) / figures.seconds : 0;
    };
    std::printf("{\"requests\": %" PRIu64 ", \"asked\": %" PRIu64 ", \"seconds\": %.6f, \"per_second\": %.1f, ",
                figures.requests, figures.asked, figures.seconds, per_second(figures.requests));
    std::printf("\"bytes\": %" PRIu64 ", \"bytes_per_second\": %.0f, ", figures.bytes,
                per_second(figures.bytes));
    std::printf("\"mean_us\": %.1f, \"p50_us\": %.1f, \"p95_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
                "\"max_us\": %.1f, ",
                us(figures.latency_ns.mean()), quantile_us(0.5), quantile_us(0.95), quantile_us(0.99),
                quantile_us(0.999), us(static_cast<double>(figures.latency_ns.largest())));
    std::printf("\"errors\": %" PRIu64 ", \"wrong_status\": %" PRIu64 ", \"wrong_length\": %" PRIu64
                ", \"malformed\": %" PRIu64 ", \"closed\": %" PRIu64 ", \"refused\": %" PRIu64
                ", \"unanswered\": %" PRIu64 ", \"unended\": %" PRIu64 ", ",
                tally.sum(), tally.wrong_status, tally.wrong_length, tally.malformed, tally.closed,
                tally.refused, tally.unanswered, tally.unended);
    std::printf("\"reopened\": %" PRIu64 ", \"cpu_s\": %.6f", figures.reopened, figures.cpu_s);
    if (tls != nullptr) {
        print_tls(*tls);
    }
    if (options.prints_histogram) {
        print_histogram(figures.latency_ns);
    }
    std::puts("}");
    std::fflush(stdout);
}

// The names are OpenSSL's own, which have nothing that JSON would have to escape.
void print_tls(const TlsFigures& tls) {
    std::printf(", \"handshakes\": %" PRIu64 ", \"resumed\": %" PRIu64 ", \"tls_version\": \"%s\", \"tls_suite\": \"%s\", "
                "\"tls_group\": \"%s\", \"tls_certificate\": \"%s\"",
                tls.handshakes, tls.resumed, tls.version.c_str(), tls.suite.c_str(), tls.group.c_str(),
                tls.certificate.c_str());
}

void print_histogram(const Histogram& latency_ns) {
    std::printf(", \"latency_ns\": {\"sum\": %.0f, \"largest\": %" PRIu64 ", \"buckets\": [", latency_ns.sum(),
                latency_ns.largest());
    const char* separator = "";
    for (const Histogram::Bucket& bucket : latency_ns.filled()) {
        std::printf("%s[%" PRIu64 ", %" PRIu64 "]", separator, bucket.upper_end, bucket.count);
        separator = ", ";
    }
    std::fputs("]}", stdout);
}

}  // namespace
