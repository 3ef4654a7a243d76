#include "penstock/protocols/http/compress_cache.h"

#include <iterator>
#include <new>
#include <utility>

// Inlined: bodies are short, and a call would be a good part of hashing them.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock {

std::optional<std::string_view> CompressCache::find(std::string_view body, ContentCoding coding, int level) {
    const auto place = places_.find(key_of(body, coding, level));
    if (place == places_.end()) {
        return std::nullopt;
    }
    const Entries::iterator entry = place->second;
    // Of one that gets no smaller the bytes are not kept: to mistake another for it costs no more than to send that as it is.
    const bool is_left = entry->compressed.empty();
    if (entry->coding != coding || entry->level != level || (!is_left && entry->body != body)) {
        return std::nullopt;
    }
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->compressed;
}

void CompressCache::put(std::string_view body, ContentCoding coding, int level, std::string_view compressed) {
    const Key key = key_of(body, coding, level);
    body = compressed.empty() ? std::string_view() : body;
    if (body.size() + compressed.size() + kEntryBytes > limit_bytes_) {
        return;
    }
    if (const auto place = places_.find(key); place != places_.end()) {
        drop(place->second);
    }
    Entries made;  // in order before anything is changed
    try {
        made.push_back({key, coding, level, std::string(body), std::string(compressed)});
        places_.emplace(key, made.begin());
    } catch (const std::bad_alloc&) {
        return;
    }
    used_bytes_ += made.front().bytes();
    entries_.splice(entries_.begin(), made);
    while (used_bytes_ > limit_bytes_) {
        drop(std::prev(entries_.end()));
    }
}

CompressCache::Key CompressCache::key_of(std::string_view body, ContentCoding coding, int level) const {
    const auto how = static_cast<std::uint64_t>(coding) << 8 | static_cast<std::uint64_t>(level);
    const XXH128_hash_t hash = XXH3_128bits_withSeed(body.data(), body.size(), seed_ ^ how);
    return {hash.low64, hash.high64};
}

void CompressCache::drop(Entries::iterator entry) {
    used_bytes_ -= entry->bytes();
    places_.erase(entry->key);
    entries_.erase(entry);
}

}  // namespace penstock
