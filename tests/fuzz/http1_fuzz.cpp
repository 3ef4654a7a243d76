// One connection's whole life on the simulated kernel. The input says what the client sends and how: where
// the stream is cut, how it is read, which calls fail.
//
//     byte 0      Flags
//     byte 1, 2   how many cut sizes, and how many fault bytes, follow
//     ...         cut sizes, used over and over; fault bytes, for World::choose_from
//     ...         the stream
//
// However a stream is cut and its answers are read, they are the same; with faults they end early at worst;
// and afterwards nothing is open or leased.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"
#include "penstock/platform/sim/world.h"

namespace penstock {
namespace {

constexpr std::uint16_t kPort = 80;
constexpr int kTurnLimit = 200'000;

enum Flags : std::uint8_t { kFinishes = 1, kSlowReader = 2, kLowLimits = 4, kResets = 8 };

std::uint64_t g_begun = 0;
std::uint64_t g_done = 0;

void require(bool condition, const char* what, std::string_view about = "", std::string_view more = "") {
    if (!condition) {
        about = about.substr(0, 4'000);
        more = more.substr(0, 4'000);
        std::fprintf(stderr, "http1_fuzz: %s\n%.*s\n----\n%.*s\n", what, static_cast<int>(about.size()),
                     about.data(), static_cast<int>(more.size()), more.data());
        std::abort();
    }
}

// Looks at everything that a request holds.
void describe(Request& request, Response& response) {
    std::string text(method_name(request.method()));
    text.append(" ")
        .append(request.target())
        .append(" ")
        .append(request.path())
        .append(" ")
        .append(request.query());
    text.append(" ").append(request.host()).append(" ").append(request.parameter("rest"));
    text.append(" ").append(request.query_parameter("q"));
    for (std::size_t i = 0; i < request.header_count(); ++i) {
        const HeaderField field = request.header_at(i);
        text.append("\n").append(field.name).append("=").append(field.value);
        require(request.header(field.name).data() != nullptr, "a field is not found by its name");
    }
    response.header("Content-Type", "text/plain").send(std::move(text.append("\n").append(request.body())));
}

// A fault keeps the file from being opened: then there is no answer, rather than another one.
void send_file(Request&, Response& response) {
    const Result<int> root = platform::open_directory("/www");
    if (!root.ok()) {
        response.abort();
        return;
    }
    const IoResult file = platform::open_beneath(root.value(), "file");
    platform::close_descriptor(root.value());
    if (file.ok()) {
        response.send_file(static_cast<int>(file.count), 10, 300'000);
    } else {
        response.abort();
    }
}

// Counts the body piece by piece, and answers so many bytes in pieces of its own. The callbacks to come keep it alive.
struct Counter : std::enable_shared_from_this<Counter> {
    Request& request;
    Response& response;
    std::size_t bytes = 0;
    std::string piece;

    Counter(Request& from, Response& to) : request(from), response(to) {}
    void read() {
        request.read([self = shared_from_this()](std::string_view part) {
            self->bytes += part.size();
            part.empty() ? self->begin() : self->read();
        });
    }
    void begin() {
        bytes += 40'000;
        response.content_length(bytes);
        write();
    }
    void write() {
        piece.assign(std::min<std::size_t>(bytes, 9'000), 'c');
        bytes -= piece.size();
        if (!piece.empty()) {
            response.write(piece, [self = shared_from_this()] { self->write(); });
        }
    }
};

Router make_router() {
    Router router;
    router.use({.before = [](Request&, Response&) { ++g_begun; },
                .head = [](const Request& request,
                           Response& response) { response.header("X-Host", request.host()); },
                .done =
                    [](const Request&, const Response&) {
                        ++g_done;
                    }});
    router.any("/*rest", describe);
    router.any("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.any("/large", [](Request&, Response& response) { response.send(std::string(70'000, 'x')); });
    router.any("/file", send_file);
    router.any("/throw", [](Request&, Response&) { throw std::runtime_error("as it should"); });
    router.any("/abort", [](Request&, Response& response) { response.abort(); });
    router.any("/nothing", [](Request&, Response&) {});
    router.any("/close",
               [](Request&, Response& response) { response.header("Connection", "close").send_empty(); });
    router.any("/header", [](Request& request, Response& response) {
        response.header(request.query_parameter("name"), request.query_parameter("value"))
            .status(404)
            .send_static("x");
    });
    router.any("/task", [](Request& request, Response& response) -> Task<void> {
        co_await sleep_ms(1);
        response.send(co_await request.read_all());
    });
    router.any("/callbacks", [](Request& request, Response& response) {
        std::make_shared<Counter>(request, response)->read();
    }, {.stream_body = true});
    router.any("/deferred", [](Request&, Response& response) {
        if (!response.defer().post([](Response& later) { later.send("later"); })) {
            response.abort();
        }
    });
    router.any("/count", [](Request& request, Response& response) -> Task<void> {
        std::size_t bytes = 0;
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            bytes += piece.size();
        }
        response.send(std::to_string(bytes));
    });
    return router;
}

Config make_config(bool low_limits) {
    Config config;
    config.reactors = 1;
    config.connection_limit = 4;
    config.refusal_limit = 1;
    config.io_block_limit = 32;
    config.io_block_reserve = 8;
    config.page_limit = 16;
    if (low_limits) {
        config.target_limit_bytes = 24;
        config.header_count_limit = 4;
        config.body_limit_bytes = 50;
    }
    return config;
}

class Server {
public:
    Server(sim::World& world, bool low_limits) : world_(world), config_(make_config(low_limits)) {
        static const std::shared_ptr<ProtocolFactory> factory = make_protocol_factory(make_router());
        require(factory->prepare(config_).ok(), "the router does not build");
        reactor_ = std::make_unique<Reactor>(config_, 0, nullptr);
        platform::ListenTarget target;
        target.port = kPort;
        require(reactor_->open().ok(), "the reactor does not open");
        const Result<int> listener = platform::open_listener(target);
        require(listener.ok() && reactor_->add_listener(listener.value(), *factory).ok(),
                "the listener does not open");
    }

    void settle() {
        for (int turns = 0; turns < kTurnLimit; ++turns) {
            reactor_->run_turn(0);
            if (world_.quiet() && !reactor_->has_work()) {
                return;
            }
        }
        require(false, "the reactor spins");
    }
    void advance(std::uint64_t milliseconds) {
        world_.advance_ms(milliseconds);
        settle();
    }
    void check_nothing_left() {
        require(reactor_->connections().in_use() == 0, "a connection is left");
        require(reactor_->blocks().leased() == 0, "a block is left");
        require(reactor_->pages().leased() == 0, "a page is left");
        require(world_.open_descriptors() == 3, "a descriptor is left");  // poller, its wake-up, listener
        reactor_.reset();
        require(world_.open_descriptors() == 0, "a descriptor is left by the reactor");
        require(world_.bad_descriptor_calls() == 0, "a descriptor was used that was not open");
    }

private:
    sim::World& world_;
    const Config config_;
    std::unique_ptr<Reactor> reactor_;
};

struct Scenario {
    std::uint8_t flags = 0;
    std::span<const std::uint8_t> cuts;
    std::span<const std::uint8_t> faults;
    std::string_view stream;
};

struct Answer {
    std::string bytes;
    bool closed = false;
};

// What a client has read so far.
void read_on(Server& server, sim::Peer& peer, bool slowly, std::string* bytes) {
    server.settle();
    if (!slowly) {
        *bytes += peer.take_received();
        return;
    }
    for (std::string part = peer.read(3'000); !part.empty(); part = peer.read(3'000)) {
        *bytes += part;
        server.settle();
    }
}

// Interim answers depend on when the body comes, so they are left out.
std::string without_interim(std::string bytes) {
    constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
    for (std::size_t at = bytes.find(kInterim); at != std::string::npos; at = bytes.find(kInterim, at)) {
        bytes.erase(at, kInterim.size());
    }
    return bytes;
}

Answer run(const Scenario& input, bool cut, bool with_faults) {
    g_begun = g_done = 0;
    sim::World world;
    world.add_file("/www/file", std::string(200'000, 'a') + std::string(200'000, 'b'));
    Server server(world, (input.flags & kLowLimits) != 0);
    if (with_faults) {
        world.choose_from(input.faults);
    }
    sim::Peer peer = world.connect(kPort);
    const bool slowly = cut && (input.flags & kSlowReader) != 0;
    if (slowly) {
        peer.set_receive_window(3'000);
    }
    Answer answer;
    std::string_view rest = input.stream;
    for (std::size_t i = 0; !rest.empty(); ++i) {
        const std::size_t size =
            cut && !input.cuts.empty() ? 1u + input.cuts[i % input.cuts.size()] : rest.size();
        peer.send(rest.substr(0, size));
        rest.remove_prefix(std::min(size, rest.size()));
        read_on(server, peer, slowly, &answer.bytes);
    }
    if ((input.flags & kFinishes) != 0) {
        peer.finish();
    }
    const int times = input.stream.find("/task") != std::string_view::npos ? 200 : with_faults ? 2 : 1;
    for (int i = 0; i < times; ++i) {
        server.advance(i == 0 ? 60 : 2);  // accepting rests for 50 ms behind a fault
        read_on(server, peer, slowly, &answer.bytes);
    }
    answer.closed = peer.finished_by_server();
    world.pause_faults();
    if ((input.flags & kResets) != 0) {
        peer.reset();
    } else {
        peer.close();
    }
    server.settle();
    server.advance(100'000);  // past every deadline
    server.check_nothing_left();
    require(g_begun <= g_done, "a request began and is not done");
    answer.bytes = without_interim(std::move(answer.bytes));
    return answer;
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    Scenario input;
    if (size >= 3) {
        const std::span<const std::uint8_t> rest(data + 3, size - 3);
        const std::size_t cuts = std::min<std::size_t>(data[1], rest.size());
        const std::size_t faults = std::min<std::size_t>(data[2], rest.size() - cuts);
        const auto stream = rest.subspan(cuts + faults);
        input = {data[0],
                 rest.first(cuts),
                 rest.subspan(cuts, faults),
                 {reinterpret_cast<const char*>(stream.data()), stream.size()}};
    }
    const Answer whole = run(input, false, false);
    // Where no route is found, an answer does not wait for a body; whether that has come then depends on the cuts.
    if (input.stream.find("OPTIONS *") == std::string_view::npos) {
        const Answer cut = run(input, true, false);
        require(cut.bytes == whole.bytes, "cut, the stream has other answers", whole.bytes, cut.bytes);
        require(cut.closed == whole.closed, "cut, the stream has another end", whole.bytes, cut.bytes);
        if (!input.faults.empty()) {
            const Answer faulty = run(input, true, true);
            require(whole.bytes.starts_with(faulty.bytes), "with faults the answers are others", whole.bytes,
                    faulty.bytes);
        }
    } else {
        run(input, true, true);
    }
    return 0;
}
