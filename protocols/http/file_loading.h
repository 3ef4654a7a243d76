// Internal.
// One look at a path below a directory: opens it, and reads it where it is small. On any thread; with DiskWait::never it is fit
// for a reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/platform/descriptor.h"
#include "penstock/platform/file.h"

namespace penstock {

// A directory that is served; shared by all who look below it, on any thread.
struct FileRoot {
    platform::Descriptor directory;
    platform::LinkPolicy links = platform::LinkPolicy::inside;
};

// What a path leads to, as it was found.
struct LoadedFile {
    int error = 0;  // errno: there is nothing, or it may not be had; the rest says nothing then
    platform::FileInfo info{};
    platform::Descriptor file;             // of a regular file whose content is not held
    std::unique_ptr<std::byte[]> content;  // info.size bytes
    // It was not written to in the last moments: whoever finds the same again finds the same bytes. Content is only given when
    // the file was of this kind, size and age both before and after it was read.
    bool settled = false;
    // It was found as it was known, so that nothing but `settled` and `info` is given.
    bool unchanged = false;
    // The disk would have to be waited for; nothing else is said.
    bool must_wait = false;
};

// `content_limit_bytes`: a regular file up to that size is read. `known`: what an earlier look found and is still held, or
// nullptr.
[[nodiscard]] LoadedFile load_file(const FileRoot& root, const char* path, const platform::FileInfo* known,
                                   std::uint64_t content_limit_bytes, platform::DiskWait wait);

// The same file in the same state, as far as the system tells.
[[nodiscard]] bool is_same_file(const platform::FileInfo& one, const platform::FileInfo& other);

}  // namespace penstock
