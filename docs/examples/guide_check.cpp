// A test of a handler, as docs/GUIDE.md shows it: the server in the test's own process, asked over loopback.
#include <penstock/penstock.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

using namespace penstock;

namespace {

// All that the server answers until it closes; any client for HTTP does as well.
std::string ask(std::uint16_t port, const std::string& request) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string answer;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
        char bytes[4'096];
        for (ssize_t count = 0; (count = ::recv(fd, bytes, sizeof bytes, 0)) > 0;) {
            answer.append(bytes, static_cast<std::size_t>(count));
        }
    }
    ::close(fd);
    return answer;
}

}  // namespace

// [testing]
int main() {
    Router router;
    router.get("/hello/:name", [](Request& request, Response& response) {
        response.send("Hello, " + std::string(request.parameter("name")) + "!\n");
    });
    Server server({.reactors = 1});
    server.listen({.address = "127.0.0.1"}, router);  // port 0: a free one
    if (const auto started = server.start(); !started) {
        std::fprintf(stderr, "%s\n", started.error().message.c_str());
        return 1;
    }
    const std::string answer = ask(server.port(), "GET /hello/you HTTP/1.0\r\n\r\n");
    server.stop();
    server.wait();
    return answer.ends_with("\r\n\r\nHello, you!\n") ? 0 : 1;
}
// [/testing]
