#include "penstock/protocols/http/file_cache.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "penstock/engine/config.h"
#include "penstock/engine/ensure.h"
#include "penstock/engine/reactor.h"

namespace penstock {

namespace {

// A place in the table of paths, roughly.
constexpr std::uint64_t kTableBytes = 64;
// The text of a file's own fields, roughly.
constexpr std::uint64_t kFieldsBytes = 256;

}  // namespace

std::size_t FileCache::PathHash::operator()(std::string_view path) const {
    return static_cast<std::size_t>(XXH3_64bits(path.data(), path.size()));
}

// ---- FileSnapshot

FileSnapshot::FileSnapshot(FileCache& cache, std::string_view path, LoadedFile&& loaded)
    : cache_(cache), path_(path), loaded_(std::move(loaded)) {}

std::uint64_t FileSnapshot::memory_bytes() const {
    return sizeof(FileSnapshot) + sizeof(FileDescription) + kFieldsBytes + kTableBytes + path_.capacity() + content().size();
}

void FileReference::release(void* file) {
    auto* const snapshot = static_cast<FileSnapshot*>(file);
    if (--snapshot->references_ == 0 && !snapshot->kept_) {
        snapshot->cache_.destroy(*snapshot);
    }
}

// ---- Finding

FileCache::FileCache(Reactor& reactor, std::shared_ptr<const FileRoot> root, const FileCacheLimits& limits)
    : reactor_(reactor), root_(std::move(root)), limits_(limits),
      wait_(reactor.config().offload_limit == 0 ? platform::DiskWait::allowed : platform::DiskWait::never) {}

FileCache::~FileCache() {
    loads_.clear();
    while (FileSnapshot* const file = least_recently_used()) {
        evict(*file);
    }
    ensure(snapshots_ == 0, "file cache: it ends before those who use its files");
}

FileReference FileCache::find(const char* path) {
    const auto found = files_.find(path);
    if (found == files_.end()) {
        reactor_.count().file_cache_misses.add();
        LoadedFile loaded = look(path, nullptr);
        return loaded.must_wait ? FileReference() : add(path, std::move(loaded));
    }
    FileSnapshot& file = *found->second;
    if (is_fresh(file)) {
        reactor_.count().file_cache_hits.add();
        touch(file);
        return FileReference(file);
    }
    return revalidate(file);
}

// A file that is sent from its descriptor shows at once what is written to it: its size and its tag must go along.
bool FileCache::is_fresh(FileSnapshot& file) const {
    if (reactor_.now_ms() - file.checked_ms_ >= limits_.time_to_live_ms) {
        return false;
    }
    platform::FileInfo now;
    return file.fd() < 0 || (platform::file_info(file.fd(), &now) == 0 && is_same_file(now, file.info()));
}

// On this thread.
LoadedFile FileCache::look(const char* path, const platform::FileInfo* known) {
    LoadedFile loaded = load_file(*root_, path, known, content_limit(), wait_);
    if (is_exhaustion(loaded.error) && close_spare_files()) {
        loaded = load_file(*root_, path, known, content_limit(), wait_);
    }
    return loaded;
}

FileReference FileCache::revalidate(FileSnapshot& file) {
    const FileReference held(file);  // it may be evicted for want of descriptors
    const bool usable = file.error() == 0 && file.loaded_.settled;
    LoadedFile loaded = look(file.path_.c_str(), usable ? &file.info() : nullptr);
    if (loaded.must_wait) {
        reactor_.count().file_cache_misses.add();
        return {};
    }
    if (!loaded.unchanged) {
        reactor_.count().file_cache_misses.add();
        return add(file.path_, std::move(loaded));
    }
    reactor_.count().file_cache_hits.add();
    file.checked_ms_ = reactor_.now_ms();
    if (file.kept_) {
        touch(file);
    }
    return held;
}

// What slow readers still hold of files that were evicted leaves that much less for others.
std::uint64_t FileCache::content_limit() const {
    if (limits_.entries == 0) {
        return kReadFileLimitBytes;
    }
    return evicted_bytes_ + limits_.content_bytes <= limits_.bytes ? limits_.content_bytes : 0;
}

// ---- Keeping

FileReference FileCache::add(std::string_view path, LoadedFile&& loaded) {
    auto* const file = new FileSnapshot(*this, path, std::move(loaded));
    ++snapshots_;
    count_bytes(file->memory_bytes(), 0);
    evicted_bytes_ += file->memory_bytes();
    const FileReference reference(*file);
    file->checked_ms_ = reactor_.now_ms();
    if (const auto known = files_.find(file->path_); known != files_.end()) {
        evict(*known->second);
    }
    // Errors that are not about the path, like a want of descriptors, must not outlast their cause.
    const bool lasting = file->error() == 0 || status_of_file_error(file->error()) == 404;
    if (limits_.entries > 0 && lasting) {
        keep(*file);
        shrink_to_limits();
    }
    return reference;
}

void FileCache::keep(FileSnapshot& file) {
    files_.emplace(file.path_, &file);
    file.kept_ = true;
    evicted_bytes_ -= file.memory_bytes();
    link(file);
    reactor_.count().file_cache_entries.add();
}

void FileCache::evict(FileSnapshot& file) {
    unlink(file);
    files_.erase(file.path_);
    file.kept_ = false;
    evicted_bytes_ += file.memory_bytes();
    reactor_.count().file_cache_entries.subtract();
    if (file.references_ == 0) {
        destroy(file);
    }
}

void FileCache::make_way(FileSnapshot& file) {
    reactor_.count().file_cache_evictions.add();
    evict(file);
}

void FileCache::destroy(FileSnapshot& file) {
    count_bytes(0, file.memory_bytes());
    evicted_bytes_ -= file.memory_bytes();
    --snapshots_;
    delete &file;
}

void FileCache::shrink_to_limits() {
    // Names alone cost little and are had for the asking, so they must not push out the files.
    const std::array<std::size_t, 3> most{limits_.entries, limits_.descriptors, (limits_.entries + std::size_t{1}) / 2};
    for (std::size_t kind = 0; kind < kept_.size(); ++kind) {
        while (kept_[kind].count > most[kind]) {
            make_way(*kept_[kind].last);
        }
    }
    // While slow readers hold all of it, an eighth more is for what is asked for now. To evict what they hold frees nothing.
    const auto most_bytes = [this] { return std::max(limits_.bytes, evicted_bytes_ + limits_.bytes / 8); };
    while (files_.size() > limits_.entries || bytes_ > most_bytes()) {
        FileSnapshot* const file = least_recently_used();
        if (file == nullptr) {
            return;
        }
        make_way(*file);
    }
}

bool FileCache::close_spare_files() {
    const Kept& open = kept_[static_cast<std::size_t>(FileSnapshot::Kind::descriptor)];
    const bool has_any = open.last != nullptr;
    while (open.last != nullptr) {
        make_way(*open.last);
    }
    return has_any;
}

FileSnapshot* FileCache::least_recently_used() const {
    FileSnapshot* least = nullptr;
    for (const Kept& kept : kept_) {
        if (kept.last != nullptr && (least == nullptr || kept.last->used_ < least->used_)) {
            least = kept.last;
        }
    }
    return least;
}

void FileCache::touch(FileSnapshot& file) {
    if (kept_like(file).first != &file) {
        unlink(file);
        link(file);
    }
    file.used_ = ++uses_;
}

void FileCache::link(FileSnapshot& file) {
    Kept& kept = kept_like(file);
    file.previous_ = nullptr;
    file.next_ = kept.first;
    (kept.first != nullptr ? kept.first->previous_ : kept.last) = &file;
    kept.first = &file;
    file.used_ = ++uses_;
    ++kept.count;
}

void FileCache::unlink(FileSnapshot& file) {
    Kept& kept = kept_like(file);
    (file.previous_ != nullptr ? file.previous_->next_ : kept.first) = file.next_;
    (file.next_ != nullptr ? file.next_->previous_ : kept.last) = file.previous_;
    --kept.count;
}

void FileCache::count_bytes(std::uint64_t more, std::uint64_t less) {
    bytes_ += more - less;
    Counter& counter = reactor_.count().file_cache_bytes;
    counter.add(more);
    counter.subtract(less);
}

// ---- Loading

bool FileCache::load(const char* path, Waiter done) {
    // Each waits for a request of its own; what is above it has been left behind by clients that have gone.
    if (waiters_ >= reactor_.config().connection_limit) {
        return false;
    }
    const auto [load, is_new] = loads_.try_emplace(path);
    try {
        load->second.push_back(std::move(done));
        ++waiters_;
        if (!is_new || (loading_ < kFilesLoadedAtOnce && start_load(load->first))) {
            return true;
        }
        if (loading_ > 0) {
            queue_.emplace_back(path);  // its turn comes with the end of another
            return true;
        }
    } catch (const std::bad_alloc&) {
        // Refused, as when the pool is full. One that nobody loads must not stay: all who come later would wait for it.
    }
    if (is_new) {
        waiters_ -= load->second.size();
        loads_.erase(load);
    }
    return false;
}

bool FileCache::start_load(const std::string& path) {
    struct Job {
        std::shared_ptr<const FileRoot> root;
        std::string path;
        std::uint64_t content_limit_bytes;
        std::uint32_t started_ms;
        LoadedFile loaded;
    };
    try {
        auto job = std::make_shared<Job>(Job{root_, path, content_limit(), reactor_.now_ms(), {}});
        const bool started = reactor_.try_offload(
            Message([job] {
                job->loaded =
                    load_file(*job->root, job->path.c_str(), nullptr, job->content_limit_bytes, platform::DiskWait::allowed);
            }),
            Message([this, job] {
                --loading_;
                finish_load(job->path, job->started_ms, std::move(job->loaded));
                start_queued();
            }));
        loading_ += started ? 1 : 0;
        return started;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

void FileCache::finish_load(const std::string& path, std::uint32_t started_ms, LoadedFile&& loaded) {
    const auto found = loads_.find(path);
    const std::vector<Waiter> waiters = std::move(found->second);
    loads_.erase(found);
    waiters_ -= waiters.size();
    if (is_exhaustion(loaded.error)) {
        (void)close_spare_files();  // so that the next try finds room
    }
    FileReference file;
    try {
        file = add_loaded(path, started_ms, std::move(loaded));
    } catch (const std::bad_alloc&) {
        // They are told so.
    }
    for (const Waiter& waiter : waiters) {
        waiter(file);
    }
}

// Unless somebody has found it without a wait since the look began: that one may have seen less than what is there now.
FileReference FileCache::add_loaded(const std::string& path, std::uint32_t started_ms, LoadedFile&& loaded) {
    const auto known = files_.find(path);
    if (known != files_.end() && static_cast<std::int32_t>(known->second->checked_ms_ - started_ms) >= 0 &&
        is_fresh(*known->second)) {
        return FileReference(*known->second);
    }
    return add(path, std::move(loaded));
}

void FileCache::start_queued() {
    while (!queue_.empty() && loading_ < kFilesLoadedAtOnce) {
        const bool started = start_load(queue_.front());
        if (!started && loading_ > 0) {
            return;
        }
        const std::string path = std::move(queue_.front());
        queue_.pop_front();
        if (!started) {
            LoadedFile refused;
            refused.error = EAGAIN;  // 503: the pool is full with other work
            finish_load(path, reactor_.now_ms(), std::move(refused));
        }
    }
}

}  // namespace penstock
