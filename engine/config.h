// Public.
// Every limit of the engine, each with its reason. `Config` is what a user may set; the constants below
// it are fixed when the library is built. Values are checked by `validate` when a server starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "penstock/platform/error.h"

namespace penstock {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

// Receives whole lines without a newline. Called from any reactor's thread, so it must be thread-safe,
// and it must not block: it runs inside a turn of the loop.
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Who chooses the reactor of a new connection.
enum class Steering : std::uint8_t {
    kernel_hash,    // by the hash of addresses and ports: even in the large
    receiving_cpu,  // the reactor with the number of the CPU that took the packet; use with `pin_reactors`
};

struct Config {
    // Threads, each with its own socket, loop and memory. 0: one per usable core.
    unsigned reactors = 0;
    // Reactor i stays on the i-th usable core.
    bool pin_reactors = false;
    Steering steering = Steering::kernel_hash;

    // Open connections per reactor; above it a client gets 503 and is closed. 10,000 slots of 128 bytes are
    // 1.3 MB, so the default costs nothing that an idle server would miss.
    std::uint32_t connection_limit = 10'000;
    // Connections above the limit that may be open at once just to be told 503. Beyond it they are closed.
    std::uint32_t refusal_limit = 64;

    // 16 KiB blocks leased to connections at once per reactor, for input and output together: 64 MiB.
    // An idle connection holds none.
    std::uint32_t io_block_limit = 4'096;
    // Of those, how many are kept back for output when input has taken the rest: an answer must find a
    // block although a thousand slow requests hold theirs.
    std::uint32_t io_block_reserve = 512;
    // 4 KiB pages of requests under way per reactor: 64 MiB.
    std::uint32_t page_limit = 16'384;
    // Free blocks and pages that a pool keeps for reuse; above it they go back to the allocator. Covers the
    // blocks that a busy reactor turns over in one turn.
    std::uint32_t free_block_limit = 64;
    // Bytes of request bodies held in memory at once per reactor, for handlers that take the body whole.
    std::uint64_t body_memory_limit_bytes = 256ull << 20;
    // Memory of encoders at once per reactor, for responses that are compressed while they leave. Each is charged what its
    // coding and level may take, 0.3 to 7 MB; what finds no room leaves in the next coding that its client takes, or as it
    // is. 0: nothing is compressed.
    std::uint64_t encoder_memory_limit_bytes = 64 << 20;
    // Output of one connection that is not yet sent; above it no further request of it is parsed. Four blocks
    // keep a socket busy between two turns.
    std::uint32_t output_high_water_bytes = 64 << 10;

    // A connection between requests. RFC 9112 §9.5 lets a server close at any time; 60 s suits browsers.
    std::uint32_t idle_timeout_ms = 60'000;
    // From the first byte of a head to its end: a head is a few packets.
    std::uint32_t head_timeout_ms = 10'000;
    // From the end of the head to the end of the body.
    std::uint32_t body_timeout_ms = 30'000;
    // A body may take that time, and a second more for each so many bytes that have come: a client that is merely slow is
    // not cut, one that sends a byte now and then is. Twice the speed of a modem.
    std::uint32_t body_rate_min_bytes_per_s = 10'000;
    // Without any progress while output waits for the peer.
    std::uint32_t write_timeout_ms = 30'000;
    // Each so many bytes that the peer takes put the end of that time off by a second, up to the whole of it: a peer on a
    // modem passes, one that takes a byte now and then to hold what waits for it does not.
    std::uint32_t write_rate_min_bytes_per_s = 1'000;
    // From the first byte of a request to the end of its answer's way into the output. 0: none, since a download or a stream
    // of events may last for as long as it moves, which the limits above watch over. Set it for routes that must not.
    std::uint32_t request_timeout_ms = 0;
    // How long, and how many bytes, a connection that was refused or told to close is read and thrown away so
    // that its last answer arrives before a reset would erase it (RFC 9112 §9.6).
    std::uint32_t linger_timeout_ms = 2'000;
    std::uint32_t linger_limit_bytes = 1 << 20;
    // Connections that linger at once per reactor; above it they are closed at once.
    std::uint32_t linger_limit = 256;

    // From a connection's beginning to the end of its TLS handshake: a few round trips.
    std::uint32_t tls_handshake_timeout_ms = 10'000;
    // TLS handshakes under way at once per reactor; above it the oldest is broken off. One takes up to 70 KB, and a good one is over
    // in a few round trips.
    std::uint32_t tls_handshake_limit = 1'024;

    // A request head, request line and fields, must fit a block, of which this may be less. Real ones have 500 to 2,000
    // bytes, and cookies may come to 8,000.
    std::uint32_t head_limit_bytes = 16 << 10;
    // Fields of a head; trailers of a chunked body have the same limit. Browsers send about 20.
    std::uint32_t header_count_limit = 100;
    // Octets of the request target: RFC 9112 §3 recommends to take at least 8,000.
    std::uint32_t target_limit_bytes = 8'000;
    // Bytes of a request body that a handler may be given.
    std::uint64_t body_limit_bytes = 1 << 20;
    // Requests that one connection may bring before it is told to close. 0: any number, since nothing grows with it. Set it
    // where long-lived clients should spread anew over reactors or servers now and then.
    std::uint32_t requests_per_connection_limit = 0;

    // Messages waiting in a reactor's mailbox; `post` returns false above it.
    std::uint32_t mailbox_limit = 4'096;
    // Threads for work that blocks, shared by the reactors, and how many pieces of work each reactor may have
    // there; above it `co_await offload(…)` throws Overloaded.
    unsigned offload_threads = 2;
    std::uint32_t offload_limit = 256;

    // Connections that the kernel may queue before they are accepted, per reactor; the system caps it.
    int backlog = 4'096;
    // From `stop` to the end: what is still running then is cut.
    std::uint32_t drain_timeout_ms = 10'000;

    // Where lines of log go, among them what a handler did wrong. Empty: nowhere (but see Server::run).
    LogSink log{};
};

// The first value that contradicts another or lies outside its range, named with what to set instead.
[[nodiscard]] Result<void> validate(const Config& config);

// ---- Fixed sizes -------------------------------------------------------------------------------------

// One receive takes at most a block. 16 KiB is also TLS's record and the largest request head.
inline constexpr std::size_t kIoBlockBytes = 16 << 10;
// An exchange starts in one page: parser, request, response and a small coroutine frame fit.
inline constexpr std::size_t kPageBytes = 4 << 10;
// Receives by one connection in one turn before others get theirs (64 KiB of input).
inline constexpr int kReadsPerTurn = 4;
// Sends by one connection in one turn while the kernel takes everything, likewise.
inline constexpr int kSendsPerTurn = 8;
// Connections accepted from one listener in one turn: enough to keep up with a burst of connects, few
// enough that open connections wait for well under a millisecond.
inline constexpr int kAcceptsPerTurn = 64;
// Requests of one connection answered in one turn: most of a block of the smallest ones, after which others wait no
// longer than for as many requests of their own.
inline constexpr int kRequestsPerTurn = 512;
// Callbacks of one request run in one turn: those that never wait must not keep others from theirs.
inline constexpr int kCallbacksPerTurn = 64;
// Bytes one sendfile call moves before other connections get their turn.
inline constexpr std::size_t kFileSliceBytes = 256 << 10;
// What of a file is read at a time on the offload pool before sendfile may have it, when the disk has to be waited for: a disk
// gives that in a few milliseconds, and the pages stay in memory for as long as it takes to send them.
inline constexpr std::size_t kFileWarmBytes = 1 << 20;
// Files that one reactor has read like this at once. More would only make the disk seek, and leave nothing of the pool to others.
inline constexpr std::uint32_t kFilesWarmedAtOnce = 32;
// A body up to here is copied behind its head into the output block; a larger one that need not be copied goes as a
// piece of its own. Measured (perf/run static), copying saves a fiftieth of a request for 1 KB, and nothing for 10 KB.
inline constexpr std::size_t kCopyBodyLimitBytes = 4 << 10;
// A body in memory up to here is compressed at once, which lets its length be told and the outcome be kept. At 50 to 100 MB/s
// that takes about a millisecond, the longest that others should wait for it.
inline constexpr std::size_t kEncodeAtOnceLimitBytes = 64 << 10;
// What is compressed of a larger one, or read of a file for that, before others get their turn.
inline constexpr std::size_t kEncodeStepBytes = 16 << 10;
// Bytes that the decoder of one request's body gives in one turn to a handler that reads on and on: a few milliseconds, for
// which 16 KiB of input can be enough.
inline constexpr std::size_t kDecodedBytesPerTurn = 1 << 20;
// Requests sent ahead have to do with as much for all of them together, after which the next one waits for the next turn. There
// a byte that is compressed counts for so many that are decoded, about what it takes longer: 64 KiB are a turn's worth.
inline constexpr std::size_t kEncodingCost = 16;
// Ranges that one request may ask of a file; with more, the field is ignored and the file sent whole. Players and those who
// resume a download ask for one, readers of PDF files for a handful; hundreds are an attack (RFC 9110 §17.15). The work of
// merging grows with the square.
inline constexpr std::size_t kRangeLimit = 16;
// Names and values that one response may set: a head must fit an output block.
inline constexpr std::size_t kResponseFieldsLimitBytes = 12 << 10;
// What a log line tells of a request, some of which its client may have chosen.
inline constexpr std::size_t kLogTextLimitBytes = 500;
// Mailbox messages run in one turn.
inline constexpr std::size_t kMessagesPerTurn = 256;
// How long accepting rests after EMFILE or ENOMEM. Short enough to go unnoticed, long enough not to spin.
inline constexpr std::uint32_t kAcceptPauseMs = 50;
// Slots made at once: 8 KiB of them, since above 14 KiB jemalloc adds a page to each piece of memory, which would be 32
// bytes for each connection. An empty slab above the first few goes back.
inline constexpr std::uint32_t kSlotsPerSlab = 64;
inline constexpr std::uint32_t kFreeSlabLimit = 4;
// Listeners of one server: a turn asks each of them whether clients wait.
inline constexpr std::size_t kListenerLimit = 16;
// When input blocks are spent: a peer that has taken nothing of its output for so long gives way before a request that
// is still arriving does. A second is many round trips.
inline constexpr std::uint32_t kStuckOutputMs = 1'000;
// How long a connection waits for an input block before its client gets 503: longer than a burst takes to be served,
// shorter than a person waits.
inline constexpr std::uint32_t kStarvedTimeoutMs = 2'000;
// A file that nothing is kept of is read up to this size, since what fits a block of output leaves with its head in one
// send; above it sendfile spares the copies.
inline constexpr std::size_t kReadFileLimitBytes = 16 << 10;
// A served file up to this size is kept with its content, and leaves in one send with its head; larger ones are kept by an open
// descriptor, for sendfile. Measured (perf/run static), copying 100 KB takes a seventh less CPU time than sendfile, 1 MB two thirds more.
inline constexpr std::size_t kCachedFileLimitBytes = 128 << 10;
// Paths that one reactor looks up on the offload pool at once for each directory that is served; further ones queue.
inline constexpr std::uint32_t kFilesLoadedAtOnce = 32;
// Entries of a directory that `static_files` lists: each is a system call on the offload pool, so all of them take
// a millisecond or two, and nobody reads further down. Where every letter has to be escaped, the page is 3 MB.
inline constexpr std::size_t kListingLimit = 1'000;
// Directories that one reactor has listed at once for each directory that is served: each listing takes the pool a millisecond
// or two, and up to 3 MB until it is sent.
inline constexpr std::uint32_t kListingsAtOnce = 16;
// Steps of TLS handshakes in one turn, each of which takes 50 to 400 microseconds: those who are connected wait for about a
// millisecond, however many come.
inline constexpr int kHandshakeStepsPerTurn = 8;
// Certificates of one listener: each keeps 10 to 50 KB.
inline constexpr std::size_t kTlsCertificateLimit = 1'000;
// Records that wait for the socket; above it nothing more is received, lest a peer have us answer without end (key updates, RFC 8446
// §4.6.3). What the protocol sends comes to less: it is only encrypted when nothing waits.
inline constexpr std::size_t kTlsUnsentLimitBytes = 80 << 10;
// Early data (RFC 8446 §4.2.10) that is skipped for a client that sends some though it was never told that it may: so much is usual
// where servers take it.
inline constexpr std::uint32_t kTlsEarlyDataLimitBytes = 64 << 10;
// Turns that the closed list may take before the rest waits for the next: destructors may close others.
inline constexpr int kClosePasses = 16;

}  // namespace penstock
