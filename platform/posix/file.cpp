#include "penstock/platform/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

namespace penstock::platform {

static_assert(sizeof(off_t) == 8, "files above 2 GB cannot be read; compile with _FILE_OFFSET_BITS=64");

namespace {

struct DirectoryCloser {
    void operator()(DIR* directory) const { (void)::closedir(directory); }
};

FileInfo info_of(const struct stat& status);
int add_entry(int fd, std::string_view name, std::vector<DirectoryEntry>* entries);
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
    *info = info_of(status);
    return 0;
}

int list_directory(int fd, std::size_t limit, std::vector<DirectoryEntry>* entries, bool* complete) {
    entries->clear();
    *complete = true;
    // A duplicate would share the place in the directory with `fd` (man 2 dup).
    const int own_fd = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own_fd < 0) {
        return errno;
    }
    const std::unique_ptr<DIR, DirectoryCloser> directory(::fdopendir(own_fd));
    if (directory == nullptr) {
        const int error = errno;
        (void)::close(own_fd);
        return error;
    }
    for (;;) {
        errno = 0;  // the only way to tell the end from an error (man 3 readdir)
        const dirent* const next = ::readdir(directory.get());
        if (next == nullptr) {
            return errno;
        }
        const std::string_view name = next->d_name;
        if (name == "." || name == "..") {
            continue;
        }
        if (entries->size() == limit) {
            *complete = false;
            return 0;
        }
        if (const int error = add_entry(own_fd, name, entries); error != 0) {
            return error;
        }
    }
}

IoResult write_file(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
    ssize_t count = -1;
    do {
        count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);  // network file systems do say it (man 7 signal)
    return count < 0 ? IoResult::failure(errno) : IoResult::success(count);
}

void remove_file(const std::string& path) { (void)::unlink(path.c_str()); }

namespace {

int add_entry(int fd, std::string_view name, std::vector<DirectoryEntry>* entries) {
    DirectoryEntry entry;
    entry.name = name;
    struct stat status {};
    if (::fstatat(fd, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : errno;  // it has just gone
    }
    entry.info = info_of(status);
    entry.is_link = S_ISLNK(status.st_mode);
    entries->push_back(std::move(entry));
    return 0;
}

// File systems know times of which the nanoseconds do not fit. Their distance from today's has to fit as well.
std::int64_t nanoseconds_of(const timespec& time) {
    constexpr std::int64_t kFirstSecond = -4'000'000'000;  // 1843
    constexpr std::int64_t kLastSecond = 7'000'000'000;    // 2191
    return std::clamp<std::int64_t>(time.tv_sec, kFirstSecond, kLastSecond) * 1'000'000'000 + time.tv_nsec;
}

FileInfo info_of(const struct stat& status) {
    FileInfo info;
    info.size = static_cast<std::uint64_t>(status.st_size);
    info.modified_ns = nanoseconds_of(status.st_mtim);
    info.changed_ns = nanoseconds_of(status.st_ctim);
    info.inode = status.st_ino;
    info.kind = kind_of(status.st_mode);
    return info;
}

FileKind kind_of(mode_t mode) {
    if (S_ISREG(mode)) {
        return FileKind::regular;
    }
    return S_ISDIR(mode) ? FileKind::directory : FileKind::other;
}

}  // namespace

Result<int> open_to_append(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    return fd >= 0 ? Result<int>(fd) : Result<int>(system_error(path + " cannot be written", errno));
}

void append_line(int fd, std::string_view line) {
    [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

}  // namespace penstock::platform
