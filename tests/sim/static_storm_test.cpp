// Storms over static files: hundreds of requests by clients that leave, reset and dawdle, while the disk stalls and files are
// replaced, cut, removed and chilled. Every answer must be one version of its file, the one that its ETag names.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine_fixture.h"
#include "penstock/protocols/http/static_files.h"
#include "support/seed.h"

namespace penstock::test {

namespace {

constexpr std::array<const char*, 9> kNames{"a",          "b.css",    "b.css.gz",   "c",   "c.br",
                                            "index.html", "d/index.html", "404.html", "d"};
constexpr std::array<std::uint64_t, 9> kSizes{0, 1, 300, 5'000, kReadFileLimitBytes, kCachedFileLimitBytes - 1, kCachedFileLimitBytes,
                                              kCachedFileLimitBytes + 1, kFileWarmBytes + 5};

class Storm {
public:
    explicit Storm(std::uint64_t seed) : random_(seed * 0x9e37'79b9'7f4a'7c15 + 1) {}

    void run(bool with_faults);

private:
    struct Client {
        sim::Peer peer;
        bool heads = false;
        bool slow = false;
        std::string received;
    };

    std::uint64_t draw(std::uint64_t limit) {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return (random_ >> 11) % limit;
    }
    Router make_router();
    void change_a_file();
    void ask();
    std::string request(bool head);
    void act(Client& client);
    void end(Client& client);
    void check(const Client& client, bool ended);
    void check_reply(const Reply& reply, bool head, bool whole);

    std::uint64_t random_;
    sim::World world_;
    std::unique_ptr<ReactorUnderTest> server_;
    std::map<std::int64_t, std::string> versions_;  // by the time of their last change
    std::int64_t next_version_ = (sim::World::kStartWallSeconds - 1'000'000) * 1'000'000'000;
    std::vector<Client> clients_;
    std::map<std::string, std::string> current_;
    bool d_is_file_ = false;
    std::uint64_t whole_ = 0;
    std::uint64_t bodies_ = 0;
};

std::string content_of(std::uint64_t size, std::int64_t version) {
    std::string content = std::to_string(version) + ":";
    content.resize(size);
    for (std::size_t i = std::min<std::size_t>(size, 24); i < content.size(); ++i) {
        content[i] = static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(version / 1'000)) % 26);
    }
    return content;
}

Router Storm::make_router() {
    Router router;
    StaticFileOptions options{.directory_listing = true, .precompressed = true};
    options.not_found_page = "404.html";
    options.cache.entries = static_cast<std::uint32_t>(std::array{0, 1, 2, 5, 100}[draw(5)]);
    options.cache.bytes = std::array<std::uint64_t, 6>{0, 1, 3'000, 300'000, 700'000, 32 << 20}[draw(6)];
    options.cache.descriptors = static_cast<std::uint32_t>(std::array{0, 1, 2, 50}[draw(4)]);
    options.cache.time_to_live_ms = std::array<std::uint32_t, 4>{0, 1, 300, ~0u}[draw(4)];
    const Result<PlainHandler> files = static_files("/www", options);
    REQUIRE(files.ok());
    router.get("/*path", files.value());
    router.any("/any/*path", files.value());
    router.get("/task/*path", [serve = files.value()](Request& request, Response& response) -> Task<void> {
        serve(request, response);
        co_return;
    });
    router.get("/sleep/*path", [serve = files.value()](Request& request, Response& response) -> Task<void> {
        co_await sleep_ms(3);
        serve(request, response);
        co_await sleep_ms(3);
    });
    router.get("/throw/*path", [serve = files.value()](Request& request, Response& response) -> Task<void> {
        serve(request, response);
        throw std::runtime_error("after the call");
        co_return;
    });
    return router;
}

void Storm::change_a_file() {
    const std::string name = kNames[draw(kNames.size())];
    const std::string path = "/www/" + name;
    const auto set_version = [&](const std::string& content) {
        next_version_ += 1'000'000'007;
        world_.set_modified_ns(path, next_version_);
        versions_[next_version_] = content;
        current_[name] = content;
    };
    const auto replace = [&](std::uint64_t size) {
        const std::string content = content_of(size, next_version_);
        world_.add_file(path, content);
        set_version(content);
    };
    if (name == "d") {  // a directory that is a file at times
        if (draw(3) == 0) {
            if (world_.exists(path)) {
                world_.remove_file(path);
            }
            d_is_file_ = draw(2) == 0;
            if (d_is_file_) {
                replace(50);
            }
        }
        return;
    }
    if (name == "d/index.html" && d_is_file_) {
        return;
    }
    switch (world_.exists(path) ? draw(9) : 0) {
        case 4:
        case 5: world_.chill_file(path); break;
        case 6: world_.remove_file(path); break;
        case 7: world_.set_permitted(path, draw(2) == 0); break;
        case 8: {
            // Only ever shorter: what is cut and grows again while it is being sent has other bytes, and nobody can tell.
            std::string content = current_[name];
            content.resize(draw(content.size() + 1));
            world_.truncate_file(path, content.size());
            set_version(content);
            break;
        }
        default: replace(kSizes[draw(kSizes.size())]); break;
    }
}

std::string Storm::request(bool head) {
    static constexpr std::array kPrefixes{"/", "/", "/", "/any/", "/task/", "/sleep/", "/throw/"};
    static constexpr std::array kPaths{"a", "b.css", "b.css.gz", "c", "c.br", "", "d/", "d", "none", "a/x", "index.html"};
    const std::string prefix = head ? "/" : kPrefixes[draw(kPrefixes.size())];
    const std::string path = prefix + kPaths[draw(kPaths.size())];
    std::string fields = "Host: t\r\n";
    if (draw(2) == 0) {
        fields += "Accept-Encoding: gzip, br\r\n";
    }
    if (draw(6) == 0) {
        fields += "Range: bytes=" + std::to_string(draw(200)) + "-" + std::to_string(200 + draw(200'000)) + "\r\n";
    } else if (draw(20) == 0) {
        fields += "Range: bytes=0-1,5-9,100-200\r\n";
    }
    if (draw(10) == 0) {
        fields += "If-None-Match: *\r\n";
    }
    if (draw(30) == 0) {
        fields += "Connection: close\r\n";
    }
    const char* method = head ? "HEAD " : "GET ";
    std::string body;
    if (prefix == "/any/" && draw(2) == 0) {
        method = "POST ";
        body = std::string(draw(30'000), 'p');
        fields += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    return method + path + " HTTP/1.1\r\n" + fields + "\r\n" + body;
}

void Storm::ask() {
    if (clients_.size() < 40) {
        Client client;
        client.peer = world_.connect(kPort);
        client.heads = draw(8) == 0;
        client.slow = draw(4) == 0;
        if (client.slow) {
            client.peer.set_receive_window(2'000 + draw(60'000));
        }
        clients_.push_back(std::move(client));
    }
    Client& client = clients_[draw(clients_.size())];
    std::string bytes;
    for (std::uint64_t i = draw(5); i > 0; --i) {
        bytes += request(client.heads);
    }
    (void)client.peer.send(bytes);
}

void Storm::act(Client& client) {
    switch (draw(40)) {
        case 0: client.peer.reset(); break;
        case 1: client.peer.close(); break;
        case 2: client.peer.finish(); break;
        default: {
            if (client.slow) {
                (void)client.peer.read(draw(80'000));
            }
            client.received += client.peer.take_received();
            if (!client.peer.closed_by_server() || !client.peer.connected()) {
                return;
            }
        }
    }
    end(client);
}

void Storm::end(Client& client) {
    if (client.slow) {
        client.peer.read_freely();
    }
    client.received += client.peer.take_received();
    check(client, true);
    client.peer.reset();
    std::swap(client, clients_.back());
    clients_.pop_back();
}

void Storm::check(const Client& client, bool ended) {
    std::size_t heads = client.heads ? 1'000'000 : 0;
    const std::vector<Reply> replies = replies_in(client.received, heads);
    for (std::size_t i = 0; i < replies.size(); ++i) {
        REQUIRE((replies[i].status != -1 || (ended && i + 1 == replies.size())));
        check_reply(replies[i], client.heads, replies[i].status != -1);
    }
}

void Storm::check_reply(const Reply& reply, bool head, bool whole) {
    const std::string tag = reply.field("ETag");
    const int status = status_of(reply.head);
    if (!reply.head.ends_with("\r\n\r\n") || tag.empty() || head || status == 304 || reply.head.find("multipart/byteranges") != std::string::npos) {
        return;
    }
    const std::size_t first = tag.find('-');
    const std::int64_t version = std::stoll(tag.substr(first + 1), nullptr, 16);
    const auto found = versions_.find(version);
    if (found == versions_.end()) {
        FAIL("an ETag of no version: " << reply.head);
    }
    std::string_view content = found->second;
    if (status == 206) {
        const std::string range = reply.field("Content-Range");
        content.remove_prefix(std::stoul(range.substr(6)));
    } else {
        REQUIRE(status == 200);
        REQUIRE((!whole || reply.body.size() == content.size()));
    }
    const bool same = content.substr(0, reply.body.size()) == reply.body;
    REQUIRE_MESSAGE(same, reply.head);
    ++bodies_;
    whole_ += whole ? 1 : 0;
}

void Storm::run(bool with_faults) {
    for (int i = 0; i < 30; ++i) {
        change_a_file();
    }
    for (const char* const name : {"404.html", "a"}) {
        world_.add_file(std::string("/www/") + name, "x");
        next_version_ += 1'000'000'007;
        world_.set_modified_ns(std::string("/www/") + name, next_version_);
        versions_[next_version_] = current_[name] = "x";
    }
    const std::size_t before = world_.open_descriptors();
    Config config = small_config();
    config.offload_limit = static_cast<std::uint32_t>(std::array{0, 1, 4, 64}[draw(4)]);
    config.request_timeout_ms = draw(2) == 0 ? 0 : 2'000;
    server_ = std::make_unique<ReactorUnderTest>(world_, make_router(), config);
    REQUIRE(server_->start());
    if (with_faults) {
        world_.seed(random_, {.short_read = 20, .short_write = 20, .would_block = 20, .reset = 3, .no_memory = 2, .no_descriptor = 10,
                              .file_error = 10, .interrupted = 10});
    }
    for (int step = 0; step < 1'500; ++step) {
        switch (draw(8)) {
            case 0: world_.pause_faults(); change_a_file(); world_.resume_faults(); break;
            case 1:
            case 2: ask(); break;
            case 3: (void)server_->offload.run_one(); break;
            case 4: world_.advance_ms(draw(50) == 0 ? 3'000 : draw(10)); break;
            case 5: server_->reactor().run_turn(0); break;
            case 6: server_->settle(); break;
            default:
                if (!clients_.empty()) {
                    act(clients_[draw(clients_.size())]);
                }
        }
    }
    world_.pause_faults();
    if (draw(2) == 0) {
        server_->reactor().request_stop(draw(2) == 0);
    }
    while (!clients_.empty()) {
        server_->settle_offloads();
        end(clients_.back());
    }
    for (int i = 0; i < 6; ++i) {
        server_->settle_offloads();
        server_->advance(20'000);
    }
    INFO(world_.fault_report());
    server_->check_nothing_left();
    server_.reset();
    CHECK(world_.open_descriptors() == before);
    CHECK(world_.bad_descriptor_calls() == 0);
    CHECK(bodies_ > 20);
}

}  // namespace

TEST_CASE("storms over static files: every body is one version of its file, and nothing is left behind") {
    constexpr std::uint64_t kSeeds = 20;
    for (std::uint64_t i = 0; i < kSeeds; ++i) {
        const std::uint64_t seed = test_seed() + i;
        CAPTURE(seed);
        auto storm = std::make_unique<Storm>(seed);
        storm->run(i % 2 == 1);
    }
}

}  // namespace penstock::test
