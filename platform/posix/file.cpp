#include "penstock/platform/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::platform {

namespace {

FileKind kind_of(mode_t mode);

}  // namespace

Result<int> open_directory(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return system_error("open the directory \"" + path + "\"", errno);
    }
    return fd;
}

int file_info(int fd, FileInfo* info) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) {
        return errno;
    }
    info->size = static_cast<std::uint64_t>(status.st_size);
    info->modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    info->inode = status.st_ino;
    info->kind = kind_of(status.st_mode);
    return 0;
}

IoResult read_file(int fd, std::uint64_t offset, std::span<std::byte> buffer) {
    ssize_t count = -1;
    do {
        count = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);  // network file systems do say it (man 7 signal)
    return count < 0 ? IoResult::failure(errno) : IoResult::success(count);
}

IoResult write_file(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
    ssize_t count = -1;
    do {
        count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);
    return count < 0 ? IoResult::failure(errno) : IoResult::success(count);
}

void remove_file(const std::string& path) { (void)::unlink(path.c_str()); }

namespace {

FileKind kind_of(mode_t mode) {
    if (S_ISREG(mode)) {
        return FileKind::regular;
    }
    return S_ISDIR(mode) ? FileKind::directory : FileKind::other;
}

}  // namespace

}  // namespace penstock::platform
