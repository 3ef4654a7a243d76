#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string_view>

#include "penstock/platform/file.h"

namespace penstock::platform {

namespace {

// openat2 gives EAGAIN when anything on the system was renamed while it resolved a ".." of a symbolic link,
// and asks the caller to try again (man 2 openat2, RESOLVE_BENEATH). Other renames must not make a file fail
// for good; whoever renames for ever must not hold the thread either.
constexpr int kMaxResolveTries = 16;

bool climbs(std::string_view path);

}  // namespace

IoResult open_beneath(int root_fd, const char* relative_path, LinkPolicy links, DiskWait wait) {
    // The kernel lets "a/../b" pass, since it stays below. A path that climbs at all is nobody's honest
    // request.
    if (climbs(relative_path)) {
        return IoResult::failure(EXDEV);
    }
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    if (links == LinkPolicy::never) {
        how.resolve |= RESOLVE_NO_SYMLINKS;
    }
    if (wait == DiskWait::never) {
        how.resolve |= RESOLVE_CACHED;
        const long fd = ::syscall(SYS_openat2, root_fd, relative_path, &how, sizeof how);
        // EINVAL: a kernel before 5.12 does not know the flag.
        return fd >= 0 ? IoResult::success(fd) : IoResult::failure(errno == EINVAL || errno == EINTR ? EAGAIN : errno);
    }
    int error = EAGAIN;
    for (int tries = 0; tries < kMaxResolveTries && (error == EAGAIN || error == EINTR); ++tries) {
        // The C library has no wrapper (man 2 openat2, NOTES).
        const long fd = ::syscall(SYS_openat2, root_fd, relative_path, &how, sizeof how);
        if (fd >= 0) {
            return IoResult::success(fd);
        }
        error = errno;
    }
    return IoResult::failure(error);
}

IoResult read_file(int fd, std::uint64_t offset, std::span<std::byte> buffer, DiskWait wait) {
    ssize_t count = -1;
    if (wait == DiskWait::never) {
        const iovec piece{buffer.data(), buffer.size()};
        count = ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
        // Not every file system can tell (man 2 preadv2): tmpfs and overlayfs say so.
        const int error = count < 0 && (errno == EOPNOTSUPP || errno == EINTR) ? EAGAIN : errno;
        return count < 0 ? IoResult::failure(error) : IoResult::success(count);
    }
    do {
        count = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);  // network file systems do say it (man 7 signal)
    return count < 0 ? IoResult::failure(errno) : IoResult::success(count);
}

namespace {

bool climbs(std::string_view path) {
    while (!path.empty()) {
        const std::size_t end = path.find('/');
        if (path.substr(0, end) == "..") {
            return true;
        }
        path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    }
    return false;
}

}  // namespace

}  // namespace penstock::platform
