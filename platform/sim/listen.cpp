// Setting up: the rest of platform/net.h.
#include <cerrno>
#include <string_view>
#include <utility>

#include "penstock/platform/net.h"
#include "penstock/platform/sim/kernel.h"

namespace penstock::platform {

using sim::Call;
using sim::Outcome;
using sim::Scope;

namespace {

constexpr std::string_view kUnixPrefix = "unix:";

bool is_unix(const ListenTarget& target);
Error listen_error(const ListenTarget& target, int code);
const char* advice_for(const ListenTarget& target, int code);
std::string describe(const ListenTarget& target);

}  // namespace

Result<int> open_listener(const ListenTarget& target) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::open_listener, -1);
    if (outcome.error != 0) {
        return listen_error(target, outcome.error);
    }
    const IoResult opened =
        is_unix(target) ? kernel->listen_unix(target.address.substr(kUnixPrefix.size()), target.backlog)
                        : kernel->listen(target);
    if (!opened.ok()) {
        return listen_error(target, opened.error);
    }
    return static_cast<int>(opened.count);
}

IoResult duplicate_descriptor(int fd) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::duplicate, fd);
    int error = 0;
    std::shared_ptr<sim::Description> description = kernel->share(fd, &error);
    if (description == nullptr) {
        return IoResult::failure(error);
    }
    if (outcome.error != 0) {
        return IoResult::failure(outcome.error);
    }
    return kernel->open(std::move(description));
}

std::uint16_t bound_port(int listener_fd) {
    const Scope kernel;
    int error = 0;
    const sim::Listener* listener = kernel->find_listener(listener_fd, &error);
    return listener == nullptr ? std::uint16_t{0} : listener->port();
}

int steer_by_cpu(int listener_fd, unsigned group_size) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::set_option, listener_fd);
    int error = 0;
    sim::Listener* listener = kernel->find_listener(listener_fd, &error);
    if (listener == nullptr) {
        return error;
    }
    if (group_size == 0) {
        return EINVAL;
    }
    if (outcome.error == 0) {
        listener->steer(group_size);
    }
    return outcome.error;
}

int drop_new_handshakes(int listener_fd) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::set_option, listener_fd);
    int error = 0;
    sim::Listener* listener = kernel->find_listener(listener_fd, &error);
    if (listener == nullptr) {
        return error;
    }
    if (outcome.error == 0) {
        listener->drop_new();
    }
    return outcome.error;
}

void remove_socket_file(const ListenTarget& target) {
    const Scope kernel;
    if (is_unix(target)) {
        kernel->remove_socket_file(target.address.substr(kUnixPrefix.size()));
    }
}

namespace {

bool is_unix(const ListenTarget& target) {
    return target.address.starts_with(kUnixPrefix);
}

// Worded as the posix backend words it, so that what a test reads is what a user would.
Error listen_error(const ListenTarget& target, int code) {
    Error error = system_error("cannot listen on " + describe(target), code);
    if (const std::string_view advice = advice_for(target, code); !advice.empty()) {
        error.message += "; ";
        error.message += advice;
    }
    return error;
}

const char* advice_for(const ListenTarget& target, int code) {
    switch (code) {
        case EADDRINUSE:
            return is_unix(target)
                       ? "another program listens there, or a file that is not a socket has this name: "
                         "stop it or choose another path"
                       : "another program holds this port: stop it or choose another port";
        case EINVAL:
            return "the address is not numeric: give \"\" for all, an IPv4 or IPv6 address, or unix:/path";
        case ENAMETOOLONG: return "the path of a Unix socket has 1 to 107 bytes here: choose a shorter one";
        case ENOENT:
        case ENOTDIR: return "its directory does not exist: create it or choose another path";
        case EMFILE:
        case ENFILE: return "raise the limit of open files";
        default: return "";
    }
}

std::string describe(const ListenTarget& target) {
    if (is_unix(target)) {
        return target.address;
    }
    const std::string port = ":" + std::to_string(target.port);
    if (target.address.empty()) {
        return "*" + port;
    }
    const bool bare_ipv6 = target.address.find(':') != std::string::npos && !target.address.starts_with('[');
    return (bare_ipv6 ? "[" + target.address + "]" : target.address) + port;
}

}  // namespace

}  // namespace penstock::platform
