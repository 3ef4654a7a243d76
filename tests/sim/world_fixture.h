// Internal.
// What the tests of the simulated platform share: a World with a listener and a poller, and the platform's
// calls with text instead of bytes. Owned by one test; its thread alone.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "penstock/platform/net.h"
#include "penstock/platform/poller.h"
#include "penstock/platform/sim/world.h"

namespace penstock::world_tests {

inline constexpr std::uint16_t kPort = 80;

inline IoResult receive_into(int fd, std::string* text, std::size_t most = 64 * 1024) {
    std::string buffer(most, '\0');
    const IoResult result = platform::receive(fd, std::as_writable_bytes(std::span(buffer)));
    if (result.ok()) {
        *text = buffer.substr(0, static_cast<std::size_t>(result.count));
    }
    return result;
}

inline std::string receive_text(int fd, std::size_t most = 64 * 1024) {
    std::string text;
    const IoResult result = receive_into(fd, &text, most);
    REQUIRE(result.ok());
    return text;
}

inline int receive_error(int fd) {
    std::string text;
    return receive_into(fd, &text).error;
}

inline IoResult send_text(int fd, std::string_view text) {
    return platform::send(fd, text);
}

inline int open_listener_or_fail(const platform::ListenTarget& target) {
    Result<int> opened = platform::open_listener(target);
    REQUIRE(opened.ok());
    return opened.value();
}

inline int accept_one(int listener) {
    PeerAddress peer;
    const IoResult accepted = platform::accept(listener, &peer);
    REQUIRE(accepted.ok());
    return static_cast<int>(accepted.count);
}

struct Link {
    sim::Peer peer;
    int fd;
};

struct Bench {
    sim::World world;
    platform::Poller poller;
    int listener = -1;

    Bench() {
        REQUIRE(poller.open().ok());
        listener = open_listener_or_fail({.address = "", .port = kPort});
    }

    [[nodiscard]] Link link() {
        sim::Peer peer = world.connect(kPort);
        return {peer, accept_one(listener)};
    }

    // Added, and the event taken that says it can be written.
    [[nodiscard]] Link watched_link(std::uint64_t token) {
        Link made = link();
        REQUIRE(poller.add(made.fd, token) == 0);
        const platform::PollEvent event = only_event();
        REQUIRE(event.token == token);
        REQUIRE(event.writable);
        REQUIRE(!event.readable);
        return made;
    }

    [[nodiscard]] platform::PollEvent only_event() {
        const platform::PollResult result = poller.wait(0);
        REQUIRE(result.error == 0);
        REQUIRE(result.events.size() == 1);
        return result.events[0];
    }

    [[nodiscard]] bool silent() { return poller.wait(0).events.empty(); }
};

}  // namespace penstock::world_tests
