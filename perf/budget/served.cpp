// Serves the routes of the budgets on a real socket, for tools that count from outside:
//
//     penstock_budget_served [DIRECTORY [PORT [tls]]]      of the files, in "site"; "" for none
//
// Without a port the kernel chooses one. Prints it, and ends on SIGTERM.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "penstock/penstock.h"
#include "scenarios.h"

int main(int count, char** arguments) {
    std::uint16_t port = 0;
    if (count > 2) {
        const std::string_view text = arguments[2];
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        if (error != std::errc{} || end != text.data() + text.size()) {
            std::fprintf(stderr, "penstock_budget_served: \"%s\" is no port\n", arguments[2]);
            return 2;
        }
    }
    penstock::ListenOptions options{.address = "127.0.0.1", .port = port};
    if (count > 3 && arguments[3] == std::string_view("tls")) {
        const auto made = penstock::make_self_signed_certificate({"localhost"});
        if (!made.ok()) {
            std::fprintf(stderr, "penstock_budget_served: %s\n", made.error().message.c_str());
            return 1;
        }
        options.tls.emplace();
        options.tls->certificates.push_back(made.value());
    }
    penstock::Server server({.reactors = 1});
    server.listen(options, penstock::perf::make_router(count > 1 ? arguments[1] : ""));
    return server.run([&server] {
        std::printf("%u\n", static_cast<unsigned>(server.port()));
        std::fflush(stdout);
    });
}
