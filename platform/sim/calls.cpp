// What each platform call is named and how it can fail when nobody has made a mistake.
#include <cerrno>

#include "penstock/platform/sim/world.h"

namespace penstock::sim {

namespace {

constexpr const char* kNames[kCallCount] = {
    "open_listener", "duplicate", "set_option",     "accept",      "receive",    "send",
    "send_file",     "shutdown",  "close",          "poller_open", "poller_add", "poller_remove",
    "poller_wait",   "wake",      "open_directory", "open_file",   "file_info",  "read_file",
    "create_file",   "write_file", "name_file",     "remove_file",
    "list_directory",
};

constexpr int kListenErrors[] = {EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE, ENFILE, ENOMEM, ENOBUFS};
constexpr int kDescriptorErrors[] = {EMFILE, ENFILE, ENOMEM};
constexpr int kOptionErrors[] = {ENOMEM};
constexpr int kAcceptErrors[] = {EAGAIN, ECONNABORTED, EMFILE, ENFILE, ENOMEM, ENOBUFS, EPERM, EPROTO};
constexpr int kReceiveErrors[] = {EAGAIN, ECONNRESET, ETIMEDOUT, ENOMEM};
constexpr int kSendErrors[] = {EAGAIN, EPIPE, ECONNRESET, ETIMEDOUT, ENOBUFS, ENOMEM};
constexpr int kSendFileErrors[] = {EAGAIN, EPIPE, ECONNRESET, ETIMEDOUT, ENOMEM, EIO};
constexpr int kShutdownErrors[] = {ENOTCONN};
constexpr int kAddErrors[] = {ENOMEM, ENOSPC};
constexpr int kWaitErrors[] = {EINTR};
constexpr int kOpenErrors[] = {EMFILE, ENFILE, ENOMEM, ENOENT, EACCES, EIO};
constexpr int kFileErrors[] = {EIO};
constexpr int kListErrors[] = {EMFILE, ENFILE, ENOMEM, EIO};
constexpr int kCreateErrors[] = {EMFILE, ENFILE, ENOMEM, ENOENT, EACCES, EROFS, ENOSPC, EDQUOT, EIO};
constexpr int kWriteErrors[] = {ENOSPC, EDQUOT, EFBIG, EIO};
constexpr int kNameErrors[] = {EEXIST, EXDEV, ENOENT, EACCES, EROFS, ENOSPC, EDQUOT, EIO};

}  // namespace

const char* to_string(Call call) {
    return kNames[static_cast<std::size_t>(call)];
}

std::span<const int> plausible_errors(Call call) {
    switch (call) {
        case Call::open_listener: return kListenErrors;
        case Call::duplicate: return kDescriptorErrors;
        case Call::set_option: return kOptionErrors;
        case Call::accept: return kAcceptErrors;
        case Call::receive: return kReceiveErrors;
        case Call::send: return kSendErrors;
        case Call::send_file: return kSendFileErrors;
        case Call::shutdown: return kShutdownErrors;
        case Call::poller_open: return kDescriptorErrors;
        case Call::poller_add: return kAddErrors;
        case Call::poller_wait: return kWaitErrors;
        case Call::open_directory:
        case Call::open_file: return kOpenErrors;
        case Call::file_info:
        case Call::read_file: return kFileErrors;
        case Call::list_directory: return kListErrors;
        case Call::create_file: return kCreateErrors;
        case Call::write_file: return kWriteErrors;
        case Call::name_file: return kNameErrors;
        case Call::close:
        case Call::poller_remove:
        case Call::wake:
        case Call::remove_file: break;
    }
    return {};
}

}  // namespace penstock::sim
