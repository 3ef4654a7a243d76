#include "penstock/engine/arena.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/seed.h"

namespace penstock {

namespace {

constexpr std::size_t kPage = 4096;

// A pool of pages and a first page, given back as an exchange would.
struct Pages {
    explicit Pages(std::uint32_t limit = 64) : pool(kPage, limit, 4), first(pool.try_acquire()) {}
    ~Pages() { pool.release(first); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    BlockPool pool;
    std::byte* first;
};

bool is_aligned(const void* piece, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(piece) % alignment == 0;
}

}  // namespace

TEST_CASE("Arena: begins behind what is taken of the first page, and fills it to the last byte") {
    Pages pages;
    Arena arena(pages.pool, pages.first, 100);
    auto* front = static_cast<std::byte*>(arena.try_allocate(1, 1));
    CHECK(front == pages.first + 100);
    auto* rest = static_cast<std::byte*>(arena.try_allocate(kPage - 101, 1));
    REQUIRE(rest == pages.first + 101);
    std::memset(rest, 1, kPage - 101);
    CHECK(arena.extra_bytes() == 0);
    CHECK(pages.pool.leased() == 1);

    auto* over = static_cast<std::byte*>(arena.try_allocate(1, 1));
    REQUIRE(over != nullptr);
    *over = std::byte{2};
    CHECK((over < pages.first || over >= pages.first + kPage));
    CHECK(arena.extra_bytes() == kPage);
    CHECK(pages.pool.leased() == 2);
}

TEST_CASE("Arena: a first page that is full is no obstacle") {
    Pages pages;
    Arena arena(pages.pool, pages.first, kPage);
    CHECK(arena.try_allocate(0, 1) != nullptr);
    CHECK(arena.extra_bytes() == 0);
    CHECK(arena.try_allocate(1) != nullptr);
    CHECK(arena.extra_bytes() == kPage);
}

TEST_CASE("Arena: every alignment, in the first page, in further ones and on the heap") {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{3000}, std::size_t{10'000}}) {
        for (std::size_t alignment = 1; alignment <= 64; alignment *= 2) {
            Pages pages;
            Arena arena(pages.pool, pages.first, 33);
            for (int i = 0; i < 8; ++i) {
                void* piece = arena.try_allocate(bytes, alignment);
                REQUIRE(piece != nullptr);
                CHECK(is_aligned(piece, alignment));
                std::memset(piece, 0xA5, bytes);
                static_cast<void>(arena.try_allocate(1, 1));
            }
        }
    }
}

TEST_CASE("Arena: padding that does not fit takes a further page instead") {
    Pages pages;
    Arena arena(pages.pool, pages.first, kPage - 31);
    void* piece = arena.try_allocate(1, 64);
    REQUIRE(piece != nullptr);
    CHECK(is_aligned(piece, 64));
    CHECK(arena.extra_bytes() == kPage);
}

TEST_CASE("Arena: what just fits a page comes from one, one byte more from the heap") {
    Pages pages;
    Arena arena(pages.pool, pages.first, kPage);
    const std::size_t fits = kPage - sizeof(void*);
    void* piece = arena.try_allocate(fits, 8);
    REQUIRE(piece != nullptr);
    std::memset(piece, 1, fits);
    CHECK(pages.pool.leased() == 2);
    piece = arena.try_allocate(fits + 1, 8);
    REQUIRE(piece != nullptr);
    std::memset(piece, 1, fits + 1);
    CHECK(pages.pool.leased() == 2);
    CHECK(arena.extra_bytes() == kPage + fits + 1);
}

TEST_CASE("Arena: goes on in the page with more room") {
    Pages pages;
    Arena arena(pages.pool, pages.first, 1000);
    CHECK(arena.try_allocate(4000) != nullptr);
    CHECK(arena.extra_bytes() == kPage);
    CHECK(arena.try_allocate(3000, 8) == pages.first + 1000);
    CHECK(arena.extra_bytes() == kPage);
}

TEST_CASE("Arena: an empty pool is said, and what was there stays") {
    Pages pages(2);
    Arena arena(pages.pool, pages.first, 0);
    auto* kept = static_cast<char*>(arena.try_allocate(kPage - 16));
    REQUIRE(kept != nullptr);
    std::memset(kept, 'k', kPage - 16);
    CHECK(arena.try_allocate(4000) != nullptr);
    CHECK(arena.try_allocate(4000) == nullptr);
    CHECK(arena.try_copy(std::string(500, 'x')).data() == nullptr);
    CHECK(arena.try_allocate(8, 8) != nullptr);
    CHECK(std::count(kept, kept + kPage - 16, 'k') == kPage - 16);
}

TEST_CASE("Arena: the heap has a limit, reached exactly and not passed") {
    Pages pages;
    {
        Arena arena(pages.pool, pages.first, 0);
        CHECK(arena.try_allocate(Arena::kHeapLimitBytes + 1) == nullptr);
        CHECK(arena.try_allocate(std::numeric_limits<std::size_t>::max()) == nullptr);
        CHECK(arena.try_allocate(std::numeric_limits<std::size_t>::max() - 64, 64) == nullptr);
        CHECK(arena.extra_bytes() == 0);
        CHECK(arena.try_allocate(Arena::kHeapLimitBytes / 2) != nullptr);
        CHECK(arena.try_allocate(Arena::kHeapLimitBytes / 2 + 1) == nullptr);
        CHECK(arena.try_allocate(std::numeric_limits<std::size_t>::max() - 8) == nullptr);
        void* last = arena.try_allocate(Arena::kHeapLimitBytes / 2);
        REQUIRE(last != nullptr);
        std::memset(last, 1, Arena::kHeapLimitBytes / 2);
        CHECK(arena.try_allocate(kPage + 1) == nullptr);
        CHECK(arena.try_allocate(8) != nullptr);
        CHECK(arena.extra_bytes() == Arena::kHeapLimitBytes);
    }
    CHECK(pages.pool.leased() == 1);
}

TEST_CASE("Arena: copies text, the empty one too") {
    Pages pages;
    Arena arena(pages.pool, pages.first, 0);
    std::string text = "name";
    const std::string_view copy = arena.try_copy(text);
    text[0] = 'x';
    CHECK(copy == "name");
    CHECK(arena.try_copy("").data() != nullptr);
    CHECK(arena.try_copy({}).data() != nullptr);
    CHECK(arena.try_copy({}).empty());
    const std::string large(20'000, 'l');
    CHECK(arena.try_copy(large) == large);
}

TEST_CASE("Arena: no two pieces overlap, whatever their sizes, and all pages come back") {
    std::mt19937_64 random(test_seed());
    for (int round = 0; round < 50; ++round) {
        Pages pages(16);
        {
            struct Piece {
                unsigned char* data;
                std::size_t bytes;
            };
            std::vector<Piece> pieces;
            Arena arena(pages.pool, pages.first, random() % (kPage + 1));
            for (int i = 0; i < 200; ++i) {
                const std::size_t bytes = random() % (std::size_t{1} << (random() % 14));
                const std::size_t alignment = std::size_t{1} << (random() % 7);
                auto* data = static_cast<unsigned char*>(arena.try_allocate(bytes, alignment));
                if (data != nullptr) {
                    REQUIRE(is_aligned(data, alignment));
                    std::memset(data, static_cast<int>(pieces.size() % 251), bytes);
                    pieces.push_back({data, bytes});
                }
            }
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                const auto kept = std::count(pieces[i].data, pieces[i].data + pieces[i].bytes,
                                             static_cast<unsigned char>(i % 251));
                REQUIRE(static_cast<std::size_t>(kept) == pieces[i].bytes);
            }
        }
        REQUIRE(pages.pool.leased() == 1);
    }
}

TEST_CASE("Arena: AddressSanitizer is told of its tail" * doctest::skip(!kPoisonEnabled)) {
    Pages pages;
    {
        Arena arena(pages.pool, pages.first, 64);
        CHECK(!is_poisoned(pages.first + 63));
        CHECK(is_poisoned(pages.first + 64));
        auto* piece = static_cast<std::byte*>(arena.try_allocate(20, 8));
        CHECK(!is_poisoned(piece + 19));
        CHECK(is_poisoned(piece + 20));
        auto* further = static_cast<std::byte*>(arena.try_allocate(4080, 8));
        CHECK(!is_poisoned(further + 4079));
        CHECK(is_poisoned(further + 4080));
    }
    CHECK(!is_poisoned(pages.first + 64));
    CHECK(!is_poisoned(pages.first + kPage - 1));
}

}  // namespace penstock
