// Files that are replaced, cut and removed on a real disk while two reactors that share one handler send them.
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "loop/loop_client.h"
#include "loop/platform_fixture.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {
namespace {

constexpr int kNames = 6;
// Around each limit: what is read at once, what is kept with its content, what is sent from a descriptor.
constexpr std::size_t kSizes[] = {0, 10, 5'000, 16 << 10, (128 << 10) - 1, 128 << 10, (128 << 10) + 1, 700'000};

// Tells from any part of it which version it is.
std::string content_of(std::size_t version) {
    const std::string word = std::to_string(version) + ";";
    std::string content;
    const std::size_t size = kSizes[version % std::size(kSizes)];
    content.reserve(size + word.size());
    while (content.size() < size) {
        content += word;
    }
    content.resize(size);
    return content;
}

std::string name_of(std::size_t number) { return "file" + std::to_string(number % kNames); }

// As who cares for their readers does: written beside it, and renamed.
void replace(const std::string& directory, std::size_t version) {
    const std::string path = directory + "/" + name_of(version);
    {
        std::ofstream file(path + ".new", std::ios::binary);
        file << content_of(version);
    }
    std::filesystem::rename(path + ".new", path);
}

// A whole version, whichever.
bool is_whole(std::string_view body) {
    if (body.empty() || body.size() == 10) {
        return true;
    }
    const std::size_t version = std::stoul(std::string(body.substr(0, body.find(';'))));
    return body == content_of(version);
}

}  // namespace

TEST_CASE("files that are replaced and removed while two reactors send them are sent whole, each in one version") {
    constexpr std::size_t kRounds = kSanitized ? 40 : 200;
    constexpr int kClients = 4;
    const TemporaryDirectory directory;
    for (std::size_t i = 0; i < 2 * kNames; ++i) {
        replace(directory.path(), i);
    }
    const Result<PlainHandler> files =
        static_files(directory.path(), {.cache = {.entries = 4, .bytes = 400'000, .descriptors = 1, .time_to_live_ms = 1}});
    REQUIRE(files.ok());
    Router router;
    router.get("/*path", files.value());
    router.get("/again/*path", files.value());
    const std::size_t before = open_descriptors();
    auto owned = std::make_unique<Server>(reactors(2));
    Server& server = *owned;
    server.listen({.address = "127.0.0.1"}, router);
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);

    std::atomic<bool> over{false};
    std::atomic<std::size_t> wrong{0};
    std::atomic<std::size_t> answers{0};
    std::vector<std::thread> threads;
    for (int client = 0; client < kClients; ++client) {
        threads.emplace_back([&, client] {
            for (std::size_t i = static_cast<std::size_t>(client); !over.load(); ++i) {
                LoopClient connection(server.port(i % 2));
                for (int request = 0; request < 10; ++request, i += 5) {
                    const Answer answer = connection.ask((i % 3 == 0 ? "/again/" : "/") + name_of(i));
                    const bool right = answer.status == 404 || answer.status == 503 || (answer.status == 200 && is_whole(answer.body));
                    wrong += right ? 0 : 1;
                    ++answers;
                }
            }
        });
    }
    for (std::size_t round = 0; round < kRounds || answers.load() < 10 * kRounds; ++round) {
        replace(directory.path(), 100 + round);
        if (round % 7 == 0) {
            std::filesystem::remove(directory / name_of(round * 5));
        }
        std::this_thread::yield();
        REQUIRE(round < 1'000'000);
    }
    over = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong.load() == 0);
    CHECK(stops(server));
    owned.reset();
    CHECK(open_descriptors() == before);
}

}  // namespace penstock::test
