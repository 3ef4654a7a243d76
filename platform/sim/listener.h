// Internal.
// A socket that listens, TCP or Unix, and its queue of connections to accept. Owned by the Kernel's
// table, through its descriptors; the World's thread alone. It does not choose who connects to it: the
// Kernel does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "penstock/platform/error.h"
#include "penstock/platform/sim/connection.h"
#include "penstock/platform/sim/description.h"

namespace penstock::sim {

// Where a TCP listener is bound, as far as it decides who else may bind there.
struct BindAddress {
    std::string text;  // "" for any
    bool ipv4 = false;
    bool ipv6 = false;

    [[nodiscard]] bool any() const { return text.empty(); }
    [[nodiscard]] bool overlaps(const BindAddress& other) const {
        const bool family = (ipv4 && other.ipv4) || (ipv6 && other.ipv6);
        return family && (any() || other.any() || text == other.text);
    }
};

class Listener : public Description {
public:
    Listener(BindAddress address, std::uint16_t port, std::size_t backlog)
        : Description(DescriptionKind::listener), address_(std::move(address)), port_(port),
          backlog_(backlog) {}

    [[nodiscard]] const BindAddress& address() const { return address_; }
    // 0 for a Unix socket.
    [[nodiscard]] std::uint16_t port() const { return port_; }

    [[nodiscard]] Readiness readiness() override;
    // False when the queue is full or new handshakes are dropped.
    [[nodiscard]] bool admits() const { return !dropping_ && queue_.size() <= backlog_; }
    void enqueue(std::shared_ptr<Connection> connection);
    [[nodiscard]] bool queue_empty() const { return queue_.empty() || held_; }
    // Only unless queue_empty().
    [[nodiscard]] std::shared_ptr<Connection> take();

    void drop_new() { dropping_ = true; }
    void steer(unsigned group_size) { steered_group_ = group_size; }
    // 0 unless steered.
    [[nodiscard]] unsigned steered_group() const { return steered_group_; }

    // A fault made accept fail.
    void fail_accept(int error);
    void settle();
    [[nodiscard]] bool settles() const { return held_; }

private:
    void on_last_close() override;

    const BindAddress address_;
    const std::uint16_t port_;
    const std::size_t backlog_;  // the queue holds one more, as Linux's does
    std::deque<std::shared_ptr<Connection>> queue_;
    bool held_ = false;  // a fault says that the queue's connections have not arrived yet
    bool dropping_ = false;
    unsigned steered_group_ = 0;
};

}  // namespace penstock::sim
