#include "penstock/platform/sim/listener.h"

namespace penstock::sim {

Readiness Listener::readiness() {
    return {.readable = !queue_empty()};
}

void Listener::enqueue(std::shared_ptr<Connection> connection) {
    connection->enter_queue();
    queue_.push_back(std::move(connection));
    if (!held_) {
        raise_edge();
    }
}

std::shared_ptr<Connection> Listener::take() {
    std::shared_ptr<Connection> connection = std::move(queue_.front());
    queue_.pop_front();
    return connection;
}

void Listener::fail_accept(int error) {
    if (is_would_block(error)) {
        held_ = true;
        return;
    }
    // The descriptor is allotted before the queue is looked at, so exhaustion loses nothing.
    if (is_exhaustion(error) || queue_empty()) {
        return;
    }
    take()->break_both();
}

void Listener::settle() {
    if (!held_) {
        return;
    }
    held_ = false;
    if (!queue_.empty()) {
        raise_edge();
    }
}

void Listener::on_last_close() {
    for (const auto& connection : queue_) {
        connection->break_both();
    }
    queue_.clear();
}

}  // namespace penstock::sim
