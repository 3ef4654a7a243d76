// Public.
// A part of a form that MultipartReader::save has put into a file. Until it is given a name the file is temporary: it is
// gone when this object is, and when the process ends, in whatever way. Each holds a descriptor.
//
// That is so where the file system knows files without a name (man 2 open, O_TMPFILE): ext4, XFS, Btrfs, tmpfs and most
// others do, NFS and FAT do not. There it is called ".penstock-…" until it is named or the object is destroyed, and
// a process that is killed leaves it behind.
//
// It does not check what is in the file, does not choose names, and does not wait for the disk: fsync(fd()) does that.
// It belongs to the handler that saved it and to its reactor's thread. Destroying it closes the file there, which may
// take a moment if it is large.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/engine/task.h"
#include "penstock/platform/error.h"

namespace penstock {

class UploadedFile {
public:
    UploadedFile(UploadedFile&& other) noexcept;
    UploadedFile& operator=(UploadedFile&& other) noexcept;
    ~UploadedFile();

    [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
    // For reading and writing, still this object's; its position is the beginning. -1 once moved away.
    [[nodiscard]] int fd() const { return fd_; }

    // Gives the file its name, on a thread of the offload pool: from then on it stays, with mode 0600. On the file system
    // where it was saved, once, and never in place of something that is there. The Error names the path; its `code` is
    // EEXIST when the name is taken, EXDEV on another file system, and the file is as it was. Throws Overloaded when the
    // pool is full. Never make the path of what the client calls the file: see MultipartPart.
    //
    // Await it at once, as with `offload`. If the client leaves meanwhile the file is named all the same, and nobody learns
    // of it.
    [[nodiscard]] Task<Result<void>> persist(std::string path);

private:
    friend class MultipartReader;

    UploadedFile() = default;

    // These block. Each returns 0 or errno.
    [[nodiscard]] int create(const std::string& directory);
    [[nodiscard]] int append(std::string_view bytes);
    [[nodiscard]] int give_name(const std::string& path);

    void discard();
    void swap(UploadedFile& other) noexcept;

    int fd_ = -1;
    bool is_persistent_ = false;
    std::uint64_t size_bytes_ = 0;
    std::string temporary_name_;  // "" where it needs none
};

}  // namespace penstock
