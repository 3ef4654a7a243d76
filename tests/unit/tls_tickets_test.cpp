// The keys of session tickets: their life, their sharing, and what they seal.
#include "penstock/engine/tls_tickets.h"

#include <doctest/doctest.h>

#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "penstock/engine/tls_random.h"
#include "penstock/engine/tls_ticket_seal.h"

namespace penstock::test {
namespace {

constexpr std::uint32_t kLifetimeS = 100;
constexpr std::uint64_t kHalfMs = 50'000;

bool no_random(std::uint8_t*, std::size_t) { return false; }

std::array<std::uint8_t, 16> name_of(const TlsTickets::Key* key) {
    REQUIRE(key != nullptr);
    return key->name;
}

}  // namespace

TEST_CASE("a key seals for half of the lifetime, and opens for all of it and more") {
    TlsTickets tickets(kLifetimeS, &random_bytes);
    TlsTickets::Reader reader(tickets);
    const auto first = name_of(reader.newest(1'000));
    CHECK(name_of(reader.newest(1'000 + kHalfMs - 1)) == first);
    const auto second = name_of(reader.newest(1'000 + kHalfMs));
    CHECK(second != first);
    bool is_newest = true;
    // Made at its very last moment, a ticket of the first key lives until then.
    const TlsTickets::Key* const old = reader.find(first.data(), 1'000 + 3 * kHalfMs - 1, &is_newest);
    REQUIRE(old != nullptr);
    CHECK(old->name == first);
    CHECK_FALSE(is_newest);
    CHECK(reader.find(first.data(), 1'000 + 3 * kHalfMs, &is_newest) == nullptr);
    const std::array<std::uint8_t, 16> unknown{};
    CHECK(reader.find(unknown.data(), 1'000, &is_newest) == nullptr);
}

TEST_CASE("all reactors have the same keys, whoever makes them") {
    TlsTickets tickets(kLifetimeS, &random_bytes);
    TlsTickets::Reader one(tickets);
    TlsTickets::Reader other(tickets);
    const auto first = name_of(one.newest(0));
    CHECK(name_of(other.newest(10)) == first);
    const auto second = name_of(other.newest(kHalfMs));
    bool is_newest = false;
    CHECK(one.find(second.data(), kHalfMs, &is_newest) != nullptr);
    CHECK(is_newest);
}

TEST_CASE("without random numbers there is no key, and no ticket") {
    TlsTickets tickets(kLifetimeS, &no_random);
    TlsTickets::Reader reader(tickets);
    CHECK(reader.newest(0) == nullptr);
}

TEST_CASE("many reactors find the change of a key at once, and one makes it") {
    constexpr std::size_t kReactors = 4;
    constexpr std::size_t kPeriods = 50;
    TlsTickets tickets(kLifetimeS, &random_bytes);
    std::array<std::array<std::array<std::uint8_t, 16>, kReactors>, kPeriods> names{};
    std::barrier together(kReactors);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kReactors; ++i) {
        threads.emplace_back([&, i] {
            TlsTickets::Reader reader(tickets);
            for (std::size_t period = 0; period < kPeriods; ++period) {
                together.arrive_and_wait();
                if (const TlsTickets::Key* const key = reader.newest(period * kHalfMs); key != nullptr) {
                    names[period][i] = key->name;
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const std::array<std::uint8_t, 16> none{};
    for (std::size_t period = 0; period < kPeriods; ++period) {
        CAPTURE(period);
        const auto& made = names[period][0];
        CHECK(made != (period == 0 ? none : names[period - 1][0]));
        for (const auto& name : names[period]) {
            CHECK(name == made);
        }
    }
}

TEST_CASE("a ticket opens by its key, under its certificate and unchanged, and not otherwise") {
    TlsTickets tickets(kLifetimeS, &random_bytes);
    TlsTickets::Reader reader(tickets);
    const TlsTickets::Key key = *reader.newest(0);
    std::array<std::uint8_t, 32> fingerprint{1, 2, 3};
    std::array<std::uint8_t, 16> iv{};
    REQUIRE(random_bytes(iv.data(), iv.size()));
    const std::vector<std::uint8_t> plain(100, 'p');
    std::vector<std::uint8_t> sealed = plain;
    std::array<std::uint8_t, 16> tag{};
    REQUIRE(seal_ticket(key, fingerprint, iv, sealed, tag));
    CHECK(sealed != plain);
    const auto opens = [&](const TlsTickets::Key& with, std::array<std::uint8_t, 32> under, std::vector<std::uint8_t> ticket,
                           std::array<std::uint8_t, 16> its_tag) {
        return open_ticket(with, under, iv, ticket, its_tag) && ticket == plain;
    };
    CHECK(opens(key, fingerprint, sealed, tag));
    std::array<std::uint8_t, 32> other_certificate = fingerprint;
    other_certificate[31] ^= 1;
    CHECK_FALSE(opens(key, other_certificate, sealed, tag));
    std::vector<std::uint8_t> changed = sealed;
    changed[99] ^= 1;
    CHECK_FALSE(opens(key, fingerprint, changed, tag));
    std::array<std::uint8_t, 16> other_tag = tag;
    other_tag[0] ^= 1;
    CHECK_FALSE(opens(key, fingerprint, sealed, other_tag));
    TlsTickets::Key other_key = key;
    other_key.secret[0] ^= 1;
    CHECK_FALSE(opens(other_key, fingerprint, sealed, tag));
}

}  // namespace penstock::test
