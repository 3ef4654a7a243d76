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

namespace penstock::program {

namespace {

int run(int argc, const char* const* argv);
Result<void> add_routes(const Options& options, Router* router);
Result<void> add_hsts(const Options& options, Router* router);
Router redirecting_router(const Server& server);
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
    Router router;
    if (const Result<void> added = add_routes(options, &router); !added.ok()) {
        return fail(added.error().message);
    }
    std::string fingerprint;
    if (options.tls.is_on()) {
        Result<TlsOptions> tls = make_tls(options.tls, &fingerprint);
        if (!tls.ok()) {
            return fail(tls.error().message);
        }
        options.listen.tls = std::move(tls.value());
    }
    Server server(options.config);
    server.listen(options.listen, router);
    if (options.tls.redirect_port) {
        ListenOptions plain = options.listen;
        plain.port = *options.tls.redirect_port;
        plain.tls.reset();
        server.listen(plain, redirecting_router(server));
    }
    if (const Result<void> started = server.start(); !started.ok()) {
        return fail(started.error().message);
    }
    server.wait_for_signal([&] {
        print_line(first_line(options, server));
        if (!fingerprint.empty()) {
            print_line("SHA-256 of its certificate: " + fingerprint);
        }
    });
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
    if (const Result<void> added = add_hsts(options, router); !added.ok()) {
        return added;
    }
    if (options.command == Command::echo) {
        router->any("/*path", echo_handler());
        return {};
    }
    const Result<PlainHandler> files = static_files(options.directory, options.files);
    if (!files.ok()) {
        return in_terms_of_options(files.error());
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

Result<void> add_hsts(const Options& options, Router* router) {
    if (options.tls.hsts_s) {
        const Result<Middleware> field = hsts({.max_age_s = *options.tls.hsts_s});
        if (!field.ok()) {
            return field.error();
        }
        router->use(field.value());
    }
    return {};
}

// The port is known when requests come, not before: it may be the kernel's choice.
Router redirecting_router(const Server& server) {
    Router router;
    router.any(
        "/*path",
        [&server](Request& request, Response& response) {
            send_https_redirect(request, response, {.port = server.port()});
        },
        {.stream_body = true});
    return router;
}

std::string place_of(const ListenOptions& listen, std::string_view scheme, std::uint16_t port);

// "penstock 0.1.0 serves ./site at http://127.0.0.1:8080 with 2 reactors"
std::string first_line(const Options& options, const Server& server) {
    const std::string what = options.command == Command::echo ? "echoes" : "serves " + options.directory;
    std::string line = "penstock " + std::string(version()) + " " + what + " at " +
                       place_of(options.listen, options.tls.is_on() ? "https" : "http", server.port());
    if (options.tls.redirect_port) {
        line += " and sends there whoever comes to " + place_of(options.listen, "http", server.port(1));
    }
    return line + " with " + counted(server.reactor_count(), "reactor");
}

// As a person would type it into a browser.
std::string place_of(const ListenOptions& listen, std::string_view scheme, std::uint16_t port) {
    const std::string& address = listen.address;
    if (address.starts_with("unix:")) {
        return address;
    }
    const std::string begin = std::string(scheme) + "://";
    const std::string end = ":" + std::to_string(port);
    if (address.empty()) {
        return begin + "localhost" + end + ", on all addresses,";
    }
    const bool is_bare_ipv6 = address.find(':') != std::string::npos && !address.starts_with('[');
    return begin + (is_bare_ipv6 ? "[" + address + "]" : address) + end;
}

// Called by any reactor. One call writes the line, so that lines do not mix.
void log_line(LogLevel level, std::string_view line) {
    if (level < LogLevel::info) {
        return;
    }
    constexpr std::string_view kKinds[] = {"debug: ", "", "warning: ", "error: "};
    const std::string text = std::string(kKinds[static_cast<std::size_t>(level)]).append(line).append("\n");
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
