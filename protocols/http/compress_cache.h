// Internal.
// Small bodies and what they were compressed to. Bounded: the least recently used go first. Found by a hash of their bytes,
// which are compared as well, since clients can choose bodies that have the hash of others. Of those that get no smaller only the
// hash is kept. One for each reactor and
// middleware, kept by Reactor::local; that reactor's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "penstock/protocols/http/content_coding.h"

namespace penstock {

class CompressCache {
public:
    // `seed`: one that clients cannot know, so that they cannot choose which bodies share a place.
    CompressCache(std::size_t limit_bytes, std::uint64_t seed) : limit_bytes_(limit_bytes), seed_(seed) {}
    CompressCache(const CompressCache&) = delete;
    CompressCache& operator=(const CompressCache&) = delete;

    // The compressed form, valid until the next `put`, empty where the body is better left as it is; none when nothing is
    // known of it.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view body, ContentCoding coding, int level);
    // Copies both; takes the place of one with the same hash. Keeps nothing when that is too large or there is no memory.
    void put(std::string_view body, ContentCoding coding, int level, std::string_view compressed);

    // All entries, with what it takes to keep them.
    [[nodiscard]] std::size_t used_bytes() const { return used_bytes_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

private:
    struct Key {
        std::uint64_t low;
        std::uint64_t high;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.low); }
    };
    struct Entry {
        Key key;
        ContentCoding coding;
        int level;
        std::string body;
        std::string compressed;
        [[nodiscard]] std::size_t bytes() const { return body.size() + compressed.size() + kEntryBytes; }
    };
    using Entries = std::list<Entry>;
    // The entry itself, its two links, its place in the table, and what the allocator adds.
    static constexpr std::size_t kEntryBytes = 256;

    [[nodiscard]] Key key_of(std::string_view body, ContentCoding coding, int level) const;
    void drop(Entries::iterator entry);

    const std::size_t limit_bytes_;
    const std::uint64_t seed_;
    std::size_t used_bytes_ = 0;
    Entries entries_;  // the one used last in front
    std::unordered_map<Key, Entries::iterator, KeyHash> places_;
};

}  // namespace penstock
