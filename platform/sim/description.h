// Internal.
// What a descriptor number stands for (an "open file description", man 2 open), and how it meets the
// pollers it was added to. Descriptions are shared by the descriptors that name them and live in the
// Kernel's table; a Connection is held by its Peers too. The World's thread alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::sim {

class Description;
struct PollerState;

// The full state of a description at one moment, as a poller reports it.
struct Readiness {
    bool readable = false;
    bool writable = false;
    bool hangup = false;
    bool error = false;

    [[nodiscard]] bool any() const { return readable || writable || hangup || error; }
};

// One `Poller::add`. Owned by its Description; while `queued` it is a link of its poller's ready list.
struct Registration {
    Registration(PollerState* owner, Description* of, int number, std::uint64_t mark)
        : poller(owner), description(of), fd(number), token(mark) {}
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    PollerState* const poller;
    Description* const description;
    const int fd;
    const std::uint64_t token;
    bool queued = false;
    Registration* previous = nullptr;
    Registration* next = nullptr;
};

// The simulated kernel's part of a Poller: what is ready, in the order of its edges. Owned by the
// Poller; it outlives its registrations, which the Poller's destructor removes.
struct PollerState {
    Registration* first = nullptr;
    Registration* last = nullptr;
    std::atomic<bool> woken{false};  // set by any thread

    void push(Registration& registration);
    void unlink(Registration& registration);
};

enum class DescriptionKind : std::uint8_t { listener, connection, file, poller };

class Description {
public:
    explicit Description(DescriptionKind kind) : kind_(kind) {}
    virtual ~Description() = default;
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;

    [[nodiscard]] DescriptionKind kind() const { return kind_; }
    // Not const: a connection that is polled while it has no room wants an edge when it has.
    [[nodiscard]] virtual Readiness readiness() { return {}; }

    void opened() { ++descriptors_; }
    // Only the last descriptor to close removes the registrations: one that was added by a duplicate's
    // number stays, and goes on reporting, while another descriptor is open (man 7 epoll, "Questions").
    void closed_one();
    [[nodiscard]] bool open() const { return descriptors_ > 0; }

    // Returns 0 or EEXIST.
    int watch(PollerState& poller, int fd, std::uint64_t token);
    void unwatch(const PollerState& poller, int fd);
    void unwatch_all(const PollerState& poller);

protected:
    // News for everyone who watches.
    void raise_edge();
    virtual void on_last_close() {}

private:
    const DescriptionKind kind_;
    int descriptors_ = 0;
    std::vector<std::unique_ptr<Registration>> registrations_;
};

// A poller or its wake-up: a number that is taken, nothing more.
class PollerDescription : public Description {
public:
    PollerDescription() : Description(DescriptionKind::poller) {}
};

}  // namespace penstock::sim
