#include "penstock/engine/metrics.h"

namespace penstock {

ReactorStats::ReactorStats(const ReactorCounters& counters)
    : accepted(counters.accepted.get()), active(counters.active.get()), closed(counters.closed.get()),
      refused(counters.refused.get()), accept_errors(counters.accept_errors.get()),
      requests(counters.requests.get()), request_errors(counters.request_errors.get()),
      overloaded(counters.overloaded.get()), timeouts(counters.timeouts.get()), peer_resets(counters.peer_resets.get()),
      input_starved(counters.input_starved.get()), output_refused(counters.output_refused.get()),
      evicted(counters.evicted.get()), stale_events(counters.stale_events.get()), cut_by_drain(counters.cut_by_drain.get()),
      tasks_parked(counters.tasks_parked.get()), file_cache_hits(counters.file_cache_hits.get()),
      file_cache_misses(counters.file_cache_misses.get()), file_cache_evictions(counters.file_cache_evictions.get()),
      file_cache_entries(counters.file_cache_entries.get()), file_cache_bytes(counters.file_cache_bytes.get()),
      compress_cache_hits(counters.compress_cache_hits.get()),
      compress_cache_misses(counters.compress_cache_misses.get()), encoders_refused(counters.encoders_refused.get()),
      tls_handshakes(counters.tls_handshakes.get()), tls_resumed(counters.tls_resumed.get()),
      tls_failures(counters.tls_failures.get()), tls_truncated(counters.tls_truncated.get()),
      received_bytes(counters.received_bytes.get()),
      sent_bytes(counters.sent_bytes.get()), turns(counters.turns.get()) {}

ReactorStats& ReactorStats::operator+=(const ReactorStats& other) {
    accepted += other.accepted;
    active += other.active;
    closed += other.closed;
    refused += other.refused;
    accept_errors += other.accept_errors;
    requests += other.requests;
    request_errors += other.request_errors;
    overloaded += other.overloaded;
    timeouts += other.timeouts;
    peer_resets += other.peer_resets;
    input_starved += other.input_starved;
    output_refused += other.output_refused;
    evicted += other.evicted;
    stale_events += other.stale_events;
    cut_by_drain += other.cut_by_drain;
    tasks_parked += other.tasks_parked;
    file_cache_hits += other.file_cache_hits;
    file_cache_misses += other.file_cache_misses;
    file_cache_evictions += other.file_cache_evictions;
    file_cache_entries += other.file_cache_entries;
    file_cache_bytes += other.file_cache_bytes;
    compress_cache_hits += other.compress_cache_hits;
    compress_cache_misses += other.compress_cache_misses;
    encoders_refused += other.encoders_refused;
    tls_handshakes += other.tls_handshakes;
    tls_resumed += other.tls_resumed;
    tls_failures += other.tls_failures;
    tls_truncated += other.tls_truncated;
    received_bytes += other.received_bytes;
    sent_bytes += other.sent_bytes;
    turns += other.turns;
    return *this;
}

}  // namespace penstock
