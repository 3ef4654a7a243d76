#include "scenarios.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "penstock/protocols/http/static_files.h"

namespace penstock::perf {

namespace {

// How many routes a large program has, and the one of them that is asked for.
constexpr int kManyRoutes = 1'000;
constexpr std::size_t kLargeBytes = 100 * 1'024;

// One that the cache keeps, and one that sendfile sends.
constexpr SiteFile kSmallFile{"small.html", 1'024};
constexpr SiteFile kLargeFile{"large.bin", 1'024 * 1'024};
constexpr std::array<SiteFile, 2> kFiles = {kSmallFile, kLargeFile};

// The least that a client may send.
constexpr std::string_view kPlainRequest = "GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
constexpr std::string_view kLargeRequest = "GET /large HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
// What a desktop browser sends for a page that it opens.
constexpr std::string_view kBrowserRequest =
    "GET /plaintext HTTP/1.1\r\n"
    "Host: 127.0.0.1:8080\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Connection: keep-alive\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "\r\n";
constexpr std::string_view kPostRequest =
    "POST /echo HTTP/1.1\r\n"
    "Host: 127.0.0.1:8080\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: 26\r\n"
    "\r\n"
    R"({"name":"you","count":123})";

constexpr std::array<Scenario, 14> kScenarios = {{
    {.name = "plaintext", .request = kPlainRequest, .body_bytes = 13},
    {.name = "pipelined", .request = kPlainRequest, .body_bytes = 13, .depth = 16},
    {.name = "browser", .request = kBrowserRequest, .body_bytes = 13},
    {.name = "json", .request = "GET /json HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", .body_bytes = 27},
    {.name = "parameters", .request = "GET /hello/you HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", .body_bytes = 3},
    {.name = "routes",
     .request = "GET /api/v1/resource500/7/parts HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
     .body_bytes = 2},
    {.name = "middleware",
     .request = "GET /layers/plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
     .body_bytes = 13},
    {.name = "post", .request = kPostRequest, .body_bytes = 26},
    {.name = "body-100k", .request = kLargeRequest, .body_bytes = kLargeBytes},
    {.name = "close",
     .request = "GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n\r\n",
     .body_bytes = 13,
     .closes = true},
    {.name = "file-cached",
     .request = "GET /site/small.html HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
     .body_bytes = kSmallFile.bytes,
     .has_file = true},
    {.name = "file-sent",
     .request = "GET /site/large.bin HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
     .body_bytes = kLargeFile.bytes,
     .has_file = true},
    {.name = "tls", .request = kPlainRequest, .body_bytes = 13, .tls = true},
    {.name = "tls-100k", .request = kLargeRequest, .body_bytes = kLargeBytes, .tls = true},
}};

void answer_plaintext(Request&, Response& response) { response.send_static("Hello, World!"); }

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

const Scenario* find_scenario(std::string_view name) {
    for (const Scenario& scenario : kScenarios) {
        if (scenario.name == name) {
            return &scenario;
        }
    }
    return nullptr;
}

std::span<const SiteFile> site_files() { return kFiles; }

Router make_router(const std::string& site) {
    static const std::string large(kLargeBytes, 'x');
    Router router;
    router.get("/plaintext", answer_plaintext);
    router.get("/json", [](Request&, Response& response) { response.json(R"({"message":"Hello, World!"})"); });
    router.get("/hello/:name", [](Request& request, Response& response) { response.send(request.parameter("name")); });
    router.get("/large", [](Request&, Response& response) { response.send_static(large); });
    router.post("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    for (int i = 0; i < kManyRoutes; ++i) {
        router.get("/api/v1/resource" + std::to_string(i) + "/:id/parts",
                   [](Request&, Response& response) { response.send_static("ok"); });
    }
    Router& layers = router.group("/layers");
    for (int i = 0; i < 3; ++i) {
        layers.use({.before = [](Request&, Response&) {},
                    .head = [](const Request&, Response&) {},
                    .done = [](const Request&, const Response&) {}});
    }
    layers.get("/plaintext", answer_plaintext);
    if (!site.empty()) {
        const Result<PlainHandler> files = static_files(site, {.cache = {.time_to_live_ms = 3'600'000}});
        if (!files.ok()) {
            std::fprintf(stderr, "budget: %s\n", files.error().message.c_str());
            std::exit(1);
        }
        router.get("/site/*path", files.value());
    }
    return router;
}

}  // namespace penstock::perf
