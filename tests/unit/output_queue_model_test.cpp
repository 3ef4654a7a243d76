// The queue beside the plainest thing that does the same: a deque of strings and file ranges.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <string>

#include "penstock/engine/config.h"
#include "penstock/engine/output_queue.h"
#include "penstock/platform/file.h"
#include "support/seed.h"

namespace penstock {

namespace {

class OutputModel {
public:
    OutputModel(std::uint64_t seed, std::uint32_t block_limit)
        : random_(seed), pool_(kIoBlockBytes, block_limit, 2) {}

    void step() {
        switch (random_() % 12) {
            case 0:
            case 1: reserve(); break;
            case 2: copy(); break;
            case 3: external(); break;
            case 4: string(); break;
            case 5: file(); break;
            case 6:
                if (random_() % 50 == 0) {
                    clear();
                }
                break;
            default: consume(); break;
        }
        check();
    }

    void clear() {
        queue_.clear(pool_);
        model_.clear();
        memory_bytes_ = 0;
        check();
        CHECK(queue_.empty());
        CHECK(pool_.leased() == 0);
        CHECK(live_owners_ == 0);
    }

    [[nodiscard]] std::uint64_t sent() const { return sent_; }
    [[nodiscard]] int refused() const { return refused_; }

private:
    struct Entry {
        std::string bytes;  // empty: a file
        FileRange file;
    };
    // What an external piece is owned by: counts itself and dies when it is released.
    struct Owner {
        int* live;
        std::string bytes;
    };

    std::size_t random_size(int bits) {
        return random_() % (std::size_t{1} << (random_() % static_cast<std::uint64_t>(bits + 1)));
    }

    std::string random_bytes(int bits) {
        std::string bytes(random_size(bits), '\0');
        for (char& byte : bytes) {
            byte = static_cast<char>(random_());
        }
        return bytes;
    }

    void expect(std::string bytes) {
        memory_bytes_ += bytes.size();
        if (!bytes.empty()) {
            model_.push_back({std::move(bytes), {}});
        }
    }

    void reserve() {
        const std::string bytes = random_bytes(13);
        const std::span<char> room = queue_.try_reserve(pool_, bytes.size());
        if (room.empty()) {
            ++refused_;
            return;
        }
        REQUIRE(room.size() >= bytes.size());
        std::memcpy(room.data(), bytes.data(), bytes.size());
        queue_.commit(bytes.size());
        expect(bytes);
    }

    void copy() {
        const std::string bytes = random_bytes(17);
        if (queue_.try_append_copy(pool_, bytes)) {
            expect(bytes);
        } else {
            ++refused_;
        }
    }

    void external() {
        auto* owner = new Owner{&live_owners_, random_bytes(15)};
        ++live_owners_;
        const auto release = [](void* released) {
            auto* dead = static_cast<Owner*>(released);
            --*dead->live;
            delete dead;
        };
        const std::string bytes = owner->bytes;
        if (queue_.try_append_external(pool_, owner->bytes, owner, release)) {
            expect(bytes);
        } else {
            release(owner);
            ++refused_;
        }
    }

    void string() {
        std::string bytes = random_bytes(12);
        const std::string copy = bytes;
        if (queue_.try_append_string(pool_, std::move(bytes))) {
            expect(copy);
        } else {
            REQUIRE(bytes == copy);
            ++refused_;
        }
    }

    void file() {
        Result<int> opened = platform::open_directory("/");
        REQUIRE(opened.ok());
        const FileRange range{opened.value(), random_(), random_size(20)};
        if (!queue_.try_append_file(pool_, range)) {
            platform::close_descriptor(range.fd);
            ++refused_;
        } else if (range.size > 0) {
            model_.push_back({"", range});
        }
    }

    // As a flush does it: some of what one send is given, or some of a file.
    void consume() {
        std::size_t offered = 0;
        if (const FileRange* range = queue_.front_file(); range != nullptr) {
            offered = static_cast<std::size_t>(range->size);
        } else {
            std::array<platform::SendPiece, 64> pieces{};
            bool file_follows = false;
            const std::size_t count = queue_.gather(pieces, &file_follows);
            for (std::size_t i = 0; i < count; ++i) {
                offered += pieces[i].size;
            }
        }
        const std::size_t taken = random_() % 3 == 0 ? offered : std::min(offered, random_size(18));
        queue_.consume(pool_, taken);
        queue_.slim(pool_);
        sent_ += taken;
        forget(taken);
    }

    void forget(std::size_t bytes) {
        while (bytes > 0) {
            Entry& front = model_.front();
            if (front.bytes.empty()) {
                const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, front.file.size));
                front.file.offset += size;
                front.file.size -= size;
                bytes -= size;
                if (front.file.size > 0) {
                    return;
                }
            } else {
                const std::size_t size = std::min(bytes, front.bytes.size());
                front.bytes.erase(0, size);
                memory_bytes_ -= size;
                bytes -= size;
                if (!front.bytes.empty()) {
                    return;
                }
            }
            model_.pop_front();
        }
    }

    void check() {
        REQUIRE(queue_.memory_bytes() == memory_bytes_);
        if (model_.empty()) {
            queue_.consume(pool_, 0);  // an unused reservation goes
            REQUIRE(queue_.empty());
            REQUIRE(pool_.leased() == 0);
        }
        const FileRange* range = queue_.front_file();
        REQUIRE((range != nullptr) == (!model_.empty() && model_.front().bytes.empty()));
        if (range != nullptr) {
            REQUIRE(range->fd == model_.front().file.fd);
            REQUIRE(range->offset == model_.front().file.offset);
            REQUIRE(range->size == model_.front().file.size);
        }
        check_gathered();
    }

    void check_gathered() {
        std::array<platform::SendPiece, 64> pieces{};
        const std::size_t limit = random_() % 4 == 0 ? random_() % 4 : pieces.size();
        bool file_follows = false;
        const std::size_t count = queue_.gather(std::span(pieces).first(limit), &file_follows);
        std::string gathered;
        for (std::size_t i = 0; i < count; ++i) {
            REQUIRE(pieces[i].size > 0);
            gathered.append(static_cast<const char*>(pieces[i].data), pieces[i].size);
        }
        std::string expected;
        auto entry = model_.begin();
        for (; entry != model_.end() && !entry->bytes.empty(); ++entry) {
            expected += entry->bytes;
        }
        REQUIRE(expected.compare(0, gathered.size(), gathered) == 0);
        const bool all = gathered.size() == expected.size();
        REQUIRE((all || count == limit));
        REQUIRE(file_follows == (all && entry != model_.end()));
    }

    std::mt19937_64 random_;
    BlockPool pool_;
    OutputQueue queue_;
    std::deque<Entry> model_;
    std::uint64_t memory_bytes_ = 0;
    std::uint64_t sent_ = 0;
    int live_owners_ = 0;
    int refused_ = 0;
};

}  // namespace

TEST_CASE("OutputQueue: does what a deque of strings does") {
    for (const std::uint32_t block_limit : {1u, 4u, 64u}) {
        CAPTURE(block_limit);
        OutputModel model(test_seed() + block_limit, block_limit);
        for (int i = 0; i < 4'000; ++i) {
            model.step();
        }
        CHECK(model.sent() > 100'000);
        if (block_limit < 64) {
            CHECK(model.refused() > 0);
        }
        model.clear();
    }
}

}  // namespace penstock
