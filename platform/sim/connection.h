// Internal.
// One connection, both ends of it: the server's socket is this Description, the client's end is what
// Peer calls. Held by the Kernel's table and the Peers; the World's thread alone. It follows Linux's TCP
// (the order of data, FIN and errors, and when an edge is raised, were tried against a real kernel). It
// does not choose its listener: the Kernel does.
//
//   connecting ──► queued ──► accepted ──► (its last descriptor closed)
//       └────► refused
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/platform/address.h"
#include "penstock/platform/error.h"
#include "penstock/platform/net.h"
#include "penstock/platform/sim/byte_queue.h"
#include "penstock/platform/sim/description.h"
#include "penstock/platform/sim/file_tree.h"
#include "penstock/platform/sim/world.h"

namespace penstock::sim {

class Connection : public Description, public std::enable_shared_from_this<Connection> {
public:
    enum class Phase : std::uint8_t { connecting, refused, queued, accepted };

    Connection(std::uint64_t id, std::uint64_t world, const PeerAddress& address)
        : Description(DescriptionKind::connection), id_(id), world_(world), address_(address) {}

    [[nodiscard]] std::uint64_t id() const { return id_; }
    // Which World made it.
    [[nodiscard]] std::uint64_t world() const { return world_; }
    [[nodiscard]] Phase phase() const { return phase_; }
    [[nodiscard]] int fd() const { return open() ? fd_ : -1; }
    [[nodiscard]] const PeerAddress& address() const { return address_; }

    // ---- The way in
    void enter_queue();
    void accept_as(int fd);
    void refuse();

    // ---- The server's end
    [[nodiscard]] Readiness readiness() override;
    [[nodiscard]] IoResult receive(std::span<std::byte> buffer, std::uint64_t most);
    [[nodiscard]] IoResult send(std::span<const platform::SendPiece> pieces, std::uint64_t most);
    [[nodiscard]] IoResult send_file(const FileNode& file, std::uint64_t offset, std::uint64_t size,
                                     std::uint64_t most);
    int shut_sending();
    void set_reset_on_close() { reset_on_close_ = true; }
    // Bytes `receive` would give, and the room `send` would find.
    [[nodiscard]] std::size_t visible() const { return read_held_ ? 0 : inbound_.size(); }
    [[nodiscard]] std::size_t room() const;

    // ---- Faults: a call was made to fail; what follows from it
    void fail_receive(int error);
    void fail_send(int error);
    // The network or the server breaks it for both ends.
    void break_both();

    // ---- The client's end
    bool peer_send(std::string_view bytes);
    void peer_finish();
    void peer_close();
    void peer_reset();
    std::string peer_read(std::size_t most);
    // Reads everything if the client does so by itself.
    void peer_look();
    void set_manual(bool manual);
    void set_outbound_capacity(std::size_t bytes);
    void set_inbound_capacity(std::size_t bytes);
    void discard_received();
    void set_sink(Peer::Sink sink);
    [[nodiscard]] std::string& received() { return received_; }
    [[nodiscard]] std::uint64_t received_count() const { return received_count_; }
    [[nodiscard]] bool finished_by_server() const { return fin_seen_by_peer_; }
    [[nodiscard]] bool reset_by_server() const { return reset_seen_by_peer_; }
    [[nodiscard]] std::size_t unread_by_server() const { return inbound_.size() + unsent_.size(); }
    [[nodiscard]] std::size_t unread_by_peer() const { return outbound_.size() + uncounted_; }
    [[nodiscard]] bool closed_by_server() const;

    // ---- What was put off to the next wait. The Kernel calls `settle` while `unsettled`.
    void settle();
    [[nodiscard]] bool unsettled() const;
    // settle would change something.
    [[nodiscard]] bool settles() const;
    bool listed = false;  // in the Kernel's list of those to settle

private:
    enum class Keep : std::uint8_t { all, nothing, sink };

    void on_last_close() override;
    void settle_if_needed();
    void move_unsent();
    void peer_drain(std::size_t most);
    void take(std::string_view bytes);
    void note_fin();
    void raise_if_writable();
    [[nodiscard]] bool writable() const;
    [[nodiscard]] bool is_unix() const { return address_.family == AddressFamily::unix_socket; }
    [[nodiscard]] bool shut_for_reading() const { return (fin_arrived_ && !read_held_) || dead_; }
    [[nodiscard]] bool shut_for_sending() const { return sending_shut_ || dead_; }
    [[nodiscard]] bool fin_on_its_way() const { return peer_finished_ && !fin_arrived_ && !dead_; }
    [[nodiscard]] int take_error(int otherwise);
    [[nodiscard]] IoResult end_send(std::uint64_t wanted, std::uint64_t sent, std::uint64_t had_room);
    [[nodiscard]] int reset_error() const;
    void die(int error);
    void lose_outbound();

    const std::uint64_t id_;
    const std::uint64_t world_;
    Phase phase_ = Phase::connecting;
    int fd_ = -1;
    const PeerAddress address_;

    // Client to server. Bytes that found no room wait in unsent_, which stands for the client's side.
    ByteQueue unsent_;
    ByteQueue inbound_;
    std::size_t inbound_capacity_ = World::kSocketBufferBytes;
    bool read_held_ = false;      // a fault says that what is in inbound_ has not arrived yet
    bool peer_finished_ = false;  // the client's FIN was sent ...
    bool fin_arrived_ = false;    // ... and has arrived
    bool peer_closed_ = false;    // the client answers anything with a reset

    // Server to client.
    ByteQueue outbound_;
    std::size_t uncounted_ = 0;  // bytes in flight to a client that only counts
    std::size_t outbound_capacity_ = World::kSocketBufferBytes;
    bool send_blocked_ = false;  // a fault says that there is no room
    bool wants_room_ = false;    // Linux's SOCK_NOSPACE: room that appears raises an edge
    bool sending_shut_ = false;
    bool manual_ = false;
    Keep keep_ = Keep::all;
    Peer::Sink sink_;
    std::string received_;
    std::uint64_t received_count_ = 0;

    // The end of it.
    bool dead_ = false;  // Linux's TCP_CLOSE, for the server's socket
    int error_ = 0;      // Linux's sk_err: given once
    bool reset_on_close_ = false;
    bool server_closed_ = false;
    bool fin_seen_by_peer_ = false;
    bool reset_seen_by_peer_ = false;
};

}  // namespace penstock::sim
