// Server-sent events as a client reads them: every text arrives as it was meant, forges nothing, and waits for its reader.
#include "engine_fixture.h"

#include "penstock/protocols/http/event_stream.h"

namespace penstock::test {
namespace {

using namespace std::string_view_literals;

struct ReceivedEvent {
    std::string event;
    std::string data;
    std::string id;

    bool operator==(const ReceivedEvent&) const = default;
};

struct ReceivedStream {
    std::vector<ReceivedEvent> events;
    std::string retry;
    std::size_t comments = 0;
};

// The client of the HTML Standard §9.2.6, for a stream whose lines end with LF.
class EventReader {
public:
    [[nodiscard]] ReceivedStream read(std::string_view text) {
        REQUIRE(text.find('\r') == std::string_view::npos);
        for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
            take_line(text.substr(0, end));
            text.remove_prefix(end + 1);
        }
        CHECK(text.empty());
        return stream_;
    }

private:
    void take_line(std::string_view line) {
        if (line.empty()) {
            dispatch();
        } else if (line.front() == ':') {
            ++stream_.comments;
        } else {
            const std::size_t colon = line.find(':');
            REQUIRE(colon != std::string_view::npos);
            std::string_view value = line.substr(colon + 1);
            value.remove_prefix(value.starts_with(' ') ? 1 : 0);
            take_field(line.substr(0, colon), value);
        }
    }
    void take_field(std::string_view name, std::string_view value) {
        if (name == "event") {
            type_ = value;
        } else if (name == "data") {
            data_.append(value).append("\n");
        } else if (name == "id") {
            CHECK(value.find('\0') == std::string_view::npos);
            id_ = value;
        } else {
            CHECK(name == "retry");
            stream_.retry = value;
        }
    }
    void dispatch() {
        if (!data_.empty()) {
            data_.pop_back();
            stream_.events.push_back({type_.empty() ? "message" : type_, data_, id_});
        }
        data_.clear();
        type_.clear();
    }

    ReceivedStream stream_;
    std::string type_;
    std::string data_;
    std::string id_;
};

// The body of what has come of a chunked response so far.
std::string chunks_of(std::string_view response) {
    std::string_view rest = body_of(response);
    std::string body;
    while (!rest.empty()) {
        const std::size_t line = rest.find("\r\n");
        REQUIRE(line != std::string_view::npos);
        const std::size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
        REQUIRE(rest.size() >= line + 2 + size + 2);
        body.append(rest.substr(line + 2, size));
        rest.remove_prefix(line + 2 + size + 2);
    }
    return body;
}

// One route "/events" which sends those events, and what came of it.
std::string sent_text(std::vector<EventStream::Event> given) {
    Router router;
    router.get("/events", [given = std::move(given)](Request&, Response& response) -> Task<void> {
        EventStream events(response);
        for (const EventStream::Event& event : given) {
            co_await events.send(event);
        }
    });
    Engine engine(router);
    return chunks_of(engine.ask(get("/events")));
}

ReceivedStream sent(std::vector<EventStream::Event> given) { return EventReader().read(sent_text(std::move(given))); }

constexpr std::size_t kLargeEvents = 50;
constexpr std::size_t kLargeEventBytes = 100'000;

// Different for each, so that one event's text in place of another's would show.
std::string large_data(std::size_t index) {
    return std::string(kLargeEventBytes, static_cast<char>('a' + index % 26)) + "\n" + std::to_string(index);
}

Router event_router() {
    Router router;
    router.get("/ticks", [](Request&, Response& response) -> Task<void> {
        EventStream events(response);
        co_await events.heartbeat();
        for (int i = 0; i < 3; ++i) {
            co_await sleep_ms(1'000);
            co_await events.send({.event = "tick", .data = std::to_string(i), .id = std::to_string(i)});
        }
    });
    router.get("/comments", [](Request&, Response& response) -> Task<void> {
        EventStream events(response);
        co_await events.comment("data: forged\r\nevent: forged\n\ndata: forged\rid: 9");
        co_await events.comment("");
        co_await events.heartbeat();
        co_await events.send({.data = "after"});
    });
    router.get("/large", [](Request&, Response& response) -> Task<void> {
        EventStream events(response);
        for (std::size_t i = 0; i < kLargeEvents; ++i) {
            co_await events.send({.data = large_data(i)});
            co_await events.send({.data = "small"});
        }
    });
    return router;
}

}  // namespace

TEST_CASE("an event is written field by field, under the head of an event stream") {
    Router router;
    router.get("/one", [](Request&, Response& response) -> Task<void> {
        EventStream events(response);
        co_await events.send({.event = "tick", .data = "now", .id = "1", .retry_ms = 2'500});
    });
    Engine engine(router);
    const std::string answer = engine.ask(get("/one"));
    CHECK(status_of(answer) == 200);
    CHECK(answer.find("Content-Type: text/event-stream\r\n") != std::string::npos);
    CHECK(answer.find("Cache-Control: no-store\r\n") != std::string::npos);
    CHECK(chunks_of(answer) == "event: tick\nid: 1\nretry: 2500\ndata: now\n\n");
    CHECK(answer.ends_with("\r\n0\r\n\r\n"));
}

TEST_CASE("data arrives line by line, whatever ends its lines") {
    CHECK(sent_text({{.data = "a\nb"}}) == "data: a\ndata: b\n\n");
    struct Case {
        std::string_view given;
        std::string_view wanted;
    };
    const Case cases[] = {
        {"", ""}, {"a", "a"}, {"a\nb", "a\nb"}, {"a\rb", "a\nb"}, {"a\r\nb", "a\nb"}, {"a\n\rb", "a\n\nb"},
        {"a\r\r\nb", "a\n\nb"}, {"\n", "\n"}, {"a\r\n", "a\n"}, {"a\r", "a\n"}, {"\r\n\r\n", "\n\n"},
        {" a\n  b", " a\n  b"}, {"data: x\n\nid: 7", "data: x\n\nid: 7"}, {":c", ":c"},
    };
    for (const Case& each : cases) {
        CAPTURE(std::string(each.given));
        const ReceivedStream stream = sent({{.data = each.given}, {.data = "next"}});
        CHECK(stream.events ==
              std::vector<ReceivedEvent>{{"message", std::string(each.wanted), ""}, {"message", "next", ""}});
    }
    CHECK(sent({{.data = "a\0b"sv}}).events.at(0).data == "a\0b"sv);
}

TEST_CASE("nothing in a name or an id forges a field or an event") {
    const ReceivedStream stream =
        sent({{.event = "x\ndata: forged\r\n\r\nretry: 1", .data = "real", .id = "7\n\ndata: forged\0\r"sv}});
    CHECK(stream.events ==
          std::vector<ReceivedEvent>{{"xdata: forgedretry: 1", "real", "7data: forged"}});
    CHECK(stream.retry.empty());
}

TEST_CASE("an event needs no data, a name holds for one event, an id until the next") {
    const ReceivedStream stream = sent({{.event = "done"}, {.data = "1", .id = "a"}, {.data = "2"}, {.retry_ms = 0}});
    CHECK(stream.events == std::vector<ReceivedEvent>{
                               {"done", "", ""}, {"message", "1", "a"}, {"message", "2", "a"}, {"message", "", "a"}});
    CHECK(stream.retry == "0");
}

TEST_CASE("comments and heartbeats are no events") {
    Engine engine(event_router());
    const ReceivedStream stream = EventReader().read(chunks_of(engine.ask(get("/comments"))));
    CHECK(stream.events == std::vector<ReceivedEvent>{{"message", "after", ""}});
    CHECK(stream.comments == 7);
}

TEST_CASE("an event leaves when it is sent, the head with the first heartbeat") {
    Engine engine(event_router());
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(chunks_of(engine.exchange(peer, get("/ticks"))) == ":\n\n");
    for (int i = 0; i < 3; ++i) {
        engine.server.advance(1'000);
        const std::string tick = "event: tick\nid: " + std::to_string(i) + "\ndata: " + std::to_string(i) + "\n\n";
        CHECK(peer.take_received().find(tick) != std::string::npos);
    }
}

TEST_CASE("a slow reader gets every event whole, and holds no more than the high-water mark") {
    Engine engine(event_router());
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(10'000);
    peer.send(get("/large"));
    std::string answer;
    std::uint32_t most = 0;
    for (int round = 0; round < 5'000 && !answer.ends_with("\r\n0\r\n\r\n"); ++round) {
        engine.server.settle();
        most = std::max(most, engine.server.reactor().blocks().leased());
        answer += peer.read(10'000);
        (void)peer.take_received();
    }
    CHECK(most <= 8);
    const ReceivedStream stream = EventReader().read(chunks_of(answer));
    REQUIRE(stream.events.size() == 2 * kLargeEvents);
    for (std::size_t i = 0; i < kLargeEvents; ++i) {
        CHECK(stream.events[2 * i].data == large_data(i));
        CHECK(stream.events[2 * i + 1].data == "small");
    }
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a stream ends with its client, between events and within one") {
    Engine engine(event_router());
    sim::Peer between = engine.world.connect(kPort);
    engine.exchange(between, get("/ticks"));
    sim::Peer within = engine.world.connect(kPort);
    within.set_receive_window(1'000);
    engine.exchange(within, get("/large"));
    CHECK(engine.server.reactor().connections().in_use() == 2);
    between.reset();
    within.reset();
    engine.server.settle();
    engine.server.check_nothing_left();
}

}  // namespace penstock::test
