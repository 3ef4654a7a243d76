#include "penstock/engine/config.h"

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "penstock/engine/timer_wheel.h"

namespace penstock {

namespace {

// What one option may be by itself, and why.
struct Range {
    const char* option;
    std::int64_t value;
    std::int64_t least;
    std::int64_t most;
    const char* reason;
};

std::optional<Error> check_counts(const Config& config);
std::optional<Error> check_sizes(const Config& config);
std::optional<Error> check_times(const Config& config);
std::optional<Error> check_contradictions(const Config& config);

constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();
// A mistyped number should not become a thousand threads or more slots than descriptors can exist.
constexpr std::int64_t kMostThreads = 1'024;
constexpr std::int64_t kMostSlots = 1 << 24;
// A cell is a cache line: 64 MiB.
constexpr std::int64_t kMostMessages = 1 << 20;
// "a:" and its line end: a head that fits a block cannot have more fields than this.
constexpr std::int64_t kMostHeaders = kIoBlockBytes / 4;
// A request line, Host and a few fields: less would refuse everybody.
constexpr std::int64_t kLeastHeadBytes = 256;
// What "GET  HTTP/1.1", its line end and the empty line leave of a block.
constexpr std::int64_t kMostTargetBytes = kIoBlockBytes - 17;

}  // namespace

Result<void> validate(const Config& config) {
    for (const auto check : {check_counts, check_sizes, check_times, check_contradictions}) {
        if (std::optional<Error> found = check(config)) {
            return *std::move(found);
        }
    }
    return {};
}

namespace {

std::optional<Error> first_outside(std::span<const Range> ranges);
template <class Number>
std::string named(const char* option, Number value);

std::optional<Error> check_counts(const Config& config) {
    return first_outside(std::array{
        Range{"reactors", config.reactors, 0, kMostThreads,
              "each is a thread, and 0 makes one per usable core"},
        Range{"connection_limit", config.connection_limit, 1, kMostSlots,
              "a reactor without connections serves nobody, and each slot is a descriptor"},
        Range{"refusal_limit", config.refusal_limit, 0, kMostSlots, "each slot is a descriptor"},
        Range{"linger_limit", config.linger_limit, 0, kMostSlots, "each is a connection's slot"},
        Range{"header_count_limit", config.header_count_limit, 1, kMostHeaders,
              "a request has a Host field, and its head must fit a block of 16384 bytes"},
        Range{"mailbox_limit", config.mailbox_limit, 1, kMostMessages,
              "the messages' places are made when the server starts, 64 bytes each"},
        Range{"offload_limit", config.offload_limit, 0, kMostMessages,
              "the replies' places are made when the server starts, 64 bytes each"},
        Range{"tls_handshake_limit", config.tls_handshake_limit, 1, kMostSlots, "at 0 nobody could connect with TLS"},
        Range{"linger_limit_bytes", config.linger_limit_bytes, 0, 1 << 30, "what lingers is thrown away"},
        Range{"offload_threads", config.offload_threads, 0, kMostThreads, "each is a thread"},
        Range{"backlog", config.backlog, 1, kAnyNumber, "a connection waits there until it is accepted"},
    });
}

std::optional<Error> check_sizes(const Config& config) {
    return first_outside(std::array{
        Range{"io_block_reserve", config.io_block_reserve, 1, kAnyNumber,
              "an answer needs a block although slow requests hold all others"},
        Range{"io_block_limit", config.io_block_limit, 3, kAnyNumber,
              "one request takes a block for its head, one for its body and one for its answer"},
        Range{"page_limit", config.page_limit, 1, kAnyNumber, "a request takes a page"},
        Range{"output_high_water_bytes", config.output_high_water_bytes, 1, kAnyNumber,
              "at 0 no request would ever be parsed"},
        Range{"head_limit_bytes", config.head_limit_bytes, kLeastHeadBytes, kIoBlockBytes,
              "a head must fit a block, and the shortest useful one has some fields"},
        Range{"body_rate_min_bytes_per_s", config.body_rate_min_bytes_per_s, 1, kAnyNumber,
              "it divides; a small one asks for nothing"},
        Range{"write_rate_min_bytes_per_s", config.write_rate_min_bytes_per_s, 1, kAnyNumber,
              "it divides; a small one asks for nothing"},
        Range{"target_limit_bytes", config.target_limit_bytes, 1, kMostTargetBytes,
              "the target must fit a block of 16384 bytes with the rest of the head"},
    });
}

std::optional<Error> check_times(const Config& config) {
    constexpr std::int64_t kMost = TimerWheel::kMaxDelayMs;
    constexpr const char* kReason =
        "a limit cannot be turned off, and the timers reach no further than three days";
    constexpr const char* kMayBeNone = "0 does not wait, and the timers reach no further than three days";
    return first_outside(std::array{
        Range{"idle_timeout_ms", config.idle_timeout_ms, 1, kMost, kReason},
        Range{"head_timeout_ms", config.head_timeout_ms, 1, kMost, kReason},
        Range{"body_timeout_ms", config.body_timeout_ms, 1, kMost, kReason},
        Range{"write_timeout_ms", config.write_timeout_ms, 1, kMost, kReason},
        Range{"tls_handshake_timeout_ms", config.tls_handshake_timeout_ms, 1, kMost, kReason},
        Range{"request_timeout_ms", config.request_timeout_ms, 0, kMost,
              "0 sets none, and the timers reach no further than three days"},
        Range{"linger_timeout_ms", config.linger_timeout_ms, 0, kMost, kMayBeNone},
        Range{"drain_timeout_ms", config.drain_timeout_ms, 0, kMost, kMayBeNone},
    });
}

// Values that are each in range and yet do not go together.
std::optional<Error> check_contradictions(const Config& config) {
    if (config.steering == Steering::receiving_cpu && !config.pin_reactors) {
        return Error{
            "steering is receiving_cpu while pin_reactors is false: a reactor that moves between CPUs "
            "cannot be found by one; set pin_reactors to true or steering to kernel_hash"};
    }
    if (std::uint64_t{config.io_block_reserve} + 2 > config.io_block_limit) {
        return Error{
            named("io_block_reserve", config.io_block_reserve) + " of " +
            named("io_block_limit", config.io_block_limit) +
            ": no two blocks are left for input, one for a head and one for a body; set the limit to " +
            std::to_string(std::uint64_t{config.io_block_reserve} + 2) + " or more"};
    }
    if (config.output_high_water_bytes > config.io_block_limit * std::uint64_t{kIoBlockBytes}) {
        return Error{named("output_high_water_bytes", config.output_high_water_bytes) + " while " +
                     named("io_block_limit", config.io_block_limit) +
                     ": one connection could take every block without reaching it; set it to " +
                     std::to_string(config.io_block_limit * std::uint64_t{kIoBlockBytes}) + " or less"};
    }
    if (config.body_limit_bytes > config.body_memory_limit_bytes) {
        return Error{named("body_limit_bytes", config.body_limit_bytes) + " while " +
                     named("body_memory_limit_bytes", config.body_memory_limit_bytes) +
                     ": a body that is allowed would never fit; set the second to the first or more"};
    }
    if (config.offload_threads == 0 && config.offload_limit > 0) {
        return Error{
            named("offload_threads", 0) + " while " + named("offload_limit", config.offload_limit) +
            ": what is offloaded would never run; set offload_threads to 1 or more, or offload_limit to 0"};
    }
    return std::nullopt;
}

std::optional<Error> first_outside(std::span<const Range> ranges) {
    for (const Range& range : ranges) {
        if (range.value >= range.least && range.value <= range.most) {
            continue;
        }
        const std::string least = std::to_string(range.least);
        const std::string allowed =
            range.most == kAnyNumber ? least + " or more" : least + " to " + std::to_string(range.most);
        return Error{named(range.option, range.value) + ": set it to " + allowed + "; " + range.reason};
    }
    return std::nullopt;
}

template <class Number>
std::string named(const char* option, Number value) {
    return std::string(option) + " is " + std::to_string(value);
}

}  // namespace

}  // namespace penstock
