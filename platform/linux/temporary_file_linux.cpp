#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "penstock/platform/file.h"

namespace penstock::platform {

namespace {

IoResult create_named_file(const std::string& directory, std::string* name);
int rename_without_replacing(const std::string& from, const std::string& to);

}  // namespace

IoResult create_temporary_file(const std::string& directory, std::string* name) {
    name->clear();
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0) {
        return IoResult::success(fd);
    }
    // NFS, FAT, some of FUSE, and overlays before Linux 6.1 have none; EISDIR comes from where the flag is not known.
    if (errno != EOPNOTSUPP && errno != EISDIR) {
        return IoResult::failure(errno);
    }
    return create_named_file(directory, name);
}

int name_file(int fd, const std::string& name, const std::string& path) {
    if (!name.empty()) {
        return rename_without_replacing(name, path);
    }
    // AT_EMPTY_PATH would need no /proc, but a capability (man 2 linkat).
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

namespace {

// Not unlinked at once: a file whose last name has gone can be given no other (man 2 linkat, ENOENT). The dot hides
// it from whoever lists or serves the directory.
IoResult create_named_file(const std::string& directory, std::string* name) {
    std::string path = directory + "/.penstock-XXXXXX";
    const int fd = ::mkostemp(path.data(), O_CLOEXEC);  // mode 0600
    if (fd < 0) {
        return IoResult::failure(errno);
    }
    *name = std::move(path);
    return IoResult::success(fd);
}

// NFS does not know how to rename without replacing, and says EINVAL (man 2 rename); FAT knows no second name.
int rename_without_replacing(const std::string& from, const std::string& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
    if (::link(from.c_str(), to.c_str()) != 0) {
        return errno;
    }
    remove_file(from);
    return 0;
}

}  // namespace

}  // namespace penstock::platform
