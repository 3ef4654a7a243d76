#include "penstock/platform/sim/faults.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "penstock/platform/sim/abort.h"

namespace penstock::sim {

namespace {

// What can be drawn, per call. Error 0 means a count cut short.
struct Kind {
    Call call;
    std::uint16_t Ratios::*ratio;
    int error;
};

constexpr Kind kKinds[] = {
    {Call::open_listener, &Ratios::no_memory, ENOMEM},
    {Call::open_listener, &Ratios::no_descriptor, EMFILE},
    {Call::duplicate, &Ratios::no_descriptor, EMFILE},
    {Call::accept, &Ratios::would_block, EAGAIN},
    {Call::accept, &Ratios::reset, ECONNABORTED},
    {Call::accept, &Ratios::no_memory, ENOMEM},
    {Call::accept, &Ratios::no_descriptor, EMFILE},
    {Call::receive, &Ratios::short_read, 0},
    {Call::receive, &Ratios::would_block, EAGAIN},
    {Call::receive, &Ratios::reset, ECONNRESET},
    {Call::send, &Ratios::short_write, 0},
    {Call::send, &Ratios::would_block, EAGAIN},
    {Call::send, &Ratios::reset, EPIPE},
    {Call::send, &Ratios::no_memory, ENOBUFS},
    {Call::send_file, &Ratios::short_write, 0},
    {Call::send_file, &Ratios::would_block, EAGAIN},
    {Call::send_file, &Ratios::reset, EPIPE},
    {Call::send_file, &Ratios::file_error, EIO},
    {Call::poller_open, &Ratios::no_descriptor, EMFILE},
    {Call::poller_add, &Ratios::no_memory, ENOMEM},
    {Call::poller_wait, &Ratios::interrupted, EINTR},
    {Call::open_directory, &Ratios::no_descriptor, EMFILE},
    {Call::open_file, &Ratios::no_memory, ENOMEM},
    {Call::open_file, &Ratios::no_descriptor, EMFILE},
    {Call::open_file, &Ratios::file_error, EIO},
    {Call::file_info, &Ratios::file_error, EIO},
    {Call::list_directory, &Ratios::no_descriptor, EMFILE},
    {Call::list_directory, &Ratios::file_error, EIO},
    {Call::read_file, &Ratios::short_read, 0},
    {Call::read_file, &Ratios::file_error, EIO},
    {Call::create_file, &Ratios::no_memory, ENOMEM},
    {Call::create_file, &Ratios::no_descriptor, EMFILE},
    {Call::create_file, &Ratios::no_space, ENOSPC},
    {Call::create_file, &Ratios::file_error, EIO},
    {Call::write_file, &Ratios::short_write, 0},
    {Call::write_file, &Ratios::no_space, ENOSPC},
    {Call::write_file, &Ratios::file_error, EIO},
    {Call::name_file, &Ratios::no_space, ENOSPC},
    {Call::name_file, &Ratios::file_error, EIO},
};

bool moves_bytes(Call call);
bool is_fault(const Outcome& outcome);

}  // namespace

Outcome Faults::judge(const Attempt& attempt) {
    if (paused_) {
        return {};
    }
    ++calls_;
    // Every source is asked, so that each keeps its own count; the first that says anything is heard.
    const Outcome by_script = scripted(attempt);
    const Outcome by_count = counted(attempt);
    const Outcome by_replay = replayed();
    Outcome drawn;
    if (source_ == Source::seed) {
        drawn = drawn_by_ratio(attempt);
    }
    if (source_ == Source::bytes) {
        drawn = drawn_by_byte(attempt);
    }
    for (const Outcome& outcome : {by_script, by_count, by_replay, drawn}) {
        if (!is_fault(outcome)) {
            continue;
        }
        injected_.push_back({calls_, attempt.call, attempt.fd, outcome});
        return outcome;
    }
    return {};
}

Outcome Faults::scripted(const Attempt& attempt) {
    Outcome outcome;
    for (Rule& rule : rules_) {
        if (rule.call != attempt.call) {
            continue;
        }
        if (rule.fd != World::kAnyDescriptor && rule.fd != attempt.fd) {
            continue;
        }
        if (rule.connection != 0 && rule.connection != attempt.connection) {
            continue;
        }
        ++rule.seen;
        if (rule.seen >= rule.first && rule.seen <= rule.last && !is_fault(outcome)) {
            outcome = rule.outcome;
        }
    }
    return outcome;
}

Outcome Faults::counted(const Attempt& attempt) {
    if (nth_ == 0 || --nth_ > 0) {
        return {};
    }
    hit_ = true;
    hit_call_ = attempt.call;
    if (!nth_is_variant_) {
        return nth_outcome_;
    }
    const std::span<const int> errors = plausible_errors(attempt.call);
    if (variant_ < errors.size()) {
        return Outcome::fail(errors[variant_]);
    }
    return variant_ < variant_count(attempt.call) ? Outcome::at_most(1) : Outcome{};
}

Outcome Faults::replayed() const {
    const auto found = std::find_if(replayed_.begin(), replayed_.end(),
                                    [this](const Fault& fault) { return fault.number == calls_; });
    return found == replayed_.end() ? Outcome{} : found->outcome;
}

Outcome Faults::drawn_by_ratio(const Attempt& attempt) {
    for (const Kind& kind : kKinds) {
        if (kind.call != attempt.call || choose(1000) >= ratios_.*kind.ratio) {
            continue;
        }
        return drawn_outcome(kind.error, attempt);
    }
    return {};
}

Outcome Faults::drawn_by_byte(const Attempt& attempt) {
    const auto applies = [&attempt](const Kind& kind) {
        return kind.call == attempt.call;
    };
    const auto count = std::count_if(std::begin(kKinds), std::end(kKinds), applies);
    if (count == 0 || next_byte_ == bytes_.size()) {
        return {};
    }
    const std::uint8_t byte = bytes_[next_byte_++];
    if (byte < 128) {
        return {};
    }
    auto index = (byte - 128) % count;
    for (const Kind& kind : kKinds) {
        if (applies(kind) && index-- == 0) {
            return drawn_outcome(kind.error, attempt);
        }
    }
    return {};
}

Outcome Faults::drawn_outcome(int error, const Attempt& attempt) {
    if (error != 0) {
        return Outcome::fail(error);
    }
    // One byte cannot be cut.
    if (attempt.bytes < 2) {
        return {};
    }
    return Outcome::at_most(1 + choose(attempt.bytes - 1));
}

std::uint64_t Faults::choose(std::uint64_t limit) {
    if (limit < 2) {
        return 0;
    }
    if (source_ == Source::seed) {
        return next_random() % limit;
    }
    std::uint64_t value = 0;
    for (std::uint64_t reach = 1; reach < limit && next_byte_ < bytes_.size(); reach <<= 8) {
        value = value << 8 | bytes_[next_byte_++];
        if (reach > std::numeric_limits<std::uint64_t>::max() >> 8) {
            break;
        }
    }
    return value % limit;
}

// splitmix64 (Steele, Lea, Flood, 2014): its whole state is one word, and any seed is a good one.
std::uint64_t Faults::next_random() {
    random_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = random_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
}

void Faults::add_rule(Call call, int fd, std::uint64_t connection, std::uint64_t nth, Outcome outcome,
                      std::uint64_t times) {
    require(nth > 0, "script: calls are counted from 1");
    require(!plausible_errors(call).empty(), "script: this call cannot fail");
    require(outcome.most == Outcome::kNoLimit || moves_bytes(call), "script: this call moves no bytes");
    if (times == 0) {
        return;
    }
    rules_.push_back({call, fd, connection, nth, nth + (times - 1), 0, outcome});
}

void Faults::fail_nth(std::uint64_t nth, Outcome outcome) {
    require(nth > 0, "fail_nth: calls are counted from 1");
    nth_ = nth;
    nth_outcome_ = outcome;
    nth_is_variant_ = false;
    hit_ = false;
}

void Faults::fail_nth_variant(std::uint64_t nth, std::size_t variant) {
    fail_nth(nth, {});
    nth_is_variant_ = true;
    variant_ = variant;
}

void Faults::seed(std::uint64_t seed, const Ratios& ratios) {
    source_ = Source::seed;
    first_seed_ = seed;
    random_ = seed;
    ratios_ = ratios;
}

void Faults::choose_from(std::span<const std::uint8_t> bytes) {
    source_ = Source::bytes;
    bytes_.assign(bytes.begin(), bytes.end());
    next_byte_ = 0;
}

std::size_t Faults::variant_count(Call call) {
    return plausible_errors(call).size() + (moves_bytes(call) ? 1 : 0);
}

std::string Faults::report() const {
    std::string text;
    if (source_ == Source::seed) {
        text += "seed " + std::to_string(first_seed_) + "\n";
    }
    if (source_ == Source::bytes) {
        text += std::to_string(next_byte_) + " of " + std::to_string(bytes_.size()) + " bytes used\n";
    }
    for (const Fault& fault : injected_) {
        text += "call " + std::to_string(fault.number) + ", " + to_string(fault.call);
        if (fault.fd >= 0) {
            text += ", descriptor " + std::to_string(fault.fd);
        }
        text += fault.outcome.error != 0 ? ": " + std::generic_category().message(fault.outcome.error)
                                         : ": at most " + std::to_string(fault.outcome.most) + " bytes";
        text += '\n';
    }
    return text;
}

namespace {

bool moves_bytes(Call call) {
    return call == Call::receive || call == Call::send || call == Call::send_file || call == Call::read_file ||
           call == Call::write_file;
}

bool is_fault(const Outcome& outcome) {
    return outcome.error != 0 || outcome.most != Outcome::kNoLimit;
}

}  // namespace

}  // namespace penstock::sim
