// Internal.
// A descriptor with an owner.
#pragma once

#include <utility>

#include "penstock/platform/net.h"

namespace penstock::platform {

// Closes what it owns; -1 is none. Any thread, one at a time.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) {
            close_descriptor(fd_);
        }
    }
    Descriptor(Descriptor&& other) noexcept : fd_(other.hand_over()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] int hand_over() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

}  // namespace penstock::platform
