#include "penstock/engine/block_pool.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "penstock/engine/poison.h"
#include "support/abort_message.h"

namespace penstock {

namespace {

constexpr std::size_t kBytes = 4096;

}  // namespace

TEST_CASE("BlockPool: gives up to its limit, then nothing, then what came back") {
    BlockPool pool(kBytes, 3, 3);
    CHECK(pool.block_bytes() == kBytes);
    CHECK(pool.limit() == 3);
    std::byte* first = pool.try_acquire();
    std::byte* second = pool.try_acquire();
    std::byte* third = pool.try_acquire();
    REQUIRE(first != nullptr);
    REQUIRE(second != nullptr);
    REQUIRE(third != nullptr);
    CHECK(pool.leased() == 3);
    CHECK(pool.try_acquire() == nullptr);
    CHECK(pool.leased() == 3);

    pool.release(second);
    CHECK(pool.leased() == 2);
    CHECK(pool.free() == 1);
    CHECK(pool.try_acquire() == second);
    CHECK(pool.free() == 0);
    pool.release(first);
    pool.release(second);
    pool.release(third);
    CHECK(pool.leased() == 0);
    CHECK(pool.free() == 3);
}

TEST_CASE("BlockPool: a limit of 0 gives nothing") {
    BlockPool pool(kBytes, 0, 0);
    CHECK(pool.try_acquire() == nullptr);
}

TEST_CASE("BlockPool: a reserve is kept back from those who name it, and from no one else") {
    BlockPool pool(kBytes, 3, 3);
    std::byte* first = pool.try_acquire(2);
    REQUIRE(first != nullptr);
    CHECK(pool.try_acquire(2) == nullptr);
    std::byte* second = pool.try_acquire(1);
    REQUIRE(second != nullptr);
    CHECK(pool.try_acquire(1) == nullptr);
    std::byte* third = pool.try_acquire(0);
    REQUIRE(third != nullptr);
    CHECK(pool.try_acquire(0) == nullptr);
    pool.release(first);
    CHECK(pool.try_acquire(1) == nullptr);
    CHECK(pool.try_acquire(3) == nullptr);
    CHECK(pool.try_acquire(std::numeric_limits<std::uint32_t>::max()) == nullptr);
    pool.release(second);
    pool.release(third);
}

TEST_CASE("BlockPool: blocks are aligned, apart from each other, and writable to the last byte") {
    BlockPool pool(kBytes, 8, 2);
    std::vector<std::byte*> blocks;
    for (int round = 0; round < 2; ++round) {
        for (unsigned i = 0; i < pool.limit(); ++i) {
            std::byte* block = pool.try_acquire();
            REQUIRE(block != nullptr);
            CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
            std::memset(block, static_cast<int>(i), kBytes);
            blocks.push_back(block);
        }
        for (unsigned i = 0; i < pool.limit(); ++i) {
            CHECK(blocks[i][0] == std::byte(i));
            CHECK(blocks[i][kBytes - 1] == std::byte(i));
            pool.release(blocks[i]);
        }
        blocks.clear();
    }
}

TEST_CASE("BlockPool: keeps no more free blocks than its cap, the last released first") {
    BlockPool pool(kBytes, 4, 2);
    std::vector<std::byte*> blocks;
    for (int i = 0; i < 4; ++i) {
        blocks.push_back(pool.try_acquire());
    }
    for (std::byte* block : blocks) {
        pool.release(block);
    }
    CHECK(pool.free() == 2);
    CHECK(pool.leased() == 0);
    CHECK(pool.try_acquire() == blocks[1]);
    CHECK(pool.try_acquire() == blocks[0]);
    CHECK(pool.free() == 0);
    pool.release(blocks[0]);
    pool.release(blocks[1]);

    BlockPool keeps_none(kBytes, 1, 0);
    keeps_none.release(keeps_none.try_acquire());
    CHECK(keeps_none.free() == 0);
}

TEST_CASE("BlockPool: trim gives every free block back and leaves leased ones alone") {
    BlockPool pool(kBytes, 4, 4);
    pool.trim();
    CHECK(pool.free() == 0);
    std::byte* kept = pool.try_acquire();
    std::byte* other = pool.try_acquire();
    REQUIRE(kept != nullptr);
    std::memset(kept, 7, kBytes);
    pool.release(other);
    pool.trim();
    CHECK(pool.free() == 0);
    CHECK(pool.leased() == 1);
    CHECK(kept[kBytes - 1] == std::byte{7});
    std::byte* fresh = pool.try_acquire();
    CHECK(fresh != nullptr);
    pool.release(fresh);
    pool.release(kept);
}

TEST_CASE("BlockPool: what its holder does wrong aborts") {
    CHECK(abort_message([] {
              BlockPool pool(kBytes, 1, 1);
              [[maybe_unused]] std::byte* lost = pool.try_acquire();
          }).find("while blocks of it are leased") != std::string::npos);
    CHECK(abort_message([] {
              BlockPool pool(kBytes, 2, 2);
              std::byte* block = pool.try_acquire();
              pool.release(block);
              pool.release(block);
          }).find("not leased") != std::string::npos);
    CHECK(abort_message([] { BlockPool pool(100, 1, 1); }).find("multiple of 64") != std::string::npos);
}

TEST_CASE("BlockPool: AddressSanitizer is told of free blocks" * doctest::skip(!kPoisonEnabled)) {
    BlockPool pool(kBytes, 2, 2);
    std::byte* block = pool.try_acquire();
    std::byte* other = pool.try_acquire();
    CHECK(!is_poisoned(block));
    pool.release(block);
    CHECK(is_poisoned(block));
    CHECK(is_poisoned(block + kBytes - 1));
    CHECK(!is_poisoned(other));
    CHECK(abort_message([&] { pool.release(block); }).find("released twice") != std::string::npos);
    CHECK(pool.try_acquire() == block);
    CHECK(!is_poisoned(block));
    CHECK(!is_poisoned(block + kBytes - 1));
    pool.release(block);
    pool.release(other);
}

}  // namespace penstock
