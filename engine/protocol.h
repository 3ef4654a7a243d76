// Internal.
// A Protocol gives meaning to the bytes of connections: one object per listener and reactor, made by a
// ProtocolFactory when the server starts. It keeps what one connection needs in `Connection::session()`.
//
// Called on its reactor's thread only, once per buffer and never per byte. Any of these may close the connection
// (Connection::close only marks it), so none may be called again for it afterwards, except on_close, which comes
// exactly once and last.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "penstock/platform/error.h"

namespace penstock {

class Connection;
class Reactor;
struct Config;

class Protocol {
public:
    explicit Protocol(Reactor& reactor) : reactor_(reactor) {}
    virtual ~Protocol() = default;
    Protocol(const Protocol&) = delete;
    Protocol& operator=(const Protocol&) = delete;

    [[nodiscard]] Reactor& reactor() const { return reactor_; }

    // Bytes have been added to the input, or the peer has finished sending (`input_ended`), or reading was resumed.
    // What it queues for sending is flushed when it returns.
    virtual void on_input(Connection& connection) = 0;
    // The kernel took some of the output that it had refused before, or, while reading is paused, all that there was.
    virtual void on_drained(Connection& connection) = 0;
    // The connection's deadline has passed.
    virtual void on_deadline(Connection& connection) = 0;
    // The connection is over: give back everything held for it. The slot dies after this.
    virtual void on_close(Connection& connection) = 0;
    // When the oldest request that is still arriving began to: a number from Reactor::number_arrival, or kNoArrival.
    static constexpr std::uint64_t kNoArrival = ~std::uint64_t{0};
    [[nodiscard]] virtual std::uint64_t oldest_arrival() const = 0;
    // The reactor needs memory: end that request.
    virtual void end_oldest_arrival() = 0;
    // The server drains: end what only waits.
    virtual void on_drain(Connection& connection) = 0;

private:
    Reactor& reactor_;
};

// What a listener speaks. Shared by the reactors and read only once the server runs.
class ProtocolFactory {
public:
    virtual ~ProtocolFactory() = default;
    // Called once before any thread starts; the place for whatever can be wrong.
    [[nodiscard]] virtual Result<void> prepare(const Config& config) = 0;
    [[nodiscard]] virtual std::unique_ptr<Protocol> create(Reactor& reactor) const = 0;
    // A complete answer to a client that is turned away because the server is full, or empty. Lives for ever.
    [[nodiscard]] virtual std::string_view refusal() const = 0;
    // The same to a client that speaks without TLS where the listener has it.
    [[nodiscard]] virtual std::string_view plain_text_answer() const { return {}; }
    // Its names for ALPN (IANA, TLS ALPN Protocol IDs), the best first, with commas between; empty when it has none.
    [[nodiscard]] virtual std::string_view application_protocols() const { return {}; }
};

}  // namespace penstock
