#include <penstock/penstock.h>

int main() {
    penstock::Router router;
    router.get("/hello/:name", [](penstock::Request& request, penstock::Response& response) {
        response.send("Hello, " + std::string(request.parameter("name")) + "!\n");
    });
    router.post("/shout", [](penstock::Request& request, penstock::Response& response) {
        response.status(201).header("X-Louder", "yes").send(std::string(request.body()) + "!\n");
    });
    router.get("/later", [](penstock::Request&, penstock::Response& response) -> penstock::Task<> {
        co_await penstock::sleep_ms(100);  // the reactor serves others meanwhile
        response.send("at last\n");
    });

    penstock::Server server({.reactors = 0});  // one per core
    server.listen({.port = 8080}, router);
    return server.run();  // until SIGTERM or SIGINT, and then until what is under way is answered
}
