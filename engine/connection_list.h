// Internal.
// An intrusive list of connections through their ready links. A connection is on one such list at a time: ready
// (has something left to do), starved (waits for an input block) or closed (waits to be taken apart).
#pragma once

#include <cstdint>

#include "penstock/engine/connection.h"

namespace penstock {

class ConnectionPool;

class ConnectionList {
public:
    explicit ConnectionList(ConnectionPool& pool) : pool_(pool) {}
    ConnectionList(const ConnectionList&) = delete;
    ConnectionList& operator=(const ConnectionList&) = delete;

    [[nodiscard]] bool empty() const { return first_ == Connection::kNone; }
    [[nodiscard]] std::uint32_t size() const { return size_; }
    void push_back(Connection& connection);
    void remove(Connection& connection);
    // nullptr when empty.
    [[nodiscard]] Connection* pop_front();

private:
    ConnectionPool& pool_;
    std::uint32_t first_ = Connection::kNone;
    std::uint32_t last_ = Connection::kNone;
    std::uint32_t size_ = 0;
};

}  // namespace penstock
