// Compressed responses and encoded requests while platform calls fail: whatever leaves decodes to the front of what should
// have, what looks whole is whole, and nothing is left behind.
#include "compress_fixture.h"
#include "penstock/platform/file.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {
namespace {

constexpr std::size_t kBody = 100'000;

const std::string& body() {
    static const std::string text = text_body(kBody / 2) + random_body(kBody / 2);
    return text;
}

Router router_for_faults() {
    Router router = compressing({.cache_bytes = 10'000});
    router.get("/sent", [](Request&, Response& response) { response.send(std::string(body())); });
    router.get("/small", [](Request&, Response& response) { response.send(std::string_view(body()).substr(0, 20'000)); });
    router.get("/written", [](Request&, Response& response) -> Task<void> {
        for (std::size_t at = 0; at < kBody; at += 40'000) {
            co_await response.write(std::string_view(body()).substr(at, 40'000));
        }
    });
    router.get("/file", [](Request& request, Response& response) {
        const auto files = static_files("/www", {.parameter = "none", .index_files = {"body.txt"}});
        files.ok() ? files.value()(request, response) : response.status(503).send_empty();
    });
    router.post("/copy", [](Request& request, Response& response) { std::make_shared<Copier>(request, response)->read(); },
                {.stream_body = true, .decode_body = true});
    return router;
}

// As far as it has come, it is the front of what was to come.
void check_answer(const std::string& got, std::string_view wanted) {
    const std::size_t end = got.find("\r\n\r\n");
    if (end == std::string::npos || status_of(got) != 200) {
        return;
    }
    const bool is_chunked = got.find("Transfer-Encoding: chunked") < end;
    std::string sent;
    bool is_whole = false;
    if (is_chunked) {
        std::string_view rest = std::string_view(got).substr(end + 4);
        for (std::size_t line = rest.find("\r\n"); line != std::string_view::npos && !is_whole; line = rest.find("\r\n")) {
            const std::size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
            sent.append(rest.substr(line + 2, size));
            is_whole = size == 0 && rest.size() >= line + 4;
            rest.remove_prefix(std::min(line + 2 + size + 2, rest.size()));
        }
    } else {
        const Reply reply = replies_in(got).front();
        sent = got.substr(end + 4);
        is_whole = reply.status == 200 && !reply.field("Content-Length").empty();
    }
    std::string plain = sent;
    if (got.find("Content-Encoding: gzip") < end) {
        const auto decoder = ContentDecoder::create(ContentCoding::gzip, kNoLimit);
        plain.clear();
        CHECK(decoder->decode(sent, plain));
        CHECK((!is_whole || decoder->finish()));
    }
    CHECK((wanted.substr(0, plain.size()) == plain));
    CHECK((!is_whole || plain.size() == wanted.size()));
}

void talk(sim::World& world, ReactorUnderTest& server) {
    const auto ask = [&](const std::string& request, std::string_view wanted, bool slowly) {
        sim::Peer peer = world.connect(kPort);
        if (slowly) {
            peer.set_receive_window(20'000);
        }
        peer.send(request);
        server.settle();
        std::string got;
        for (int reads = 0; slowly && reads < 40; ++reads) {
            got += peer.read(20'000);
            server.settle();
        }
        check_answer(slowly ? got : peer.take_received(), wanted);
        peer.close();
        server.settle();
    };
    for (const std::string_view path : {"/sent", "/written", "/file"}) {
        ask(get(path, accepting("gzip")), body(), path != "/written");
    }
    ask(get("/small", accepting("gzip")), std::string_view(body()).substr(0, 20'000), false);
    const std::string sent = encoded(ContentCoding::gzip, std::string_view(body()).substr(0, 50'000));
    ask(post("/copy", "Content-Encoding: gzip\r\n" + accepting("gzip") + length_field(sent.size()), sent),
        std::string_view(body()).substr(0, 50'000), false);
}

void scenario(sim::World& world) {
    world.pause_faults();
    world.add_file("/www/body.txt", body());
    world.resume_faults();
    ReactorUnderTest server(world, router_for_faults());
    if (server.start()) {
        talk(world, server);
        world.pause_faults();
        for (int i = 0; i < 8; ++i) {
            server.advance(20'000);
        }
        INFO(world.fault_report());
        server.check_nothing_left();
        CHECK(server.reactor().encoder_memory_bytes() == 0);
        CHECK(server.reactor().free_body_memory() == small_config().body_memory_limit_bytes);
    }
    world.pause_faults();
    server.destroy();
    CHECK_MESSAGE(world.open_descriptors() == 0, world.fault_report());
    CHECK_MESSAGE(world.bad_descriptor_calls() == 0, world.fault_report());
}

}  // namespace

TEST_CASE("each platform call fails in turn while bodies are compressed and decoded") {
    const std::uint64_t runs = sim::sweep(scenario);
    MESSAGE(runs << " runs");
    CHECK(runs > 100);
}

TEST_CASE("storms of faults while bodies are compressed and decoded") {
    const sim::Ratios storms[] = {
        {.short_read = 300, .short_write = 300, .would_block = 200},
        {.short_read = 50, .short_write = 100, .would_block = 100, .reset = 10, .no_memory = 10, .no_descriptor = 10, .file_error = 20, .interrupted = 100},
    };
    for (const sim::Ratios& ratios : storms) {
        for (std::uint64_t seed = test_seed(); seed < test_seed() + 15; ++seed) {
            CAPTURE(seed);
            sim::World world;
            world.seed(seed, ratios);
            scenario(world);
        }
    }
}

}  // namespace penstock::test
