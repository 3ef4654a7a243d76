// Internal.
// What one reactor knows of the paths below a directory: files with their content or an open descriptor, and names that lead to
// nothing. What it does not know it looks up at once where that takes no wait for the disk, and on the offload pool
// otherwise. It knows nothing of requests.
//
// Bounded in paths, bytes and descriptors; the least recently used give way. What has been evicted but is still being sent
// counts against the bytes until it has left, so that slow readers cannot make it hold more.
//
// Owned by its reactor (Reactor::local), used by its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/protocols/http/file_loading.h"
#include "penstock/protocols/http/file_response.h"

namespace penstock {

class FileCache;
class Reactor;

struct FileCacheLimits {
    std::uint32_t entries = 0;        // 0: nothing is kept
    std::uint32_t descriptors = 0;
    std::uint64_t bytes = 0;
    std::uint64_t content_bytes = 0;  // files above it are kept by their descriptor
    std::uint32_t time_to_live_ms = 0;
};

// One path as it was found. Stays as it is while anybody holds a reference to it, whatever becomes of the file.
class FileSnapshot {
public:
    FileSnapshot(const FileSnapshot&) = delete;
    FileSnapshot& operator=(const FileSnapshot&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    // errno; the rest is only for 0.
    [[nodiscard]] int error() const { return loaded_.error; }
    [[nodiscard]] const platform::FileInfo& info() const { return loaded_.info; }
    [[nodiscard]] bool is_file() const { return error() == 0 && info().kind == platform::FileKind::regular; }
    [[nodiscard]] bool is_directory() const { return error() == 0 && info().kind == platform::FileKind::directory; }
    // A null view when the content is not held; then `fd` is open.
    [[nodiscard]] std::string_view content() const {
        return {reinterpret_cast<const char*>(loaded_.content.get()), loaded_.content != nullptr ? info().size : 0};
    }
    [[nodiscard]] int fd() const { return loaded_.file.fd(); }
    // What has been found out about it by its own name, kept with it; null before.
    [[nodiscard]] std::unique_ptr<const FileDescription>& description() { return description_; }

private:
    friend class FileCache;
    friend class FileReference;

    // What competes for a place: those of each kind have a limit of their own.
    enum class Kind : std::uint8_t { content, descriptor, name };

    FileSnapshot(FileCache& cache, std::string_view path, LoadedFile&& loaded);
    [[nodiscard]] Kind kind() const {
        return !is_file() ? Kind::name : fd() >= 0 ? Kind::descriptor : Kind::content;
    }
    [[nodiscard]] std::uint64_t memory_bytes() const;

    FileCache& cache_;
    const std::string path_;
    LoadedFile loaded_;
    std::unique_ptr<const FileDescription> description_;
    FileSnapshot* next_ = nullptr;  // of its kind, most recently used first, while it is kept
    FileSnapshot* previous_ = nullptr;
    std::uint64_t used_ = 0;        // when last, by the cache's count of uses
    std::uint32_t checked_ms_ = 0;  // when it was last found like this
    std::uint32_t references_ = 0;
    bool kept_ = false;
};

// Counts as one of its users. Its reactor's thread only.
class FileReference {
public:
    FileReference() = default;
    explicit FileReference(FileSnapshot& file) : file_(&file) { ++file.references_; }
    FileReference(const FileReference& other) : file_(other.file_) {
        if (file_ != nullptr) {
            ++file_->references_;
        }
    }
    FileReference(FileReference&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
    FileReference& operator=(FileReference other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~FileReference() {
        if (file_ != nullptr) {
            release(file_);
        }
    }

    explicit operator bool() const { return file_ != nullptr; }
    FileSnapshot* operator->() const { return file_; }
    FileSnapshot& operator*() const { return *file_; }
    // The reference is the caller's from now on, to be given to `release`.
    [[nodiscard]] void* hand_over() { return std::exchange(file_, nullptr); }
    static void release(void* file);

private:
    FileSnapshot* file_ = nullptr;
};

class FileCache {
public:
    // Gets what was found, or null when there was no memory for it; must not throw.
    using Waiter = std::function<void(FileReference)>;

    FileCache(Reactor& reactor, std::shared_ptr<const FileRoot> root, const FileCacheLimits& limits);
    // No reference may be left.
    ~FileCache();
    FileCache(const FileCache&) = delete;
    FileCache& operator=(const FileCache&) = delete;

    // What the path leads to, as it was within the time to live; null when the disk has to be waited for.
    [[nodiscard]] FileReference find(const char* path);
    // Looks on the offload pool, where others that want the same path wait with the first, and calls `done` in a later turn.
    // False when too many wait already, or the pool takes nothing.
    [[nodiscard]] bool load(const char* path, Waiter done);
    // Descriptors are short: those that are only kept to be at hand are evicted. False when there are none.
    bool close_spare_files();

private:
    friend class FileReference;

    struct PathHash {
        [[nodiscard]] std::size_t operator()(std::string_view path) const;
    };
    struct Kept {
        FileSnapshot* first = nullptr;
        FileSnapshot* last = nullptr;
        std::size_t count = 0;
    };

    [[nodiscard]] bool is_fresh(FileSnapshot& file) const;
    [[nodiscard]] std::uint64_t content_limit() const;
    [[nodiscard]] LoadedFile look(const char* path, const platform::FileInfo* known);
    [[nodiscard]] FileReference revalidate(FileSnapshot& file);
    [[nodiscard]] FileReference add(std::string_view path, LoadedFile&& loaded);
    void touch(FileSnapshot& file);
    void keep(FileSnapshot& file);
    void evict(FileSnapshot& file);
    // The same for want of room.
    void make_way(FileSnapshot& file);
    void shrink_to_limits();
    [[nodiscard]] FileSnapshot* least_recently_used() const;
    [[nodiscard]] Kept& kept_like(const FileSnapshot& file) { return kept_[static_cast<std::size_t>(file.kind())]; }
    void link(FileSnapshot& file);
    void unlink(FileSnapshot& file);
    void destroy(FileSnapshot& file);
    // False when the pool takes nothing, or there is no memory for it.
    [[nodiscard]] bool start_load(const std::string& path);
    void finish_load(const std::string& path, std::uint32_t started_ms, LoadedFile&& loaded);
    [[nodiscard]] FileReference add_loaded(const std::string& path, std::uint32_t started_ms, LoadedFile&& loaded);
    void start_queued();
    void count_bytes(std::uint64_t more, std::uint64_t less);

    Reactor& reactor_;
    const std::shared_ptr<const FileRoot> root_;
    const FileCacheLimits limits_;
    const platform::DiskWait wait_;  // of what is done on this thread: without a pool there is no other
    std::unordered_map<std::string_view, FileSnapshot*, PathHash> files_;  // by their own paths
    std::array<Kept, 3> kept_;
    std::uint64_t uses_ = 0;
    std::uint64_t bytes_ = 0;        // of all snapshots that live
    std::uint64_t evicted_bytes_ = 0;  // of those that are not kept
    std::size_t snapshots_ = 0;
    std::unordered_map<std::string, std::vector<Waiter>> loads_;  // under way or queued, with who waits for them
    std::deque<std::string> queue_;  // of loads that have not started
    std::uint32_t loading_ = 0;
    std::size_t waiters_ = 0;
};

}  // namespace penstock
