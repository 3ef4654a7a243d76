#include <utility>

#include "penstock/platform/sim/abort.h"
#include "penstock/platform/sim/connection.h"
#include "penstock/platform/sim/kernel.h"
#include "penstock/platform/sim/world.h"

namespace penstock::sim {

Connection& Peer::checked() const {
    require(connection_ != nullptr, "a Peer that was never connected");
    require(connection_->world() == Kernel::current().number(), "a Peer whose World is gone");
    return *connection_;
}

bool Peer::send(std::string_view bytes) {
    const Scope kernel;
    return checked().peer_send(bytes);
}

void Peer::finish() {
    const Scope kernel;
    checked().peer_finish();
}

void Peer::close() {
    const Scope kernel;
    checked().peer_close();
}

void Peer::reset() {
    const Scope kernel;
    checked().peer_reset();
}

const std::string& Peer::received() {
    const Scope kernel;
    checked().peer_look();
    return connection_->received();
}

// A copy, so that the connection's own string keeps its memory and goes on without allocating.
std::string Peer::take_received() {
    std::string taken = received();
    connection_->received().clear();
    return taken;
}

std::uint64_t Peer::received_count() {
    const Scope kernel;
    checked().peer_look();
    return connection_->received_count();
}

void Peer::discard_received() {
    checked().discard_received();
}

void Peer::set_sink(Sink sink) {
    const Scope kernel;
    checked().set_sink(std::move(sink));
}

void Peer::set_receive_window(std::size_t bytes) {
    const Scope kernel;
    checked().set_manual(true);
    checked().set_outbound_capacity(bytes);
}

std::string Peer::read(std::size_t most) {
    const Scope kernel;
    return checked().peer_read(most);
}

void Peer::read_freely() {
    const Scope kernel;
    checked().set_manual(false);
}

void Peer::set_send_window(std::size_t bytes) {
    const Scope kernel;
    checked().set_inbound_capacity(bytes);
}

bool Peer::connected() const {
    const Connection::Phase phase = checked().phase();
    return phase == Connection::Phase::queued || phase == Connection::Phase::accepted;
}

bool Peer::refused() const {
    return checked().phase() == Connection::Phase::refused;
}
int Peer::server_fd() const {
    return checked().fd();
}

bool Peer::finished_by_server() {
    const Scope kernel;
    checked().peer_look();
    return connection_->finished_by_server();
}

bool Peer::reset_by_server() {
    const Scope kernel;
    checked().peer_look();
    return connection_->reset_by_server();
}

bool Peer::closed_by_server() const {
    return checked().closed_by_server();
}
std::size_t Peer::unread_by_server() const {
    return checked().unread_by_server();
}
std::size_t Peer::unread() const {
    return checked().unread_by_peer();
}

void Peer::script(Call call, std::uint64_t nth, Outcome outcome, std::uint64_t times) {
    const Scope kernel;
    Kernel::current().faults.add_rule(call, World::kAnyDescriptor, checked().id(), nth, outcome, times);
}

}  // namespace penstock::sim
