#include "penstock/protocols/http/file_loading.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <span>
#include <utility>

#include "penstock/platform/clock.h"

namespace penstock {

namespace {

// File systems mark the time of a write by the tick of a clock, or by the second; what was written since may have the mark of
// what was there before.
constexpr std::int64_t kSettledAfterNs = 2'000'000'000;

LoadedFile failed(int error, platform::DiskWait wait) {
    LoadedFile loaded;
    loaded.must_wait = error == EAGAIN && wait == platform::DiskWait::never;
    loaded.error = error;
    return loaded;
}

// Reads all of it: 0, or errno; EAGAIN when it has become shorter, or would take a wait.
int read_content(int fd, std::span<std::byte> content, platform::DiskWait wait) {
    for (std::uint64_t offset = 0; !content.empty();) {
        const IoResult read = platform::read_file(fd, offset, content, wait);
        if (!read.ok() || read.count == 0) {
            return read.ok() ? EAGAIN : read.error;
        }
        offset += static_cast<std::uint64_t>(read.count);
        content = content.subspan(static_cast<std::size_t>(read.count));
    }
    return 0;
}

}  // namespace

LoadedFile load_file(const FileRoot& root, const char* path, const platform::FileInfo* known,
                     std::uint64_t content_limit_bytes, platform::DiskWait wait) {
    const IoResult opened = platform::open_beneath(root.directory.fd(), path, root.links, wait);
    if (!opened.ok()) {
        return failed(opened.error, wait);
    }
    LoadedFile loaded;
    loaded.file = platform::Descriptor(static_cast<int>(opened.count));
    if (const int error = platform::file_info(loaded.file.fd(), &loaded.info); error != 0) {
        return failed(error, wait);
    }
    if (known != nullptr && is_same_file(*known, loaded.info)) {
        loaded.unchanged = true;
        loaded.file = platform::Descriptor();
        return loaded;
    }
    if (loaded.info.kind != platform::FileKind::regular) {
        loaded.settled = true;
        loaded.file = platform::Descriptor();
        return loaded;
    }
    platform::FileInfo after = loaded.info;
    if (loaded.info.size <= content_limit_bytes) {
        const auto size = static_cast<std::size_t>(loaded.info.size);
        loaded.content.reset(new (std::nothrow) std::byte[size]);
        if (loaded.content == nullptr) {
            return failed(ENOMEM, wait);
        }
        int error = read_content(loaded.file.fd(), {loaded.content.get(), size}, wait);
        error = error == 0 ? platform::file_info(loaded.file.fd(), &after) : error;
        if (error != 0) {
            return failed(error, wait);
        }
        if (is_same_file(loaded.info, after)) {
            loaded.file = platform::Descriptor();
        } else {
            // It may be of two versions. From its descriptor whatever is there is sent, under the tag of that.
            loaded.content.reset();
            loaded.info = after;
        }
    }
    const std::int64_t settled_until_ns = platform::wall_ms() * 1'000'000 - kSettledAfterNs;
    loaded.settled = std::max(loaded.info.modified_ns, loaded.info.changed_ns) <= settled_until_ns;
    return loaded;
}

bool is_same_file(const platform::FileInfo& one, const platform::FileInfo& other) {
    // The time of a change tells of writers who set that of the modification back, and of a new file that got the old one's number.
    return one.size == other.size && one.modified_ns == other.modified_ns && one.changed_ns == other.changed_ns &&
           one.inode == other.inode && one.kind == other.kind;
}

}  // namespace penstock
