// Internal.
// Files as the engine sees them. These calls may wait for the disk, unless they are told not to. A descriptor belongs to whoever
// opened it, until platform::close_descriptor (net.h). A backend of the seam.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/platform/error.h"

namespace penstock::platform {

enum class FileKind : std::uint8_t { regular, directory, other };

struct FileInfo {
    std::uint64_t size = 0;           // bytes
    std::int64_t modified_ns = 0;     // since 1970-01-01 UTC, of times between 1843 and 2191; others are the nearest of these
    std::int64_t changed_ns = 0;      // likewise, of content or attributes; nobody can set it (man 7 inode, ctime)
    std::uint64_t inode = 0;
    FileKind kind = FileKind::other;
};

// Opens a directory as a root for `open_beneath`. The error names the path.
[[nodiscard]] Result<int> open_directory(const std::string& path);

// What becomes of symbolic links below a root.
enum class LinkPolicy : std::uint8_t {
    inside,  // followed, unless they lead outside
    never,   // none is followed, wherever it leads: ELOOP (man 2 openat2, RESOLVE_NO_SYMLINKS)
};

// Whether a call may wait until the disk answers. One that may not fails with EAGAIN when it would have to, or when the
// system cannot tell beforehand: the same call on a thread that may wait then gives the answer.
enum class DiskWait : std::uint8_t { allowed, never };

// Opens a file for reading whose path, relative and with '/' between names, stays below the root at
// every step: no "..", no symbolic link that leads outside (man 2 openat2, RESOLVE_BENEATH). Never
// blocks on a FIFO (O_NONBLOCK). `count` is the descriptor. Without waiting: RESOLVE_CACHED.
[[nodiscard]] IoResult open_beneath(int root_fd, const char* relative_path, LinkPolicy links = LinkPolicy::inside,
                                    DiskWait wait = DiskWait::allowed);

// Returns 0 or errno.
int file_info(int fd, FileInfo* info);

struct DirectoryEntry {
    std::string name;
    FileInfo info;         // of the entry itself: a link is not followed, and is of kind `other`
    bool is_link = false;
};

// Replaces `entries` by what is in an open directory, without "." and "..", in whatever order the file system has. Each
// entry costs a call of its own (man 2 fstatat), so no more than `limit` are asked for; `*complete` is false when there are
// further ones. The descriptor stays where it is, so that any number of threads may list it. One that vanishes
// meanwhile may be missing. Returns 0 or errno.
[[nodiscard]] int list_directory(int fd, std::size_t limit, std::vector<DirectoryEntry>* entries, bool* complete);

// Reads at an offset without moving anything (man 2 pread). `count` 0 means the end of the file. Without waiting it reads
// what is in memory already (man 2 preadv2, RWF_NOWAIT), which may be less than there is.
[[nodiscard]] IoResult read_file(int fd, std::uint64_t offset, std::span<std::byte> buffer,
                                 DiskWait wait = DiskWait::allowed);

// Writes at an offset without moving anything (man 2 pwrite). `count` may be less than there was to write.
[[nodiscard]] IoResult write_file(int fd, std::uint64_t offset, std::span<const std::byte> bytes);

// Opens a file to which lines are appended; where there is none it is made, for its owner to read and write. The error names the
// path.
[[nodiscard]] Result<int> open_to_append(const std::string& path);

// Appends all of it, at the end that the file has then, by one call (man 2 open, O_APPEND). There is nothing to do about it when that
// fails.
void append_line(int fd, std::string_view line);

// ---- Files that are to have a name later, or never

// Makes an empty file in the directory, for its owner to read and write. `count` is the descriptor. It has no name, and
// is gone with its last descriptor, however the process ends (man 2 open, O_TMPFILE). Where the file system knows no
// such files it has a name there that begins with ".penstock-", and `*name` is its path: remove_file is then up to
// the caller, and a process that is killed leaves the file behind. Otherwise `*name` is "".
[[nodiscard]] IoResult create_temporary_file(const std::string& directory, std::string* name);

// Gives such a file the name `path`, in place of the one that it may have (`name`, as it was made). Returns 0 or errno:
// EEXIST when the name is taken, whatever by, since nothing is ever replaced; EXDEV when it is on another file system.
// Says nothing about when it reaches the disk. Once for each file.
[[nodiscard]] int name_file(int fd, const std::string& name, const std::string& path);

// Takes a name away (man 2 unlink). There is nothing to do about it when that fails.
void remove_file(const std::string& path);

}  // namespace penstock::platform
