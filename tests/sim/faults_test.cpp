// Every platform call failing in turn, and seeded storms of faults: whatever happens, nothing is left behind and nothing
// that was answered is wrong.
#include <algorithm>

#include "fault_scenarios.h"
#include "penstock/platform/file.h"
#include "stream_fixture.h"

namespace penstock::test {
namespace {

Router fault_router() {
    Router router;
    router.get("/plaintext", [](Request&, Response& response) { response.send_static("Hello, World!"); });
    router.get("/large", [](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
    router.post("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.get("/file", [](Request&, Response& response) {
        const auto root = platform::open_directory("/files");
        if (!root.ok()) {
            response.status(503);
            return;
        }
        const IoResult file = platform::open_beneath(root.value(), "data.bin");
        platform::close_descriptor(root.value());
        if (!file.ok()) {
            response.status(503);
            return;
        }
        response.send_file(static_cast<int>(file.count), 0, 300'000);
    });
    router.post("/copy", [](Request& request, Response& response) -> Task<void> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            co_await response.write(piece);
        }
    });
    router.post("/callback-copy", [](Request& request, Response& response) {
        std::make_shared<Copier>(request, response)->read();
    }, {.stream_body = true});
    router.get("/sleep", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(10);
        response.send_static("late");
    });
    router.post("/save", [](Request& request, Response& response) -> Task<void> {
        MultipartReader reader(request, "XyZ");
        std::vector<UploadedFile> files;
        while (co_await reader.next() != nullptr) {
            Result<UploadedFile> file = co_await reader.save("/spool");
            if (!file.ok()) {
                response.status(507).send(file.error().message);
                co_return;
            }
            files.push_back(std::move(file.value()));
        }
        const Result<void> named = co_await files.at(0).persist("/kept/first");
        response.status(named.ok() ? 200 : 507).send(named.ok() ? "kept" : named.error().message);
    });
    return router;
}

// Runs a scenario against a server in this world, then ends everything and sees that nothing is left.
void run_scenario(sim::World& world, const std::function<void(ReactorUnderTest&)>& scenario) {
    ReactorUnderTest server(world, fault_router());
    if (server.start()) {
        scenario(server);
    }
    world.pause_faults();
    server.destroy();
    CHECK_MESSAGE(world.open_descriptors() == 0, world.fault_report());
    CHECK_MESSAGE(world.bad_descriptor_calls() == 0, world.fault_report());
}

void run_jobs(ReactorUnderTest& server) {
    while (server.offload.run_one()) {
        server.settle();
    }
}

// Long enough that deadlines end whatever a fault left hanging; then everything must have been given back.
void come_to_rest(sim::World& world, ReactorUnderTest& server) {
    world.pause_faults();
    for (int i = 0; i < 8; ++i) {
        run_jobs(server);
        server.advance(20'000);
    }
    INFO(world.fault_report());
    server.check_nothing_left();
    world.resume_faults();
}

// What came is a prefix of what should have come, and all of it where nothing failed.
void check_prefix(sim::World& world, const std::string& got, const std::string& wanted_body) {
    const std::size_t end = got.find("\r\n\r\n");
    if (end == std::string::npos || got.compare(9, 3, "200") != 0) {
        return;
    }
    const std::string body = got.substr(end + 4);
    CHECK_MESSAGE(wanted_body.compare(0, body.size(), body) == 0, world.fault_report());
}

void request_and_close(sim::World& world) {
    run_scenario(world, [&world](ReactorUnderTest& server) {
        sim::Peer peer = world.connect(kPort);
        peer.send(get("/plaintext"));
        server.settle();
        check_prefix(world, peer.take_received(), "Hello, World!");
        peer.send(get("/plaintext", "Connection: close\r\n"));
        server.settle();
        check_prefix(world, peer.take_received(), "Hello, World!");
        peer.close();
        come_to_rest(world, server);
    });
}

void pipelining(sim::World& world) {
    run_scenario(world, [&world](ReactorUnderTest& server) {
        sim::Peer peer = world.connect(kPort);
        peer.send(get("/plaintext") + "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc" +
                  get("/sleep") + get("/plaintext"));
        server.settle();
        server.advance(20);
        peer.finish();
        server.settle();
        const std::string got = peer.take_received();
        // In order: no later answer without all earlier ones.
        const std::size_t hello = got.find("Hello, World!");
        const std::size_t echo = got.find("\r\n\r\nabc");
        const std::size_t late = got.find("late");
        CHECK((echo == std::string::npos || hello < echo));
        CHECK((late == std::string::npos || (echo != std::string::npos && echo < late)));
        come_to_rest(world, server);
    });
}

void slow_reader(sim::World& world) {
    run_scenario(world, [&world](ReactorUnderTest& server) {
        world.add_file("/files/data.bin", 300'000, [](std::uint64_t, std::span<char> bytes) {
            std::fill(bytes.begin(), bytes.end(), 'f');
        });
        sim::Peer peer = world.connect(kPort);
        peer.set_receive_window(5'000);
        peer.send(get("/large") + get("/file", "Connection: close\r\n"));
        for (int i = 0; i < 200 && !peer.finished_by_server() && !peer.reset_by_server(); ++i) {
            server.settle();
            (void)peer.read(4'000);
        }
        check_prefix(world, peer.take_received().substr(0, 100'000), std::string(100'000, 'x'));
        come_to_rest(world, server);
    });
}

void upload(sim::World& world) {
    run_scenario(world, [&world](ReactorUnderTest& server) {
        sim::Peer peer = world.connect(kPort);
        const std::string body(70'000, 'u');
        peer.send("POST /echo HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 70000\r\n\r\n" + body);
        server.settle();
        check_prefix(world, peer.take_received(), body);
        come_to_rest(world, server);
    });
}

void stream_both_ways(sim::World& world, const char* path) {
    run_scenario(world, [&world, path](ReactorUnderTest& server) {
        sim::Peer peer = world.connect(kPort);
        peer.set_receive_window(20'000);
        const std::string body(60'000, 's');
        peer.send(post(path, length_field(body.size()), body));
        for (int i = 0; i < 50 && !peer.finished_by_server() && !peer.reset_by_server(); ++i) {
            server.settle();
            (void)peer.read(15'000);
        }
        const std::string got = peer.take_received();
        const bool whole = got.size() >= 5 && got.compare(got.size() - 5, 5, "0\r\n\r\n") == 0;
        const auto bytes = static_cast<std::size_t>(std::count(got.begin(), got.end(), 's'));
        CHECK_MESSAGE((!whole || bytes >= 60'000), world.fault_report());
        come_to_rest(world, server);
    });
}

void streaming(sim::World& world) { stream_both_ways(world, "/copy"); }
void callbacks(sim::World& world) { stream_both_ways(world, "/callback-copy"); }

std::string content_of(const char* name) {
    const auto root = platform::open_directory("/kept");
    REQUIRE(root.ok());
    const IoResult opened = platform::open_beneath(root.value(), name);
    platform::close_descriptor(root.value());
    REQUIRE(opened.ok());
    const int file = static_cast<int>(opened.count);
    std::string content(100'000, '\0');
    const IoResult read = platform::read_file(file, 0, std::as_writable_bytes(std::span(content)));
    platform::close_descriptor(file);
    REQUIRE(read.ok());
    content.resize(static_cast<std::size_t>(read.count));
    return content;
}

// Only a whole file gets a name, only one is answered with 200, and of the others nothing is left.
void save_to_files(sim::World& world) {
    world.add_directory("/spool");
    world.add_directory("/kept");
    run_scenario(world, [&world](ReactorUnderTest& server) {
        const std::string data(40'000, 'd');
        const std::string form = "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + data +
                                 "\r\n--XyZ\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n\r\n--XyZ--\r\n";
        sim::Peer peer = world.connect(kPort);
        peer.send("POST /save HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(form.size()) + "\r\n\r\n" + form);
        server.settle();
        run_jobs(server);
        const std::string got = peer.take_received();
        check_prefix(world, got, "kept");
        peer.close();
        come_to_rest(world, server);
        world.pause_faults();
        INFO(world.fault_report());
        CHECK(world.names_in("/spool").empty());
        if (world.exists("/kept/first")) {
            CHECK(content_of("first") == data);
        } else {
            CHECK(status_of(got) != 200);
        }
        world.resume_faults();
    });
}

void save_to_named_files(sim::World& world) {
    world.forbid_nameless_files();
    save_to_files(world);
}

constexpr FaultScenario kScenarios[] = {
    {"request and close", request_and_close, 20},
    {"pipelining", pipelining, 20},
    {"slow reader", slow_reader, 100},
    {"upload", upload, 20},
    {"streaming", streaming, 50},
    {"callbacks", callbacks, 50},
    {"saving to files", save_to_files, 80},
    {"saving to files that have names", save_to_named_files, 80},
};

}  // namespace

TEST_CASE("each platform call of a scenario fails in turn, with each error it can give") {
    check_sweeps(kScenarios);
}

TEST_CASE("storms of faults from a seed leave nothing behind") {
    const sim::Ratios storms[] = {
        {.short_read = 300, .short_write = 300, .would_block = 200},
        {.short_read = 100, .short_write = 100, .would_block = 100, .reset = 20, .no_memory = 20,
         .no_descriptor = 20, .file_error = 20, .interrupted = 100, .no_space = 20},
        {.reset = 100, .no_memory = 200, .no_descriptor = 200},
    };
    check_storms(kScenarios, storms, 60);
}

TEST_CASE("a storm replays from its seed and from its list of faults") {
    const sim::Ratios ratios{.short_read = 200, .short_write = 200, .would_block = 200, .reset = 20};
    std::string reports[2];
    for (std::string& report : reports) {
        sim::World world;
        world.seed(4711, ratios);
        slow_reader(world);
        report = world.fault_report();
    }
    CHECK(reports[0] == reports[1]);
    CHECK(reports[0].find("4711") != std::string::npos);
}

}  // namespace penstock::test
