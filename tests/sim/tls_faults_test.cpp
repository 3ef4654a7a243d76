// TLS while platform calls fail: each in turn, and in seeded storms. Whatever happens, nothing is left behind, and what can be
// decrypted is a beginning of what should have come.
#include <algorithm>
#include <functional>

#include "fault_scenarios.h"
#include "penstock/platform/file.h"
#include "stream_fixture.h"
#include "tls_fixture.h"

#include <wolfssl/options.h>
// Behind the options.
#include <wolfssl/ssl.h>

namespace penstock::test {
namespace {

Router fault_router() {
    Router router;
    router.get("/plaintext", [](Request&, Response& response) { response.send_static("Hello, World!"); });
    router.get("/large", [](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
    router.post("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.get("/file", [](Request&, Response& response) {
        const auto root = platform::open_directory("/files");
        const IoResult file = root.ok() ? platform::open_beneath(root.value(), "data.bin") : IoResult::failure(ENOENT);
        if (root.ok()) {
            platform::close_descriptor(root.value());
        }
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
    return router;
}

struct Scene {
    sim::World& world;
    ReactorUnderTest& server;

    void settle() {
        server.settle();
        while (server.offload.run_one()) {
            server.settle();
        }
    }
    [[nodiscard]] bool shake_hands(TlsPeer& peer) {
        peer.tls().shake_hands();
        for (int flights = 0; flights < 4 && !peer.tls().established(); ++flights) {
            peer.flush();
            settle();
            peer.take_in();
        }
        return peer.tls().established();
    }
};

// Long enough that deadlines end whatever a fault left hanging; then everything must have been given back.
void run_scenario(sim::World& world, const std::function<void(Scene&)>& scenario) {
    {
        ReactorUnderTest server(world, fault_router(), small_config(), tls_options());
        if (server.start()) {
            Scene scene{world, server};
            scenario(scene);
            world.pause_faults();
            for (int i = 0; i < 8; ++i) {
                scene.settle();
                server.advance(20'000);
            }
            INFO(world.fault_report());
            server.check_nothing_left();
        }
        world.pause_faults();
    }
    CHECK_MESSAGE(world.open_descriptors() == 0, world.fault_report());
    CHECK_MESSAGE(world.bad_descriptor_calls() == 0, world.fault_report());
}

void check_body(sim::World& world, const std::string& got, const std::string& wanted) {
    const std::size_t end = got.find("\r\n\r\n");
    if (end != std::string::npos && got.compare(9, 3, "200") == 0) {
        const std::string body = got.substr(end + 4, wanted.size());
        CHECK_MESSAGE(wanted.compare(0, body.size(), body) == 0, world.fault_report());
    }
}

void request_and_close(sim::World& world) {
    run_scenario(world, [](Scene& scene) {
        TlsPeer peer(scene.world.connect(kPort));
        if (scene.shake_hands(peer)) {
            peer.send(get("/plaintext", "Connection: close\r\n"));
            scene.settle();
            check_body(scene.world, peer.take_received(), "Hello, World!");
        }
        peer.wire().close();
    });
}

void upload(sim::World& world) {
    run_scenario(world, [](Scene& scene) {
        TlsPeer peer(scene.world.connect(kPort));
        if (scene.shake_hands(peer)) {
            const std::string body(40'000, 'u');
            peer.send("POST /echo HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 40000\r\n\r\n");
            for (std::size_t at = 0; at < body.size(); at += 10'000) {
                peer.send(body.substr(at, 10'000));
            }
            scene.settle();
            check_body(scene.world, peer.take_received(), body);
        }
        peer.wire().close();
    });
}

void slow_reader(sim::World& world, const char* path, const std::string& wanted, bool cold) {
    run_scenario(world, [&](Scene& scene) {
        scene.world.add_file("/files/data.bin", 300'000, [](std::uint64_t, std::span<char> bytes) {
            std::fill(bytes.begin(), bytes.end(), 'f');
        });
        if (cold) {
            scene.world.chill_file("/files/data.bin");
        }
        TlsPeer peer(scene.world.connect(kPort));
        std::string got;
        if (scene.shake_hands(peer)) {
            peer.wire().set_receive_window(20'000);
            peer.send(get(path, "Connection: close\r\n"));
            for (int i = 0; i < 100 && !peer.wire().finished_by_server() && !peer.wire().reset_by_server(); ++i) {
                scene.settle();
                peer.tls().give(peer.wire().read(15'000));
                got += peer.tls().take_received();
            }
            check_body(scene.world, got, wanted);
            if (scene.world.faults().empty() && peer.tls().error() == 0) {
                CHECK(got.ends_with(wanted));
            }
        }
    });
}

void large(sim::World& world) { slow_reader(world, "/large", std::string(100'000, 'x'), false); }
void file(sim::World& world) { slow_reader(world, "/file", std::string(300'000, 'f'), false); }
void cold_file(sim::World& world) { slow_reader(world, "/file", std::string(300'000, 'f'), true); }

void both_ways(sim::World& world) {
    run_scenario(world, [](Scene& scene) {
        TlsPeer peer(scene.world.connect(kPort));
        if (scene.shake_hands(peer)) {
            peer.wire().set_receive_window(20'000);
            peer.send(post("/copy", length_field(30'000), ""));
            peer.send(std::string(10'000, 's'));
            peer.send(std::string(20'000, 's') + get("/plaintext"));
            for (int i = 0; i < 20; ++i) {
                scene.settle();
                peer.tls().give(peer.wire().read(15'000));
            }
        }
        peer.wire().close();
    });
}


constexpr FaultScenario kScenarios[] = {
    {"request and close", request_and_close, 20}, {"upload", upload, 20},           {"large", large, 50},
    {"file", file, 60},                           {"file on a cold disk", cold_file, 60}, {"both ways", both_ways, 30},
};

}  // namespace

TEST_CASE("each platform call of a scenario over TLS fails in turn") {
    check_sweeps(kScenarios);
}

TEST_CASE("storms of faults over TLS leave nothing behind") {
    const sim::Ratios storms[] = {
        {.short_read = 300, .short_write = 300, .would_block = 200},
        {.short_read = 100, .short_write = 100, .would_block = 100, .reset = 20, .no_memory = 20, .no_descriptor = 20,
         .file_error = 20, .interrupted = 100},
    };
    check_storms(kScenarios, storms, 20);
}

// RFC 8446 §4.6.3: each asks for an answer, and nobody reads those.
TEST_CASE("key updates without end do not fill the memory of the server") {
    TlsEngine engine(fault_router());
    TlsPeer peer = engine.connect();
    peer.wire().set_receive_window(100);
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 50; ++i) {
            REQUIRE(wolfSSL_update_keys(peer.tls().session()) == WOLFSSL_SUCCESS);
        }
        peer.flush();
        engine.server.settle();
    }
    CHECK(engine.server.reactor().blocks().leased() <= kTlsUnsentLimitBytes / kIoBlockBytes + 3);
    CHECK(peer.wire().unread_by_server() > 0);
    peer.wire().close();
    engine.server.advance(31'000);
    engine.server.check_nothing_left();
}

}  // namespace penstock::test
