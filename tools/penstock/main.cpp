// The server program: `penstock serve DIR` and `penstock echo`.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "demo.h"
#include "options.h"
#include "penstock/penstock.h"
#include "penstock/protocols/http/static_files.h"
#include "tls_options.h"

namespace penstock::program {

namespace {

int run(int argc, const char* const* argv);
Result<void> add_routes(const Options& options, Router* router);
std::string first_line(const Options& options, const Server& server);
void log_line(LogLevel level, std::string_view line);
int fail(std::string_view message);
void print_line(const std::string& line);
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace

}  // namespace penstock::program

int main(int argc, char** argv) {
    try {
        return penstock::program::run(argc, argv);
    } catch (const std::exception& failure) {
        return penstock::program::fail(failure.what());
    }
}

namespace penstock::program {

namespace {

int run(int argc, const char* const* argv) {
    ParsedOptions parsed = parse_options(argc, argv);
    if (parsed.exit_status) {
        return *parsed.exit_status;
    }
    // Whoever read the first line and left must not end the server with it.
    std::signal(SIGPIPE, SIG_IGN);
    Options& options = parsed.options;
    options.config.log = log_line;
    if (const Result<void> completed = complete_tls_options(&options); !completed.ok()) {
        return fail(completed.error().message);
    }
    Router router;
    if (const Result<void> added = add_routes(options, &router); !added.ok()) {
        return fail(added.error().message);
    }
    Server server(options.config);
    server.listen(options.listen, router);
    if (options.redirect_port != 0) {
        ListenOptions plain = options.listen;
        plain.tls.reset();
        plain.port = options.redirect_port;
        Router redirects;
        redirects.any("/*path", redirect_to_https(options.listen.port));
        server.listen(plain, redirects);
    }
    if (const Result<void> started = server.start(); !started.ok()) {
        return fail(started.error().message);
    }
    server.wait_for_signal([&] { print_line(first_line(options, server)); });
    print_line("penstock served " + counted(server.stats().requests, "request"));
    return 0;
}

// The library names what a program sets; here it is the command line that was wrong.
Error in_terms_of_options(Error error) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"StaticFileOptions::prewarm", "--prewarm"},
        {"StaticFileOptions::spa_fallback", "--spa"},
        {"StaticFileOptions::cache_control", "--cache-control"},
        {"cache.entries", "--file-cache"},
    };
    for (const auto& [name, option] : kNames) {
        if (const std::size_t at = error.message.find(name); at != std::string::npos) {
            error.message.replace(at, name.size(), option);
        }
    }
    return error;
}

Result<void> add_routes(const Options& options, Router* router) {
    if (options.command == Command::echo) {
        router->any("/*path", echo_handler());
        return {};
    }
    const Result<PlainHandler> files = static_files(options.directory, options.files);
    if (!files.ok()) {
        return in_terms_of_options(files.error());
    }
    if (options.hsts_s != 0) {
        router->use(hsts({.max_age_s = options.hsts_s}));
    }
    if (options.compress) {
        const Result<Middleware> compression = compress();
        if (!compression.ok()) {
            return compression.error();
        }
        router->use(compression.value());
    }
    if (options.demo) {
        add_demo_routes(*router, options.directory);
    }
    router->get("/*path", files.value());
    return {};
}

std::string place_of(const ListenOptions& listen, const Server& server);

// "penstock 0.1.0 serves ./site at http://127.0.0.1:8080 with 2 reactors"
std::string first_line(const Options& options, const Server& server) {
    const std::string what = options.command == Command::echo ? "echoes" : "serves " + options.directory;
    return "penstock " + std::string(version()) + " " + what + " at " + place_of(options.listen, server) +
           " with " + counted(server.reactor_count(), "reactor");
}

// As a person would type it into a browser.
std::string place_of(const ListenOptions& listen, const Server& server) {
    const std::string& address = listen.address;
    if (address.starts_with("unix:")) {
        return address;
    }
    const std::string scheme = listen.tls.has_value() ? "https://" : "http://";
    const std::string port = ":" + std::to_string(server.port());
    if (address.empty()) {
        return scheme + "localhost" + port + ", on all addresses,";
    }
    const bool is_bare_ipv6 = address.find(':') != std::string::npos && !address.starts_with('[');
    return scheme + (is_bare_ipv6 ? "[" + address + "]" : address) + port;
}

// Called by any reactor. One call writes the line, so that lines do not mix.
void log_line(LogLevel level, std::string_view line) {
    constexpr std::string_view kNames[] = {"debug: ", "", "warning: ", "error: "};
    if (level < LogLevel::info) {
        return;
    }
    const std::string text = std::string(kNames[static_cast<std::size_t>(level)]).append(line).append("\n");
    std::fwrite(text.data(), 1, text.size(), stderr);
}

int fail(std::string_view message) {
    std::fprintf(stderr, "penstock: %.*s\n", static_cast<int>(message.size()), message.data());
    return kExitFailure;
}

// At once, also into a pipe: somebody may wait for it.
void print_line(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

std::string counted(std::uint64_t count, std::string_view noun) {
    return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace

}  // namespace penstock::program
