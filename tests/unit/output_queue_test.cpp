#include "penstock/engine/output_queue.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/platform/file.h"
#include "support/abort_message.h"

namespace penstock {

namespace {

// A pool and a queue, cleared at the end as a connection would.
struct Output {
    explicit Output(std::uint32_t limit = 64) : pool(kIoBlockBytes, limit, 4) {}
    ~Output() {
        queue.clear(pool);
        CHECK(pool.leased() == 0);
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::string_view bytes) {
        const std::span<char> room = queue.try_reserve(pool, bytes.size());
        REQUIRE(room.size() >= bytes.size());
        std::memcpy(room.data(), bytes.data(), bytes.size());
        queue.commit(bytes.size());
    }

    // What a gathering send would be given.
    std::vector<std::string> gathered(bool* file_follows = nullptr, std::size_t limit = 64) const {
        std::array<platform::SendPiece, 64> pieces{};
        bool follows = false;
        const std::size_t count = queue.gather(std::span(pieces).first(limit), &follows);
        if (file_follows != nullptr) {
            *file_follows = follows;
        }
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < count; ++i) {
            texts.emplace_back(static_cast<const char*>(pieces[i].data), pieces[i].size);
        }
        return texts;
    }

    BlockPool pool;
    OutputQueue queue;
};

using Texts = std::vector<std::string>;

void count_release(void* counter) {
    ++*static_cast<int*>(counter);
}

int open_some_file() {
    Result<int> opened = platform::open_directory("/");
    REQUIRE(opened.ok());
    return opened.value();
}

bool is_open(int fd) {
    platform::FileInfo info;
    return platform::file_info(fd, &info) == 0;
}

}  // namespace

TEST_CASE("OutputQueue: an empty one holds nothing and gives nothing") {
    Output output;
    CHECK(output.queue.empty());
    CHECK(output.queue.memory_bytes() == 0);
    CHECK(output.queue.front_file() == nullptr);
    bool file_follows = true;
    CHECK(output.gathered(&file_follows).empty());
    CHECK(!file_follows);
    output.queue.consume(output.pool, 0);
    output.queue.clear(output.pool);
    CHECK(output.queue.try_append_copy(output.pool, ""));
    CHECK(output.queue.empty());
    CHECK(output.pool.leased() == 0);
}

TEST_CASE("OutputQueue: what follows each other in a block leaves as one piece") {
    Output output;
    output.write("head ");
    CHECK(output.queue.try_append_copy(output.pool, "body "));
    output.write("head");
    CHECK(output.gathered() == Texts{"head body head"});
    CHECK(output.queue.memory_bytes() == 14);
    CHECK(output.pool.leased() == 1);
    output.queue.consume(output.pool, 3);
    CHECK(output.gathered() == Texts{"d body head"});
    output.write("!");
    CHECK(output.gathered() == Texts{"d body head!"});
    CHECK(output.queue.memory_bytes() == 12);
    output.queue.consume(output.pool, 12);
    CHECK(output.queue.empty());
    CHECK(output.queue.memory_bytes() == 0);
    CHECK(output.pool.leased() == 0);
}

TEST_CASE("OutputQueue: the largest reservation fits a fresh block, and a small one uses what is left") {
    Output output;
    const std::string large(OutputQueue::kMaxReserveBytes, 'l');
    output.write(large);
    CHECK(output.pool.leased() == 1);
    output.write("small");
    CHECK(output.pool.leased() == 1);
    output.write(large);
    CHECK(output.pool.leased() == 2);
    CHECK(output.gathered() == Texts{large + "small", large});
    output.queue.consume(output.pool, large.size() + 4);
    CHECK(output.pool.leased() == 2);
    output.queue.consume(output.pool, 1);
    CHECK(output.pool.leased() == 1);
    output.queue.consume(output.pool, large.size());
    CHECK(output.queue.empty());
}

TEST_CASE("OutputQueue: a reserved span may be filled to its end") {
    Output output;
    for (int i = 0; i < 3; ++i) {
        const std::span<char> room = output.queue.try_reserve(output.pool, 1);
        std::memset(room.data(), 'r', room.size());
        output.queue.commit(room.size());
        CHECK(output.pool.leased() == static_cast<unsigned>(i + 1));
    }
    CHECK(output.gathered().size() == 3);
}

TEST_CASE("OutputQueue: a reservation that is not used holds its block no longer than the next consume") {
    Output output;
    CHECK(!output.queue.try_reserve(output.pool, 10).empty());
    output.queue.commit(0);
    CHECK(output.gathered().empty());
    CHECK(output.queue.front_file() == nullptr);
    output.queue.consume(output.pool, 0);
    CHECK(output.queue.empty());
    CHECK(output.pool.leased() == 0);

    output.write("x");
    CHECK(!output.queue.try_reserve(output.pool, OutputQueue::kMaxReserveBytes).empty());
    output.queue.consume(output.pool, 1);
    CHECK(output.queue.empty());
    CHECK(!output.queue.try_reserve(output.pool, 0).empty());
}

TEST_CASE("OutputQueue: a copy over several blocks, all or nothing") {
    Output output(3);
    std::string text;
    for (int i = 0; text.size() < 40'000; ++i) {
        text += std::to_string(i) + ' ';
    }
    output.write("before ");
    CHECK(!output.queue.try_append_copy(output.pool, std::string(50'000, 'x')));
    CHECK(output.pool.leased() == 1);
    CHECK(output.gathered() == Texts{"before "});
    CHECK(output.queue.try_append_copy(output.pool, text));
    CHECK(output.pool.leased() == 3);
    CHECK(output.queue.memory_bytes() == text.size() + 7);
    std::string joined;
    for (const std::string& piece : output.gathered()) {
        joined += piece;
    }
    CHECK(joined == "before " + text);
    CHECK(!output.queue.try_append_copy(output.pool, std::string(20'000, 'x')));
    output.write("behind");
    output.queue.consume(output.pool, text.size() + 7);
    CHECK(output.gathered() == Texts{"behind"});
    CHECK(output.pool.leased() == 1);
}

TEST_CASE("OutputQueue: a copy that just fills its blocks takes no further one") {
    Output output;
    const std::size_t fresh = output.queue.try_reserve(output.pool, 1).size();
    output.queue.consume(output.pool, 0);
    for (unsigned blocks = 1; blocks <= 3; ++blocks) {
        CHECK(output.queue.try_append_copy(output.pool, std::string(blocks * fresh, 'f')));
        CHECK(output.pool.leased() == blocks);
        output.queue.clear(output.pool);
        CHECK(output.queue.try_append_copy(output.pool, std::string(blocks * fresh + 1, 'f')));
        CHECK(output.pool.leased() == blocks + 1);
        output.queue.clear(output.pool);
    }
}

TEST_CASE("OutputQueue: without a block everything is refused and nothing is taken") {
    Output output(0);
    int releases = 0;
    std::string text = "a string that is kept by the one who could not hand it over";
    const int fd = open_some_file();
    CHECK(output.queue.try_reserve(output.pool, 1).empty());
    CHECK(output.queue.try_reserve(output.pool, 0).empty());
    CHECK(!output.queue.try_append_copy(output.pool, "x"));
    CHECK(!output.queue.try_append_external(output.pool, "x", &releases, &count_release));
    CHECK(!output.queue.try_append_string(output.pool, std::move(text)));
    CHECK(!output.queue.try_append_file(output.pool, {fd, 0, 1}));
    CHECK(output.queue.empty());
    CHECK(releases == 0);
    CHECK(text.size() == 59);
    CHECK(is_open(fd));
    platform::close_descriptor(fd);
}

TEST_CASE("OutputQueue: external bytes are released once: when sent, when cleared, at once when empty") {
    Output output;
    std::array<int, 4> releases{};
    CHECK(output.queue.try_append_external(output.pool, "", &releases[0], &count_release));
    CHECK(output.queue.try_append_external(output.pool, "", nullptr, nullptr));
    CHECK(releases[0] == 1);
    CHECK(output.queue.empty());

    CHECK(output.queue.try_append_external(output.pool, "first", &releases[1], &count_release));
    CHECK(output.queue.try_append_external(output.pool, "for ever", nullptr, nullptr));
    CHECK(output.queue.try_append_external(output.pool, "second", &releases[2], &count_release));
    CHECK(output.queue.try_append_external(output.pool, "third", &releases[3], &count_release));
    CHECK(output.gathered() == Texts{"first", "for ever", "second", "third"});
    CHECK(output.queue.memory_bytes() == 24);
    output.queue.consume(output.pool, 4);
    CHECK(releases[1] == 0);
    output.queue.consume(output.pool, 1 + 8 + 5);
    CHECK(releases[1] == 1);
    CHECK(releases[2] == 0);
    CHECK(output.gathered() == Texts{"d", "third"});
    output.queue.clear(output.pool);
    CHECK(releases == std::array{1, 1, 1, 1});
    CHECK(output.queue.empty());
    CHECK(output.queue.memory_bytes() == 0);
}

TEST_CASE("OutputQueue: bytes in blocks go on behind an external piece") {
    Output output;
    output.write("head");
    CHECK(output.queue.try_append_external(output.pool, "body", nullptr, nullptr));
    output.write("next");
    output.write(" head");
    CHECK(output.gathered() == Texts{"head", "body", "next head"});
    CHECK(output.gathered(nullptr, 2) == Texts{"head", "body"});
    CHECK(output.gathered(nullptr, 0).empty());
    output.queue.consume(output.pool, 9);
    CHECK(output.gathered() == Texts{"ext head"});
}

TEST_CASE("OutputQueue: strings, short and long, live in the queue until they are sent") {
    Output output;
    output.write("odd");  // so that the string's place has to be aligned
    CHECK(output.queue.try_append_string(output.pool, std::string("short")));
    CHECK(output.queue.try_append_string(output.pool, std::string(100'000, 'l')));
    CHECK(output.queue.try_append_string(output.pool, std::string()));
    output.write("behind");
    CHECK(output.gathered() == Texts{"odd", "short", std::string(100'000, 'l'), "behind"});
    CHECK(output.pool.leased() == 1);
    CHECK(output.queue.memory_bytes() == 100'014);
    output.queue.consume(output.pool, 5);
    CHECK(output.gathered()[0] == "ort");
    output.queue.consume(output.pool, 60'000);
    CHECK(output.gathered() == Texts{std::string(40'003, 'l'), "behind"});
}

TEST_CASE("OutputQueue: more pieces than one block describes") {
    Output output;
    int releases = 0;
    constexpr int kPieces = 2000;
    for (int i = 0; i < kPieces; ++i) {
        REQUIRE(output.queue.try_append_external(output.pool, "ab", &releases, &count_release));
        REQUIRE(output.queue.try_append_string(output.pool, "c"));
    }
    CHECK(output.pool.leased() > 4);
    CHECK(output.gathered().size() == 64);
    for (int i = 0; i < kPieces; ++i) {
        output.queue.consume(output.pool, 3);
        REQUIRE(releases == i + 1);
    }
    CHECK(output.queue.empty());
}

TEST_CASE("OutputQueue: a file range stands between what is before it and behind it") {
    Output output;
    const int fd = open_some_file();
    output.write("head");
    CHECK(!output.queue.ends_with_file());
    CHECK(output.queue.try_append_file(output.pool, {fd, 1000, 500}));
    CHECK(output.queue.ends_with_file());
    output.write("tail");
    CHECK(!output.queue.ends_with_file());
    CHECK(output.queue.memory_bytes() == 8);
    bool file_follows = false;
    CHECK(output.gathered(&file_follows) == Texts{"head"});
    CHECK(file_follows);
    CHECK(output.gathered(&file_follows, 1) == Texts{"head"});
    CHECK(file_follows);
    CHECK(output.queue.front_file() == nullptr);

    output.queue.consume(output.pool, 4);
    REQUIRE(output.queue.front_file() != nullptr);
    CHECK(output.gathered(&file_follows).empty());
    CHECK(file_follows);
    output.queue.consume(output.pool, 499);
    REQUIRE(output.queue.front_file() != nullptr);
    CHECK(output.queue.front_file()->fd == fd);
    CHECK(output.queue.front_file()->offset == 1499);
    CHECK(output.queue.front_file()->size == 1);
    CHECK(is_open(fd));
    output.queue.consume(output.pool, 1);
    CHECK(!is_open(fd));
    CHECK(output.queue.front_file() == nullptr);
    CHECK(output.gathered(&file_follows) == Texts{"tail"});
    CHECK(!file_follows);
}

TEST_CASE("OutputQueue: a file is closed once: when sent, when cleared, at once when its range is empty") {
    Output output;
    const int empty_range = open_some_file();
    CHECK(output.queue.try_append_file(output.pool, {empty_range, 7, 0}));
    CHECK(!is_open(empty_range));
    CHECK(output.queue.empty());

    const int cleared = open_some_file();
    CHECK(output.queue.try_append_file(output.pool, {cleared, 0, std::uint64_t{1} << 40}));
    output.queue.consume(output.pool, 1'000'000);
    CHECK(is_open(cleared));
    output.queue.clear(output.pool);
    CHECK(!is_open(cleared));
}

TEST_CASE("OutputQueue: a slow peer keeps no block for a file, or for bytes that somebody else owns") {
    Output output;
    int releases = 0;
    output.write("head");
    CHECK(output.queue.try_append_file(output.pool, {open_some_file(), 5, 1'000}));
    output.queue.slim(output.pool);
    CHECK(output.pool.leased() == 1);  // the head is in it
    output.queue.consume(output.pool, 4);
    output.queue.slim(output.pool);
    CHECK(output.pool.leased() == 0);
    output.queue.consume(output.pool, 100);
    REQUIRE(output.queue.front_file() != nullptr);
    CHECK(output.queue.front_file()->offset == 105);

    CHECK(output.queue.try_append_external(output.pool, "owned", &releases, &count_release));
    CHECK(output.pool.leased() == 1);
    output.queue.consume(output.pool, 900);
    output.queue.slim(output.pool);
    output.queue.slim(output.pool);
    CHECK(output.pool.leased() == 0);
    CHECK(output.queue.only_bytes() == "owned");
    output.queue.drop_only_bytes(output.pool);
    CHECK(releases == 1);
    CHECK(output.queue.empty());
}

TEST_CASE("OutputQueue: what lies in its block keeps it") {
    Output output;
    CHECK(output.queue.try_append_string(output.pool, "short"));
    output.queue.slim(output.pool);
    CHECK(output.pool.leased() == 1);
    CHECK(output.gathered() == Texts{"short"});
    output.queue.consume(output.pool, 5);
    CHECK(output.queue.try_append_string(output.pool, std::string(1'000, 'l')));  // its bytes are elsewhere, the string is not
    output.queue.slim(output.pool);
    CHECK(output.pool.leased() == 1);
    CHECK(output.gathered() == Texts{std::string(1'000, 'l')});
}

TEST_CASE("OutputQueue: our own mistakes abort") {
    CHECK(abort_message([] {
              BlockPool pool(kIoBlockBytes, 2, 2);
              OutputQueue queue;
              static_cast<void>(queue.try_append_copy(pool, "x"));
          }).find("before it was cleared") != std::string::npos);
    CHECK(abort_message([] {
              Output output;
              output.write("x");
              output.queue.consume(output.pool, 2);
          }).find("more is consumed") != std::string::npos);
    CHECK(abort_message([] {
              Output output;
              const std::span<char> room = output.queue.try_reserve(output.pool, 1);
              output.queue.commit(room.size() + 1);
          }).find("more bytes are committed") != std::string::npos);
    CHECK(abort_message([] {
              Output output;
              output.queue.commit(1);
          }).find("not reserved") != std::string::npos);
    CHECK(abort_message([] {
              Output output;
              static_cast<void>(output.queue.try_reserve(output.pool, OutputQueue::kMaxReserveBytes + 1));
          }).find("more than a block's room") != std::string::npos);
    CHECK(abort_message([] {
              BlockPool pages(kPageBytes, 2, 2);
              OutputQueue queue;
              static_cast<void>(queue.try_append_copy(pages, "x"));
          }).find("a pool of other blocks") != std::string::npos);
}

}  // namespace penstock
