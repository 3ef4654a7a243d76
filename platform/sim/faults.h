// Internal.
// Decides, for each platform call that can fail, whether it does: by script, by count, by replay, or by
// drawing from a seed or from bytes. Owned by the Kernel; its thread alone. It does not carry out what
// it decides: each call does.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/platform/sim/world.h"

namespace penstock::sim {

// The call to be judged. `connection` is 0 where there is none; `bytes` is how many would move.
struct Attempt {
    Call call;
    int fd = -1;
    std::uint64_t connection = 0;
    std::uint64_t bytes = 0;
};

class Faults {
public:
    [[nodiscard]] Outcome judge(const Attempt& attempt);

    // fd -1 and connection 0 mean any.
    void add_rule(Call call, int fd, std::uint64_t connection, std::uint64_t nth, Outcome outcome,
                  std::uint64_t times);
    void fail_nth(std::uint64_t nth, Outcome outcome);
    // The variant-th of `variant_count(call)` outcomes, for whichever call it turns out to be.
    void fail_nth_variant(std::uint64_t nth, std::size_t variant);
    void seed(std::uint64_t seed, const Ratios& ratios);
    void choose_from(std::span<const std::uint8_t> bytes);
    void replay(std::span<const Fault> faults) { replayed_.assign(faults.begin(), faults.end()); }
    void set_paused(bool paused) { paused_ = paused; }

    [[nodiscard]] std::uint64_t choose(std::uint64_t limit);
    [[nodiscard]] bool hit() const { return hit_; }
    // The call that was hit. Only when hit().
    [[nodiscard]] Call hit_call() const { return hit_call_; }
    [[nodiscard]] static std::size_t variant_count(Call call);
    [[nodiscard]] const std::vector<Fault>& injected() const { return injected_; }
    [[nodiscard]] std::string report() const;

private:
    enum class Source : std::uint8_t { none, seed, bytes };

    struct Rule {
        Call call;
        int fd;
        std::uint64_t connection;
        std::uint64_t first;
        std::uint64_t last;
        std::uint64_t seen;
        Outcome outcome;
    };

    [[nodiscard]] Outcome scripted(const Attempt& attempt);
    [[nodiscard]] Outcome counted(const Attempt& attempt);
    [[nodiscard]] Outcome replayed() const;
    [[nodiscard]] Outcome drawn_by_ratio(const Attempt& attempt);
    [[nodiscard]] Outcome drawn_by_byte(const Attempt& attempt);
    [[nodiscard]] Outcome drawn_outcome(int error, const Attempt& attempt);
    [[nodiscard]] std::uint64_t next_random();

    std::vector<Rule> rules_;
    std::uint64_t calls_ = 0;  // calls judged so far
    bool paused_ = false;

    std::uint64_t nth_ = 0;  // calls left until the counted one; 0: none is armed
    Outcome nth_outcome_;
    bool nth_is_variant_ = false;
    std::size_t variant_ = 0;
    bool hit_ = false;
    Call hit_call_ = Call::receive;

    Source source_ = Source::none;
    std::uint64_t first_seed_ = 0;
    std::uint64_t random_ = 0;
    Ratios ratios_;
    std::vector<std::uint8_t> bytes_;
    std::size_t next_byte_ = 0;

    std::vector<Fault> replayed_;
    std::vector<Fault> injected_;
};

}  // namespace penstock::sim
