// Public.
// Counters with one writer and any number of readers: the reactor adds without a locked instruction, others read
// what may be a moment old.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

class Counter {
public:
    void add(std::uint64_t amount = 1) {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    void subtract(std::uint64_t amount = 1) {
        value_.store(value_.load(std::memory_order_relaxed) - amount, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

// What one reactor counts. Written by its thread, read by any.
struct ReactorCounters {
    Counter accepted;            // connections taken from a listener
    Counter active;              // open now, refused ones not counted
    Counter closed;              // ended for whatever reason
    Counter refused;             // turned away at the connection limit
    Counter accept_errors;       // accepting or watching failed for want of descriptors or memory
    Counter requests;            // requests that a handler or the server has dealt with
    Counter request_errors;      // of those, refused by the protocol before a handler ran
    Counter overloaded;          // functions of the program, mostly handlers, that ended by throwing Overloaded
    Counter timeouts;            // connections ended by a deadline
    Counter peer_resets;         // connections ended by an error of the socket
    Counter input_starved;       // times a connection had to wait for an input block
    Counter output_refused;      // connections closed because no block or page was left for their answer
    Counter evicted;             // connections ended because memory was short: stuck output, or arriving for longest
    Counter stale_events;        // events for slots that had been given back
    Counter cut_by_drain;        // connections still busy when the drain's time was up
    Counter tasks_parked;        // exchanges that wait for an offloaded function after their peer left, now
    Counter file_cache_hits;       // files and other paths below served directories that were known
    Counter file_cache_misses;     // and that had to be looked at
    Counter file_cache_evictions;  // given up for others
    Counter file_cache_entries;    // known now
    Counter file_cache_bytes;      // memory that they take now, those still being sent included
    Counter compress_cache_hits;    // bodies whose compressed form was there already
    Counter compress_cache_misses;  // those that had to be compressed, where there is a cache
    Counter encoders_refused;    // times an encoder of a response found no memory
    Counter tls_handshakes;      // that were completed
    Counter tls_resumed;         // those of them that resumed a session
    Counter tls_failures;        // connections that ended before it was: refused, broken off, out of time, or silent
    Counter tls_truncated;       // connections whose client ended them without a close_notify
    Counter received_bytes;
    Counter sent_bytes;
    Counter turns;               // of the loop
};

// A copy of the above, of one reactor or added up.
struct ReactorStats {
    std::uint64_t accepted = 0, active = 0, closed = 0, refused = 0, accept_errors = 0;
    std::uint64_t requests = 0, request_errors = 0, overloaded = 0, timeouts = 0, peer_resets = 0;
    std::uint64_t input_starved = 0, output_refused = 0, evicted = 0, stale_events = 0, cut_by_drain = 0, tasks_parked = 0;
    std::uint64_t file_cache_hits = 0, file_cache_misses = 0, file_cache_evictions = 0, file_cache_entries = 0;
    std::uint64_t file_cache_bytes = 0, compress_cache_hits = 0, compress_cache_misses = 0, encoders_refused = 0;
    std::uint64_t tls_handshakes = 0, tls_resumed = 0, tls_failures = 0, tls_truncated = 0;
    std::uint64_t received_bytes = 0, sent_bytes = 0, turns = 0;

    ReactorStats() = default;
    explicit ReactorStats(const ReactorCounters& counters);
    ReactorStats& operator+=(const ReactorStats& other);
};

}  // namespace penstock
