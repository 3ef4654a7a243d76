// The snippets of docs/GUIDE.md, as one program: guide, in a directory with site/index.html, report.csv and uploads/. It
// prints its port, and serves until SIGTERM. A region "[name]" is what the guide shows under that name; guide_test.py
// compares the two and asks the program whether it does what the guide says.
#include <penstock/penstock.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "guide_backend.h"

using namespace penstock;

namespace {

void add_routes(Router& router) {
    // [routes]
    router.get("/", [](Request&, Response& response) { response.send("home\n"); });
    router.get("/users/me", [](Request&, Response& response) { response.send("you\n"); });
    router.get("/users/:id", [](Request& request, Response& response) {
        response.send("user " + std::string(request.parameter("id")) + "\n");
    });
    router.get("/tree/*path", [](Request& request, Response& response) {
        response.send(request.parameter("path"));  // "a/b" for /tree/a/b
    });

    Router& api = router.group("/api");
    api.get("/version", [](Request&, Response& response) { response.json(R"({"version":1})"); });

    router.fallback([](Request& request, Response& response) {
        response.status(404).send("nothing at " + std::string(request.path()) + "\n");
    });
    // [/routes]
}

void add_requests(Router& router) {
    // [requests]
    router.get("/search", [](Request& request, Response& response) {
        const std::string_view words = request.query_parameter("q");  // decoded
        if (words.data() == nullptr) {
            response.status(400).send("?q= is missing\n");
            return;
        }
        const std::string_view agent = request.header(HeaderName::user_agent);
        const std::string_view custom = request.header("X-Custom");
        const std::string_view theme = find_cookie(request.header(HeaderName::cookie), "theme");
        response.send(std::string(words).append("|").append(agent).append("|").append(custom).append("|").append(theme));
    });
    router.post("/login", [](Request& request, Response& response) {
        const auto form = parse_form(request.body(), 20);  // of at most 20 fields
        if (!form) {
            response.status(400).send(form.error().message + "\n");
            return;
        }
        response.send("hello, " + std::string(form.value().get("user")) + "\n");
    });
    // [/requests]
}

// The guide tells of it in words.
void add_report(Router& router) {
    router.get("/report", [](Request&, Response& response) {
        const int fd = ::open("report.csv", O_RDONLY | O_CLOEXEC);
        struct stat file {};
        if (fd < 0 || ::fstat(fd, &file) != 0) {
            ::close(fd);
            response.status(404).send("no report\n");
            return;
        }
        response.header("Content-Type", "text/csv").send_file(fd, 0, static_cast<std::uint64_t>(file.st_size));
    });
}

void add_responses(Router& router) {
    // [responses]
    router.post("/notes", [](Request&, Response& response) {
        response.status(201).header("Location", "/notes/1").json(R"({"id":1})");
    });
    router.get("/old", [](Request&, Response& response) {
        response.status(308).header("Location", "/").send_empty();
    });
    router.get("/theme/:name", [](Request& request, Response& response) {
        const auto cookie = CookieBuilder("theme", request.parameter("name")).path("/").max_age_s(3'600).build();
        if (!cookie) {  // what the client chose cannot be in a cookie
            response.status(400).send(cookie.error().message + "\n");
            return;
        }
        response.add_header("Set-Cookie", cookie.value()).send_static("set\n");
    });
    static const PreparedField no_store("Cache-Control", "no-store");  // checked once, here
    router.get("/now", [](Request&, Response& response) {
        response.header_static(no_store).header(HeaderName::content_type, "text/csv").send_static("a,b\n");
    });
    // [/responses]
}

[[nodiscard]] Result<void> add_files(Router& router) {
    // [files]
    StaticFileOptions options;
    options.cache_control = {{"assets/*", "max-age=31536000, immutable"}, {"*", "no-cache"}};  // the first that fits
    options.precompressed = true;      // app.js.br, app.js.zst or app.js.gz in place of app.js
    options.directory_listing = true;  // where there is no index.html
    options.cache.bytes = 64 << 20;    // of each reactor, and of this handler
    options.cache.time_to_live_ms = 5'000;
    const auto site = static_files("site", options);
    if (!site) {
        return site.error();  // no such directory, or an option that cannot be meant
    }
    router.get("/site/*path", site.value());
    router.get("/site", [](Request&, Response& response) {
        response.status(301).header("Location", "/site/").send_empty();
    });
    // [/files]
    return {};
}

void add_middleware(Router& router) {
    // [middleware]
    static std::atomic<unsigned> answered{0};  // handlers and hooks run on every reactor at the same time
    Router& admin = router.group("/admin");
    admin.use({.before = [](Request& request, Response& response) {
        if (request.header(HeaderName::authorization) != "Bearer sesame") {
            response.status(401).header("WWW-Authenticate", "Bearer").send("who are you?\n");
        }
    }});
    admin.use({.head = [](const Request&, Response& response) { response.header("Cache-Control", "no-store"); },
               .done = [](const Request&, const Response& response) { answered += response.status() == 200; }});
    admin.get("/answered", [](Request&, Response& response) { response.send(std::to_string(answered)); });
    // [/middleware]
}

[[nodiscard]] Result<void> add_compression(Router& router) {
    // [compression]
    const auto compression = compress({.min_size_bytes = 500});
    if (!compression) {
        return compression.error();  // a type or a coding that there is not
    }
    Router& texts = router.group("/texts");
    texts.use(compression.value());
    texts.get("/long", [](Request&, Response& response) { response.send(std::string(5'000, 'a')); });
    texts.post(
        "/length", [](Request& request, Response& response) { response.send(std::to_string(request.body().size())); },
        {.decode_body = true});
    // [/compression]
    return {};
}

void add_coroutines(Router& router) {
    // [coroutines]
    router.get("/late", [](Request&, Response& response) -> Task<> {
        co_await sleep_ms(10);
        response.send("late\n");
    });
    router.post("/length", [](Request& request, Response& response) -> Task<> {
        const std::string_view body = co_await request.read_all();  // in memory, valid to the end
        response.send(std::to_string(body.size()));
    });
    router.post("/upper", [](Request& request, Response& response) -> Task<> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            std::string text(piece);
            for (char& letter : text) {
                letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
            }
            co_await response.write(text);  // waits while the client does not take it
        }
        response.end();  // also when there was no piece
    });
    // [/coroutines]
}

// Stand for a library whose calls block.
std::string load_name(const std::string& user) { return "<" + user + ">"; }
int count_friends(const std::string& user) { return static_cast<int>(user.size()); }

void add_offload(Router& router) {
    // [when_all]
    router.get("/profile/:user", [](Request& request, Response& response) -> Task<> {
        const std::string user(request.parameter("user"));
        auto [name, friends, waited] =
            co_await when_all(offload(load_name, user), offload(count_friends, user), sleep_ms(5));
        response.send(name + " " + std::to_string(friends));
    });
    // [/when_all]
    // [offload]
    router.get("/squares/:count", [](Request& request, Response& response) -> Task<> {
        const auto square = [](int number) -> Task<int> {
            co_return co_await offload([](int factor) { return factor * factor; }, number);
        };
        const int count = std::atoi(std::string(request.parameter("count")).c_str());
        std::vector<Task<int>> tasks;
        for (int number = 1; number <= std::min(count, 1'000); ++number) {
            tasks.push_back(square(number));  // starts at once
        }
        try {
            int sum = 0;
            for (const int one : co_await when_all(std::move(tasks))) {
                sum += one;
            }
            response.send(std::to_string(sum));
        } catch (const Overloaded&) {  // without this: 503 with Retry-After
            response.status(503).send("too many at once, try fewer\n");
        }
    });
    // [/offload]
}

// [count_down]
// For router.get("/count-down", [](Request&, Response& response) { count_down(response, 3); });
void count_down(Response& response, int left) {
    response.write(std::to_string(left) + "\n", [&response, left] {
        if (left > 1) {
            count_down(response, left - 1);
        }
    });
}
// [/count_down]

void add_callbacks(Router& router) {
    // [callbacks]
    // Sends the request's body back. The callbacks to come keep the object alive, and it goes with the last of them.
    struct Echo : std::enable_shared_from_this<Echo> {
        Request& request;
        Response& response;
        std::string piece;

        Echo(Request& from, Response& to) : request(from), response(to) {}
        void next() {
            request.read([self = shared_from_this()](std::string_view bytes) {
                if (bytes.empty()) {
                    self->response.end();
                    return;
                }
                self->piece = bytes;  // the view ends with this call
                self->response.write(self->piece, [self] { self->next(); });
            });
        }
    };
    router.post(
        "/echo",
        [](Request& request, Response& response) { std::make_shared<Echo>(request, response)->next(); },
        {.stream_body = true});
    // [/callbacks]
    router.get("/count-down", [](Request&, Response& response) { count_down(response, 3); });
}

void add_deferred(Router& router, Backend& backend) {
    // [defer]
    router.get(
        "/ask",
        [&backend](Request& request, Response& response) {
            const auto ticket = backend.ask(
                std::string(request.query_parameter("q")),
                [later = response.defer()](const std::string& answer) {  // called on the backend's thread
                    const auto send = [answer](Response& deferred) { deferred.send(answer); };
                    for (int tries = 0; !later.post(send) && tries < 100; ++tries) {  // full, or the server has ended
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    }
                });
            response.on_abort([&backend, ticket] { backend.cancel(ticket); });
        },
        {.request_timeout_ms = 5'000});
    // [/defer]
    router.get("/pending", [&backend](Request&, Response& response) {
        response.send(std::to_string(backend.pending()));
    });
}

void add_events(Router& router) {
    // [events]
    router.get("/ticks", [](Request&, Response& response) -> Task<> {
        EventStream events(response);
        co_await events.heartbeat();  // the head leaves: the client knows that it is connected
        for (int tick = 1; tick <= 3; ++tick) {
            const std::string number = std::to_string(tick);
            co_await events.send({.event = "tick", .data = number, .id = number});
            co_await sleep_ms(5);
        }
    });
    // [/events]
}

// [multipart]
Task<> take_form(Request& request, Response& response) {
    const auto boundary = multipart_boundary(request.header(HeaderName::content_type));
    if (!boundary) {
        response.status(415).send(boundary.error().message + "\n");
        co_return;
    }
    MultipartReader reader(request, boundary.value(), {.part_limit = 10, .part_limit_bytes = 1 << 20});
    std::string summary;
    while (const MultipartPart* part = co_await reader.next()) {
        summary.append(part->name).append("=");
        if (!part->has_filename()) {
            for (std::string_view piece = co_await reader.read(); !piece.empty(); piece = co_await reader.read()) {
                summary.append(piece);
            }
        } else {
            auto file = co_await reader.save("uploads");  // temporary: gone with `file`
            if (!file.ok() && !reader.failed()) {
                response.status(500).send("the file cannot be saved\n");
                co_return;
            }
            if (file.ok() && (co_await file.value().persist("uploads/photo")).ok()) {  // never the client's name
                summary.append(std::to_string(file.value().size_bytes())).append(" bytes");
            }
        }
        summary.append("\n");
    }
    if (reader.failed()) {  // it was not the whole form
        response.status(reader.error_status()).send(std::string(reader.error()) + "\n");
        co_return;
    }
    response.send(summary);
}
// [/multipart]

void add_trailers(Router& router) {
    // [trailers]
    router.post("/checked", [](Request& request, Response& response) -> Task<> {
        unsigned sum = 0;
        response.header("Trailer", "X-Sum, X-Match");  // an announcement, which some clients want
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            for (const char byte : piece) {
                sum += static_cast<unsigned char>(byte);
            }
            co_await response.write(piece);
        }
        const std::string text = std::to_string(sum);
        response.trailer("X-Sum", text).trailer("X-Match", request.trailer("X-Sum") == text ? "yes" : "no");
    });
    // [/trailers]
}

void add_limits(Router& router) {
    // [limits]
    router.put(
        "/avatar", [](Request& request, Response& response) { response.send(std::to_string(request.body().size())); },
        {.body_limit_bytes = 1'000, .request_timeout_ms = 20'000, .length_required = true});
    // [/limits]
}

// [per_reactor]
// One number for each reactor. Each touches its own alone, so no lock.
void add_visits(Router& router, unsigned reactors) {
    router.get("/visits", [visits = std::make_shared<std::vector<unsigned>>(reactors)](Request&, Response& response) {
        response.send(std::to_string(++(*visits)[current_reactor()]));
    });
}
// [/per_reactor]

int serve() {
    std::atomic<unsigned> beats{0};
    // [server]
    Config config{.reactors = 2, .body_limit_bytes = 4 << 20, .offload_limit = 64};
    config.log = [](LogLevel, std::string_view line) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
    Server server(config);
    Backend backend;  // its thread ends before the server does: it posts to it
    Timer heart;
    Router router;
    // [/server]
    router.get("/beats", [&beats](Request&, Response& response) { response.send(std::to_string(beats)); });
    add_routes(router);
    add_requests(router);
    add_report(router);
    add_responses(router);
    if (const auto added = add_files(router); !added) {
        std::fprintf(stderr, "%s\n", added.error().message.c_str());
        return 1;
    }
    add_middleware(router);
    if (const auto added = add_compression(router); !added) {
        std::fprintf(stderr, "%s\n", added.error().message.c_str());
        return 1;
    }
    add_coroutines(router);
    add_offload(router);
    add_callbacks(router);
    add_deferred(router, backend);
    add_events(router);
    router.post("/form", take_form);
    add_trailers(router);
    add_limits(router);
    add_visits(router, config.reactors);
    // [run]
    server.listen({.address = "127.0.0.1", .port = 0}, router);  // 0: the kernel chooses
    return server.run([&] {  // it serves now
        std::printf("%u\n", unsigned{server.port()});
        std::fflush(stdout);
        (void)server.post(0, [&] { heart.start_repeating(10, [&] { ++beats; }); });
    });
    // [/run]
}

}  // namespace

int main() { return serve(); }
