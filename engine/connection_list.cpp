#include "penstock/engine/connection_list.h"

#include "penstock/engine/connection_pool.h"

namespace penstock {

void ConnectionList::push_back(Connection& connection) {
    connection.ready_next_ = Connection::kNone;
    connection.ready_previous_ = last_;
    if (last_ == Connection::kNone) {
        first_ = connection.index_;
    } else {
        pool_.at(last_).ready_next_ = connection.index_;
    }
    last_ = connection.index_;
    ++size_;
}

void ConnectionList::remove(Connection& connection) {
    const std::uint32_t next = connection.ready_next_;
    const std::uint32_t previous = connection.ready_previous_;
    if (previous == Connection::kNone) {
        first_ = next;
    } else {
        pool_.at(previous).ready_next_ = next;
    }
    if (next == Connection::kNone) {
        last_ = previous;
    } else {
        pool_.at(next).ready_previous_ = previous;
    }
    connection.ready_next_ = connection.ready_previous_ = Connection::kNone;
    --size_;
}

Connection* ConnectionList::pop_front() {
    if (empty()) {
        return nullptr;
    }
    Connection& connection = pool_.at(first_);
    remove(connection);
    return &connection;
}

}  // namespace penstock
