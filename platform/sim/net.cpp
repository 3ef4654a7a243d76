// The data path of platform/net.h.
#include "penstock/platform/net.h"

#include <algorithm>
#include <cerrno>

#include "penstock/platform/sim/kernel.h"

namespace penstock::sim {

namespace {

using platform::SendPiece;

std::uint64_t total_size(std::span<const SendPiece> pieces) {
    std::uint64_t total = 0;
    for (const SendPiece& piece : pieces.first(std::min(pieces.size(), platform::kMaxSendPieces))) {
        total += piece.size;
    }
    return total;
}

// Not one of the functions of the contract by way of the other: who counts what a reactor does without its kernel looks at where
// these are entered.
IoResult send_pieces(int fd, std::span<const SendPiece> pieces) {
    const Scope kernel;
    int error = 0;
    Connection* connection = kernel->find_connection(fd, &error);
    const std::uint64_t bytes =
        connection == nullptr ? 0 : std::min<std::uint64_t>(total_size(pieces), connection->room());
    const Outcome outcome = kernel->begin(Call::send, fd, bytes);
    if (connection == nullptr) {
        return IoResult::failure(error);
    }
    if (outcome.error != 0) {
        connection->fail_send(outcome.error);
        return kernel->end(Call::send, IoResult::failure(outcome.error));
    }
    return kernel->end(Call::send, connection->send(pieces, outcome.most));
}

}  // namespace

}  // namespace penstock::sim

namespace penstock::platform {

using sim::Call;
using sim::Outcome;
using sim::Scope;

IoResult accept(int listener_fd, PeerAddress* peer) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::accept, listener_fd);
    int error = 0;
    sim::Listener* listener = kernel->find_listener(listener_fd, &error);
    if (listener == nullptr) {
        return IoResult::failure(error);
    }
    if (outcome.error != 0) {
        listener->fail_accept(outcome.error);
        return kernel->end(Call::accept, IoResult::failure(outcome.error));
    }
    // The descriptor comes first: without one, Linux does not look at the queue.
    if (kernel->at_limit()) {
        return IoResult::failure(EMFILE);
    }
    if (listener->queue_empty()) {
        return kernel->end(Call::accept, IoResult::failure(EAGAIN));
    }
    const std::shared_ptr<sim::Connection> connection = listener->take();
    const IoResult opened = kernel->open(connection);
    connection->accept_as(static_cast<int>(opened.count));
    *peer = connection->address();
    return opened;
}

IoResult receive(int fd, std::span<std::byte> buffer) {
    const Scope kernel;
    int error = 0;
    sim::Connection* connection = kernel->find_connection(fd, &error);
    const std::uint64_t bytes = connection == nullptr ? 0 : std::min(buffer.size(), connection->visible());
    const Outcome outcome = kernel->begin(Call::receive, fd, bytes);
    if (connection == nullptr) {
        return IoResult::failure(error);
    }
    if (outcome.error != 0) {
        connection->fail_receive(outcome.error);
        return kernel->end(Call::receive, IoResult::failure(outcome.error));
    }
    return kernel->end(Call::receive, connection->receive(buffer, outcome.most));
}

IoResult send(int fd, std::string_view bytes) {
    const SendPiece piece = {bytes.data(), bytes.size()};
    return sim::send_pieces(fd, {&piece, 1});
}

// `more` only shapes packets (man 2 send, MSG_MORE), of which there are none here.
IoResult send(int fd, std::span<const SendPiece> pieces, bool) {
    return sim::send_pieces(fd, pieces);
}

IoResult send_file(int fd, int file_fd, std::uint64_t offset, std::size_t size) {
    const Scope kernel;
    int error = 0;
    sim::Connection* connection = kernel->find_connection(fd, &error);
    const sim::OpenFile* file = connection == nullptr ? nullptr : kernel->find_file(file_fd, &error);
    const std::uint64_t bytes = file == nullptr
                                    ? 0
                                    : std::min({std::uint64_t{size}, std::uint64_t{connection->room()},
                                                file->node()->size_from(offset)});
    const Outcome outcome = kernel->begin(Call::send_file, fd, bytes);
    if (file == nullptr) {
        return IoResult::failure(error);
    }
    if (outcome.error != 0) {
        connection->fail_send(outcome.error);
        return kernel->end(Call::send_file, IoResult::failure(outcome.error));
    }
    if (file->node()->kind != sim::NodeKind::regular) {
        return IoResult::failure(EINVAL);
    }
    const IoResult sent = connection->send_file(*file->node(), offset, size, outcome.most);
    kernel->count_disk_wait(sent.ok() && file->node()->warm(offset + static_cast<std::uint64_t>(sent.count)));
    return kernel->end(Call::send_file, sent);
}

std::uint64_t descriptor_limit() {
    const Scope kernel;
    return kernel->limit();
}

int shutdown_sending(int fd) {
    const Scope kernel;
    int error = 0;
    sim::Connection* connection = kernel->find_connection(fd, &error);
    const Outcome outcome = kernel->begin(Call::shutdown, fd);
    if (connection == nullptr) {
        return error;
    }
    if (outcome.error == 0) {
        return connection->shut_sending();
    }
    connection->fail_send(outcome.error);
    return outcome.error;
}

int reset_on_close(int fd) {
    const Scope kernel;
    int error = 0;
    sim::Connection* connection = kernel->find_connection(fd, &error);
    const Outcome outcome = kernel->begin(Call::set_option, fd);
    if (connection == nullptr) {
        return error;
    }
    if (outcome.error == 0) {
        connection->set_reset_on_close();
    }
    return outcome.error;
}

void close_descriptor(int fd) {
    const Scope kernel;
    kernel->count(Call::close);
    kernel->close(fd);
}

}  // namespace penstock::platform
