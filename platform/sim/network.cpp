// The Kernel's network: who may listen where, who gets a connection, what happens between two waits.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>

#include "penstock/platform/sim/abort.h"
#include "penstock/platform/sim/kernel.h"

namespace penstock::sim {

namespace {

constexpr std::uint16_t kFirstFreePort = 49152;  // IANA's dynamic range
constexpr std::uint16_t kFirstClientPort = 40000;
constexpr int kBacklogLimit = 4096;          // Linux's net.core.somaxconn
constexpr std::size_t kUnixPathLimit = 107;  // sun_path of Linux, less its end (man 7 unix)

bool parse_bind_address(const platform::ListenTarget& target, BindAddress* address);
std::size_t queue_limit(int backlog);

}  // namespace

PeerAddress make_address(const std::string& text, std::uint16_t port) {
    PeerAddress address;
    address.port = port;
    if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
        address.family = AddressFamily::ipv4;
    } else {
        require(inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1, "make_address: no address");
        address.family = AddressFamily::ipv6;
    }
    return address;
}

// ---- Listening

IoResult Kernel::listen(const platform::ListenTarget& target) {
    std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
    BindAddress address;
    if (!parse_bind_address(target, &address)) {
        return IoResult::failure(EINVAL);
    }
    const std::uint16_t port = target.port != 0 ? target.port : free_port();
    if (!target.join_group && port_taken(address, port)) {
        return IoResult::failure(EADDRINUSE);
    }
    const auto listener = std::make_shared<Listener>(std::move(address), port, queue_limit(target.backlog));
    const IoResult opened = open(listener);
    if (opened.ok()) {
        listeners_.push_back(listener);
    }
    return opened;
}

IoResult Kernel::listen_unix(const std::string& path, int backlog) {
    std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
    if (path.empty() || path.size() > kUnixPathLimit) {
        return IoResult::failure(ENAMETOOLONG);
    }
    const FileTree::Found there = files.find_entry(path);
    if (there.error != 0 && there.error != ENOENT) {
        return IoResult::failure(there.error);
    }
    if (there.node == nullptr && !files.has_directory_of(path)) {
        return IoResult::failure(ENOENT);
    }
    if (there.node != nullptr && (there.node->kind != NodeKind::socket || !there.node->listener.expired())) {
        return IoResult::failure(EADDRINUSE);
    }
    const auto listener = std::make_shared<Listener>(BindAddress{}, std::uint16_t{0}, queue_limit(backlog));
    const IoResult opened = open(listener);
    if (!opened.ok()) {
        return opened;
    }
    files.make(path, NodeKind::socket).listener = listener;
    listeners_.push_back(listener);
    return opened;
}

void Kernel::remove_socket_file(const std::string& path) {
    const FileTree::Found there = files.find_entry(path);
    if (there.error == 0 && there.node->kind == NodeKind::socket) {
        (void)files.remove(path);
    }
}

std::uint16_t Kernel::free_port() const {
    std::uint16_t port = kFirstFreePort;
    while (!group(port).empty()) {
        ++port;
        require(port != 0, "no port is free");
    }
    return port;
}

bool Kernel::port_taken(const BindAddress& address, std::uint16_t port) const {
    const auto holders = group(port);
    return std::any_of(holders.begin(), holders.end(),
                       [&address](const auto& listener) { return listener->address().overlaps(address); });
}

std::vector<std::shared_ptr<Listener>> Kernel::group(std::uint16_t port) const {
    std::vector<std::shared_ptr<Listener>> members;
    for (const auto& weak : listeners_) {
        auto listener = weak.lock();
        if (listener != nullptr && listener->port() == port) {
            members.push_back(std::move(listener));
        }
    }
    return members;
}

// ---- Connecting

std::shared_ptr<Connection> Kernel::connect(std::uint16_t port, const ConnectOptions& options) {
    require(port != 0, "connect: port 0");
    PeerAddress address = options.from;
    if (address.family == AddressFamily::none) {
        address = make_address("127.0.0.1", next_client_port_);
        next_client_port_ = next_client_port_ == 0xFFFF ? kFirstClientPort
                                                        : static_cast<std::uint16_t>(next_client_port_ + 1);
    }
    return start({nullptr, port, options, choose_listener(port, options)}, address);
}

std::shared_ptr<Connection> Kernel::connect_unix(const std::string& path) {
    PeerAddress address;
    address.family = AddressFamily::unix_socket;
    const FileTree::Found there = files.find(path);
    std::weak_ptr<Listener> listener;
    if (there.error == 0) {
        listener = there.node->listener;
    }
    return start({nullptr, 0, {}, listener}, address);
}

std::shared_ptr<Connection> Kernel::start(Knock knock, const PeerAddress& address) {
    knock.connection = std::make_shared<Connection>(next_connection_++, number_, address);
    const std::shared_ptr<Connection> connection = knock.connection;
    if (!try_to_enter(knock)) {
        knocks_.push_back(std::move(knock));
    }
    return connection;
}

bool Kernel::try_to_enter(Knock& knock) {
    if (knock.connection->phase() != Connection::Phase::connecting) {
        return true;
    }
    std::shared_ptr<Listener> listener = knock.listener.lock();
    if (listener == nullptr && knock.port != 0) {
        listener = choose_listener(knock.port, knock.options);
    }
    if (listener == nullptr) {
        knock.connection->refuse();
        return true;
    }
    knock.listener = listener;
    if (!listener->admits()) {
        return false;
    }
    listener->enqueue(knock.connection);
    return true;
}

std::shared_ptr<Listener> Kernel::choose_listener(std::uint16_t port, const ConnectOptions& options) {
    const auto members = group(port);
    if (members.empty()) {
        return nullptr;
    }
    if (options.listener) {
        return *options.listener < members.size() ? members[*options.listener] : nullptr;
    }
    if (options.cpu) {
        for (const auto& listener : members) {
            if (listener->steered_group() == 0) {
                continue;
            }
            const std::size_t index = *options.cpu % listener->steered_group();
            // A program that names a socket beyond the group is ignored (man 7 socket).
            if (index < members.size()) {
                return members[index];
            }
        }
    }
    return members[turns_[port]++ % members.size()];
}

// ---- Between two waits

void Kernel::settle() {
    for (const auto& weak : listeners_) {
        if (const auto listener = weak.lock()) {
            listener->settle();
        }
    }
    settle_knocks();
    std::size_t kept = 0;
    for (std::size_t index = 0; index < unsettled_.size(); ++index) {
        std::shared_ptr<Connection> connection = std::move(unsettled_[index]);
        connection->settle();
        if (connection->unsettled()) {
            unsettled_[kept++] = std::move(connection);
        } else {
            connection->listed = false;
        }
    }
    unsettled_.resize(kept);
}

void Kernel::settle_knocks() {
    std::size_t kept = 0;
    for (std::size_t index = 0; index < knocks_.size(); ++index) {
        Knock knock = std::move(knocks_[index]);
        if (!try_to_enter(knock)) {
            knocks_[kept++] = std::move(knock);
        }
    }
    knocks_.erase(knocks_.begin() + static_cast<std::ptrdiff_t>(kept), knocks_.end());
}

bool Kernel::quiet() const {
    const auto has_event = [](const PollerState* poller) {
        return poller->woken || poller->first != nullptr;
    };
    const auto admits = [](const Knock& knock) {
        const auto listener = knock.listener.lock();
        return listener == nullptr || listener->admits();
    };
    const auto holds = [](const std::weak_ptr<Listener>& weak) {
        const auto listener = weak.lock();
        return listener != nullptr && listener->settles();
    };
    return std::none_of(pollers_.begin(), pollers_.end(), has_event) &&
           std::none_of(knocks_.begin(), knocks_.end(), admits) &&
           std::none_of(listeners_.begin(), listeners_.end(), holds) &&
           std::none_of(unsettled_.begin(), unsettled_.end(),
                        [](const auto& connection) { return connection->settles(); });
}

namespace {

// False if the text is no address. "[::1]" and "fe80::1%eth0" are IPv6 too; every interface exists here.
bool parse_bind_address(const platform::ListenTarget& target, BindAddress* address) {
    std::string text = target.address;
    const bool bracketed = text.starts_with('[') && text.ends_with(']');
    if (bracketed) {
        text = text.substr(1, text.size() - 2);
    }
    text = text.substr(0, text.find('%'));
    unsigned char bytes[16];
    const bool is_v4 = !bracketed && inet_pton(AF_INET, text.c_str(), bytes) == 1;
    const bool is_v6 = inet_pton(AF_INET6, text.c_str(), bytes) == 1;
    if (!target.address.empty() && !is_v4 && !is_v6) {
        return false;
    }
    const bool any = text.empty() || text == "0.0.0.0" || text == "::";
    address->text = any ? "" : text;
    address->ipv4 = is_v4 || (any && !target.ipv6_only);
    address->ipv6 = !is_v4;
    return true;
}

std::size_t queue_limit(int backlog) {
    return static_cast<std::size_t>(std::clamp(backlog, 0, kBacklogLimit));
}

}  // namespace

}  // namespace penstock::sim
