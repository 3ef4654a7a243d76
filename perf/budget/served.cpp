// Serves the routes of the budgets on a real socket, for tools that count from outside:
//
//     penstock_budget_served [DIRECTORY]      of the files, in "site"
//
// Prints its port, and ends on SIGTERM.
#include <cstdio>

#include "penstock/penstock.h"
#include "scenarios.h"

int main(int count, char** arguments) {
    penstock::Server server({.reactors = 1});
    server.listen({.address = "127.0.0.1"}, penstock::perf::make_router(count > 1 ? arguments[1] : ""));
    return server.run([&server] {
        std::printf("%u\n", static_cast<unsigned>(server.port()));
        std::fflush(stdout);
    });
}
