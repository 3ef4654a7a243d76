// Forms that arrive at a coroutine handler: parts read, skipped and spooled, and what is held meanwhile.
#include "engine_fixture.h"

#include <algorithm>
#include <cerrno>

#include "penstock/protocols/http/multipart.h"

namespace penstock::test {
namespace {

std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = i % 97 == 0 ? '\r' : i % 97 == 1 ? '\n' : static_cast<char>('a' + i % 23);
    }
    return text;
}

std::string part(std::string_view name, std::string_view data) {
    return "--XyZ\r\nContent-Disposition: form-data; name=\"" + std::string(name) + "\"\r\n\r\n" + std::string(data) + "\r\n";
}

std::string upload(std::string_view path, std::string_view form, std::string_view type = "multipart/form-data; boundary=XyZ") {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(form.size()) + "\r\n\r\n" + std::string(form);
}

std::uint64_t sum_of(std::uint64_t sum, std::string_view bytes) {
    for (const char c : bytes) {
        sum = sum * 31 + static_cast<unsigned char>(c);
    }
    return sum;
}

struct Spooled {
    std::string bytes;
    std::string outcome;
    std::size_t fail_from = ~std::size_t{0};
    bool was_broken = false;
};

// "name size sum;" for each part, or how the form is broken.
Task<void> list_parts(Request& request, Response& response) {
    const Result<std::string> boundary = multipart_boundary(request.header(HeaderName::content_type));
    if (!boundary.ok()) {
        response.status(415).send(boundary.error().message);
        co_return;
    }
    MultipartReader reader(request, boundary.value());
    std::string answer;
    while (const MultipartPart* current = co_await reader.next()) {
        if (current->name == "skipped") {
            continue;
        }
        std::uint64_t size = 0;
        std::uint64_t sum = 0;
        for (std::string_view piece = co_await reader.read(); !piece.empty(); piece = co_await reader.read()) {
            size += piece.size();
            sum = sum_of(sum, piece);
        }
        answer += std::string(current->name) + " " + std::to_string(size) + " " + std::to_string(sum) + ";";
        CHECK((co_await reader.read()).empty());  // its end stays
    }
    if (reader.failed()) {
        answer = reader.error();
        response.status(reader.error_status());
    }
    response.send(std::move(answer));
}

Router form_router(Spooled* spooled = nullptr) {
    Router router;
    router.post("/list", list_parts, RouteOptions{.body_limit_bytes = 100 << 20});
    router.post("/spool", [spooled](Request& request, Response& response) -> Task<void> {
        MultipartReader reader(request, "XyZ");
        const MultipartPart* const current = co_await reader.next();
        REQUIRE(current != nullptr);
        const Result<std::uint64_t> size = co_await reader.spool([spooled](std::string_view piece) {
            if (spooled->bytes.size() + piece.size() > spooled->fail_from) {
                return ENOSPC;
            }
            spooled->bytes += piece;
            return 0;
        });
        spooled->outcome = size.ok() ? std::to_string(size.value()) : size.error().message;
        spooled->was_broken = reader.failed();
        response.send(spooled->outcome);
    }, RouteOptions{.body_limit_bytes = 100 << 20});
    return router;
}

std::string line_for(std::string_view name, std::string_view data) {
    return std::string(name) + " " + std::to_string(data.size()) + " " + std::to_string(sum_of(0, data)) + ";";
}

}  // namespace

TEST_CASE("a form is the same however it arrives") {
    const std::string large = pattern(40'000);
    const std::string form = part("a", "1") + part("skipped", large) + part("b", large) + part("c", "") + "--XyZ--\r\n";
    const std::string request = upload("/list", form);
    const std::string wanted = line_for("a", "1") + line_for("b", large) + line_for("c", "");
    Engine engine(form_router());
    for (const std::size_t cut : {std::size_t{97}, std::size_t{1'000}, std::size_t{16'384}, request.size()}) {
        CAPTURE(cut);
        sim::Peer peer = engine.world.connect(kPort);
        for (std::size_t at = 0; at < request.size(); at += cut) {
            peer.send(std::string_view(request).substr(at, cut));
            engine.server.settle();
        }
        CHECK(body_of(peer.take_received()) == wanted);
        CHECK(body_of(engine.exchange(peer, request)) == wanted);  // the connection goes on
        peer.close();
        engine.server.settle();
        engine.server.check_nothing_left();
    }
}

TEST_CASE("a large part passes through a few blocks") {
    const std::string data = pattern(5'000'000);
    const std::string request = upload("/list", part("large", data) + "--XyZ--\r\n");
    Engine engine(form_router());
    sim::Peer peer = engine.world.connect(kPort);
    std::uint32_t most = 0;
    for (std::size_t at = 0; at < request.size(); at += 50'000) {
        peer.send(std::string_view(request).substr(at, 50'000));
        engine.server.reactor().run_turn(0);
        most = std::max(most, engine.server.reactor().blocks().leased());
        engine.server.settle();
        most = std::max(most, engine.server.reactor().blocks().leased());
    }
    CHECK(body_of(peer.take_received()) == line_for("large", data));
    CHECK(most <= 4);
}

TEST_CASE("a broken form and a wrong type are answered as the handler says") {
    Engine engine(form_router());
    const std::string cut_short = engine.ask(upload("/list", part("a", "1")));
    CHECK(status_of(cut_short) == 400);
    CHECK(body_of(cut_short) == "multipart: the form ends without its closing delimiter");
    CHECK(status_of(engine.ask(upload("/list", part("a\x01", "1") + "--XyZ--"))) == 400);
    CHECK(status_of(engine.ask(upload("/list", part(std::string(5'000, 'n'), "1") + "--XyZ--"))) == 413);
    CHECK(status_of(engine.ask(upload("/list", "", "text/plain"))) == 415);
}

TEST_CASE("a part is spooled by blocking writes on the offload pool") {
    const std::string data = pattern(200'000);
    const std::string request = upload("/spool", part("f", data) + "--XyZ--\r\n");
    const auto run_jobs = [](Engine& engine) {
        while (engine.server.offload.run_one()) {
            engine.server.settle();
        }
    };
    for (const std::size_t fail_from : {~std::size_t{0}, std::size_t{50'000}}) {
        Spooled spooled;
        spooled.fail_from = fail_from;
        Engine engine(form_router(&spooled));
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(request);
        engine.server.settle();
        run_jobs(engine);
        CHECK_FALSE(spooled.was_broken);
        if (fail_from > data.size()) {
            CHECK(spooled.bytes == data);
            CHECK(body_of(peer.take_received()) == "200000");
        } else {
            CHECK(spooled.outcome.starts_with("write a part of the form: "));
            CHECK(spooled.bytes.size() <= fail_from);
        }
    }
    Spooled spooled;
    Engine engine(form_router(&spooled));
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(upload("/spool", part("f", data)));
    engine.server.settle();
    run_jobs(engine);
    CHECK(spooled.was_broken);
    CHECK(spooled.outcome == "multipart: the form ends without its closing delimiter");
}

TEST_CASE("a part that finds no room on the offload pool answers 503") {
    Spooled spooled;
    Config config = small_config();
    config.offload_limit = 0;
    Engine engine(form_router(&spooled), config);
    CHECK(status_of(engine.ask(upload("/spool", part("f", "data") + "--XyZ--\r\n"))) == 503);
    CHECK(spooled.bytes.empty());
    CHECK(spooled.outcome.empty());
    CHECK(engine.server.log.lines.empty());
}

TEST_CASE("a client that leaves ends the reading of its form, also while a piece is being written") {
    Spooled spooled;
    Engine engine(form_router(&spooled));
    const std::string request = upload("/spool", part("f", pattern(200'000)) + "--XyZ--\r\n");
    sim::Peer writing = engine.world.connect(kPort);
    writing.send(std::string_view(request).substr(0, 5'000));
    engine.server.settle();
    writing.reset();
    engine.server.settle();
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK_FALSE(spooled.bytes.empty());
    sim::Peer reading = engine.world.connect(kPort);
    reading.send(std::string_view(upload("/list", part("a", pattern(5'000)))).substr(0, 500));
    engine.server.settle();
    reading.reset();
    engine.server.settle();
    CHECK(spooled.outcome.empty());
    engine.server.check_nothing_left();
}

}  // namespace penstock::test
