#include "penstock/engine/timer_wheel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "support/seed.h"

namespace penstock {

namespace {

std::vector<TimerNode*> pop_all(TimerWheel& wheel) {
    std::vector<TimerNode*> nodes;
    while (TimerNode* node = wheel.pop_due()) {
        nodes.push_back(node);
    }
    return nodes;
}

// How long the node takes to fire when time moves as the wheel asks for, and the wake-ups before that.
std::uint32_t ticks_until_fired(TimerWheel& wheel, TimerNode& node, int* wakes) {
    const std::uint32_t start = wheel.now_ms();
    for (*wakes = 0; *wakes < 20; ++*wakes) {
        const int timeout = wheel.next_timeout_ms();
        REQUIRE(timeout >= 0);
        wheel.advance(wheel.now_ms() + static_cast<std::uint32_t>(timeout));
        if (wheel.pop_due() == &node) {
            return wheel.now_ms() - start;
        }
    }
    FAIL("a node needs more than a wake-up per level");
    return 0;
}

}  // namespace

TEST_CASE("TimerWheel: an empty one never has anything to do") {
    TimerWheel wheel(5);
    CHECK(wheel.next_timeout_ms() == -1);
    CHECK(wheel.size() == 0);
    wheel.advance(5);
    wheel.advance(1'000'000);
    CHECK(wheel.now_ms() == 1'000'000);
    CHECK(wheel.pop_due() == nullptr);
    TimerNode node;
    wheel.cancel(node);
    CHECK(wheel.size() == 0);
}

TEST_CASE("TimerWheel: cleared, it forgets every node, also those that are due") {
    TimerWheel wheel(0);
    std::array<TimerNode, 6> nodes;
    wheel.schedule(nodes[0], 1);
    wheel.schedule(nodes[1], 1);
    wheel.schedule(nodes[2], 2);
    wheel.schedule(nodes[3], 2);
    wheel.schedule(nodes[4], 5'000);
    wheel.schedule(nodes[5], TimerWheel::kMaxDelayMs);
    wheel.advance(1);
    REQUIRE(wheel.pop_due() != nullptr);
    wheel.clear();
    CHECK(wheel.size() == 0);
    CHECK(wheel.next_timeout_ms() == -1);
    for (const TimerNode& node : nodes) {
        CHECK_FALSE(node.linked());
        CHECK(node.next == nullptr);
    }
    wheel.schedule(nodes[3], 3);
    wheel.advance(TimerWheel::kMaxDelayMs);
    CHECK(pop_all(wheel) == std::vector{&nodes[3]});
}

TEST_CASE("TimerWheel: every delay near a power of 64, from aligned and other times and over the wrap") {
    for (const std::uint32_t start :
         {0u, 1u, 63u, 64u, 4095u, 4096u, 0xFFFF'FFFFu, 0xFFFF'FFC0u, 0xFF00'0000u}) {
        for (int level = 0; level <= 4; ++level) {
            for (const int offset : {-1, 0, 1}) {
                const std::uint32_t delay = (1u << (6 * level)) + static_cast<std::uint32_t>(offset);
                TimerWheel wheel(start);
                TimerNode node;
                wheel.schedule(node, start + delay);
                CHECK(node.linked());
                CHECK(wheel.size() == 1);
                int wakes = 0;
                CHECK(ticks_until_fired(wheel, node, &wakes) == delay);
                CHECK(wakes <= level + 1);
                CHECK(!node.linked());
                CHECK(wheel.size() == 0);
                CHECK(wheel.next_timeout_ms() == -1);
            }
        }
    }
}

TEST_CASE("TimerWheel: nothing fires a millisecond early, and one jump over the deadline is enough") {
    for (const std::uint32_t delay : {1u, 63u, 64u, 100u, 5'000u, 300'000u, TimerWheel::kMaxDelayMs}) {
        TimerWheel wheel(0xFFFF'FF00u);
        TimerNode node;
        wheel.schedule(node, wheel.now_ms() + delay);
        wheel.advance(wheel.now_ms() + delay - 1);
        CHECK(wheel.pop_due() == nullptr);
        CHECK(wheel.next_timeout_ms() == 1);
        wheel.advance(wheel.now_ms() + 100'000);
        CHECK(wheel.pop_due() == &node);
    }
}

TEST_CASE("TimerWheel: the past and the present fire at the next advance, not before") {
    TimerWheel wheel(1000);
    TimerNode past;
    TimerNode present;
    TimerNode long_past;
    wheel.schedule(past, 999);
    wheel.schedule(present, 1000);
    wheel.schedule(long_past, 1000u - 0x7FFF'FFFFu);
    CHECK(wheel.next_timeout_ms() == 0);
    CHECK(wheel.pop_due() == nullptr);
    wheel.advance(1000);
    CHECK(wheel.next_timeout_ms() == 0);
    CHECK(pop_all(wheel).size() == 3);
    CHECK(wheel.next_timeout_ms() == -1);
}

TEST_CASE("TimerWheel: far deadlines are cut, and fire then") {
    for (const std::uint32_t delay : {TimerWheel::kMaxDelayMs, TimerWheel::kMaxDelayMs + 1, 0x7FFF'FFFFu}) {
        TimerWheel wheel(77);
        TimerNode node;
        wheel.schedule(node, 77 + delay);
        wheel.advance(77 + TimerWheel::kMaxDelayMs - 1);
        CHECK(wheel.pop_due() == nullptr);
        wheel.advance(77 + TimerWheel::kMaxDelayMs);
        CHECK(wheel.pop_due() == &node);
    }
}

TEST_CASE("TimerWheel: a linked node that is moved far is neither early nor lost") {
    TimerWheel wheel(0);
    TimerNode node;
    wheel.schedule(node, 100);
    wheel.schedule(node, 0x7FFF'0000u);
    CHECK(wheel.size() == 1);
    wheel.advance(TimerWheel::kMaxDelayMs - 1);
    CHECK(wheel.pop_due() == nullptr);
    wheel.advance(TimerWheel::kMaxDelayMs);
    CHECK(wheel.pop_due() == &node);
}

TEST_CASE("TimerWheel: moving later leaves the node where it hangs, moving earlier links it anew") {
    TimerWheel wheel(0);
    TimerNode node;
    wheel.schedule(node, 50);
    wheel.schedule(node, 5000);
    CHECK(node.linked_for == 50);
    CHECK(node.deadline == 5000);
    CHECK(wheel.next_timeout_ms() == 50);
    wheel.advance(50);
    CHECK(node.linked_for == 5000);
    CHECK(wheel.next_timeout_ms() > 0);
    CHECK(wheel.pop_due() == nullptr);
    wheel.schedule(node, 60);
    CHECK(node.linked_for == 60);
    CHECK(wheel.next_timeout_ms() == 10);
    wheel.schedule(node, 40);
    CHECK(wheel.next_timeout_ms() == 0);
    wheel.advance(50);
    CHECK(wheel.pop_due() == &node);
    CHECK(wheel.size() == 0);
}

TEST_CASE("TimerWheel: a slot that is emptied by cancelling makes no wake-up") {
    TimerWheel wheel(0);
    std::array<TimerNode, 3> nodes;
    for (TimerNode& node : nodes) {
        wheel.schedule(node, 70'000);
    }
    wheel.cancel(nodes[1]);
    wheel.cancel(nodes[2]);
    CHECK(wheel.next_timeout_ms() > 0);
    wheel.cancel(nodes[0]);
    wheel.cancel(nodes[0]);
    CHECK(wheel.size() == 0);
    CHECK(wheel.next_timeout_ms() == -1);
}

TEST_CASE("TimerWheel: what comes due in one advance comes in the order of its times") {
    TimerWheel wheel(0xFFFF'FFF0u);
    std::array<TimerNode, 300> nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto delay = static_cast<std::uint32_t>(i * 7919 % 300 * 37);
        wheel.schedule(nodes[i], wheel.now_ms() + delay / 2);
        wheel.schedule(nodes[i], wheel.now_ms() + delay);
    }
    wheel.schedule(nodes[299], wheel.now_ms() + 20'000);
    const std::uint32_t start = wheel.now_ms();
    wheel.advance(start + 30'000);
    std::uint32_t last = 0;
    for (const TimerNode* node : pop_all(wheel)) {
        CHECK(node->deadline - start >= last);
        last = node->deadline - start;
    }
    CHECK(last == 20'000);
}

TEST_CASE("TimerWheel: a handler cancels and moves nodes that are due with its own") {
    TimerWheel wheel(0);
    std::array<TimerNode, 5> nodes;
    for (TimerNode& node : nodes) {
        wheel.schedule(node, 10);
    }
    wheel.advance(10);
    TimerNode* first = wheel.pop_due();
    REQUIRE(first != nullptr);
    std::vector<TimerNode*> others;
    for (TimerNode& node : nodes) {
        if (&node != first) {
            others.push_back(&node);
        }
    }
    wheel.cancel(*others[0]);
    wheel.schedule(*others[1], 500);
    wheel.schedule(*others[2], 3);
    wheel.schedule(*first, 10);
    CHECK(wheel.next_timeout_ms() == 0);

    const std::vector<TimerNode*> popped = pop_all(wheel);
    const std::set<TimerNode*> now_due(popped.begin(), popped.end());
    CHECK(now_due == std::set<TimerNode*>{others[2], others[3]});
    CHECK(wheel.size() == 2);
    wheel.advance(10);
    CHECK(wheel.pop_due() == first);
    wheel.advance(499);
    CHECK(wheel.pop_due() == nullptr);
    wheel.advance(500);
    CHECK(wheel.pop_due() == others[1]);
}

TEST_CASE("TimerWheel: nodes not yet popped stay due over further advances") {
    TimerWheel wheel(0);
    TimerNode first;
    TimerNode second;
    wheel.schedule(first, 1);
    wheel.schedule(second, 2);
    wheel.advance(1);
    wheel.advance(2);
    CHECK(wheel.size() == 2);
    CHECK(wheel.pop_due() == &first);
    CHECK(wheel.pop_due() == &second);
}

TEST_CASE("TimerWheel: after a jump of 46 days everything is due") {
    TimerWheel wheel(1);
    std::array<TimerNode, 6> nodes;
    std::uint32_t delay = 1;
    for (TimerNode& node : nodes) {
        wheel.schedule(node, 1 + delay);
        delay *= 40;
    }
    wheel.advance(1 + 0xF000'0000u);
    CHECK(pop_all(wheel).size() == nodes.size());
    CHECK(wheel.next_timeout_ms() == -1);
}

TEST_CASE("TimerWheel: the time until its nearest slot stays exact while time passes and nodes come and go") {
    TimerWheel wheel(1'000);
    TimerNode near;
    TimerNode far;
    wheel.schedule(far, 1'050);
    CHECK(wheel.next_timeout_ms() == 50);
    wheel.schedule(near, 1'020);
    CHECK(wheel.next_timeout_ms() == 20);
    CHECK_FALSE(wheel.advance(1'007));
    CHECK(wheel.next_timeout_ms() == 13);
    wheel.cancel(near);
    CHECK(wheel.next_timeout_ms() == 43);  // not 13: its slot is empty
    wheel.schedule(near, 1'008);
    wheel.cancel(near);
    wheel.advance(1'049);  // over the time at which that one would have come
    CHECK(wheel.pop_due() == nullptr);
    CHECK(wheel.next_timeout_ms() == 1);
    CHECK(wheel.advance(1'050));
    CHECK(wheel.next_timeout_ms() == 0);
    CHECK(pop_all(wheel) == std::vector{&far});
    CHECK(wheel.next_timeout_ms() == -1);
    CHECK_FALSE(wheel.advance(2'000'000));
    wheel.schedule(near, 2'000'005);
    CHECK(wheel.next_timeout_ms() == 5);
    wheel.cancel(near);
}

TEST_CASE("TimerWheel: empty for longer than its clock goes round, it keeps the next deadline all the same") {
    TimerWheel wheel(0);
    for (std::uint32_t now = 0, steps = 0; steps < 20; ++steps) {
        now += 0x3000'0000u;
        wheel.advance(now);
        REQUIRE(wheel.next_timeout_ms() == -1);
    }
    TimerNode node;
    wheel.schedule(node, wheel.now_ms() + 40);
    const int timeout = wheel.next_timeout_ms();
    CHECK((timeout >= 0 && timeout <= 40));
    wheel.advance(wheel.now_ms() + 39);
    CHECK(wheel.pop_due() == nullptr);
    wheel.advance(wheel.now_ms() + 1);
    CHECK(wheel.pop_due() == &node);
}

namespace {

// The wheel beside the plainest thing that does the same: a multimap ordered by 64-bit time.
class TimerModel {
public:
    TimerModel(std::uint64_t seed, std::uint64_t start, int largest_step_bits)
        : random_(seed), largest_step_bits_(largest_step_bits), now_(start), wheel_(low(start)) {}

    void step() {
        const auto chosen = static_cast<std::size_t>(random_() % kNodes);
        switch (random_() % 8) {
            case 0: cancel(chosen); break;
            case 1: advance(random_magnitude(largest_step_bits_)); break;
            case 2: advance(static_cast<std::uint64_t>(std::max(wheel_.next_timeout_ms(), 0))); break;
            default: schedule(chosen); break;
        }
        // Not always: what the wheel keeps about its nearest slot must stay right while nobody asks for it.
        if (random_() % 4 != 0) {
            check_timeout();
        }
    }

    void clear() {
        for (std::size_t i = 0; i < kNodes; ++i) {
            cancel(i);
        }
        CHECK(wheel_.next_timeout_ms() == -1);
    }

    [[nodiscard]] std::size_t fired() const { return fired_; }
    [[nodiscard]] std::uint64_t now() const { return now_; }

private:
    static constexpr std::size_t kNodes = 60;

    static std::uint32_t low(std::uint64_t time) { return static_cast<std::uint32_t>(time); }

    std::uint64_t random_magnitude(int bits) {
        return random_() % (std::uint64_t{1} << (random_() % static_cast<std::uint64_t>(bits + 1)));
    }

    void forget(std::size_t i) {
        if (entries_[i].has_value()) {
            deadlines_.erase(*entries_[i]);
            entries_[i].reset();
        }
    }

    void cancel(std::size_t i) {
        wheel_.cancel(nodes_[i]);
        forget(i);
        CHECK(!nodes_[i].linked());
    }

    void schedule(std::size_t i) {
        const bool past = random_() % 10 == 0;
        const std::uint64_t deadline = past ? now_ - random_magnitude(20) : now_ + random_magnitude(28);
        wheel_.schedule(nodes_[i], low(deadline));
        forget(i);
        entries_[i] = deadlines_.emplace(deadline, i);
        REQUIRE(wheel_.size() == deadlines_.size());
    }

    void advance(std::uint64_t elapsed) {
        now_ += elapsed;
        wheel_.advance(low(now_));
        std::set<std::size_t> scheduled_here;
        while (TimerNode* node = wheel_.pop_due()) {
            const auto i = static_cast<std::size_t>(node - nodes_.data());
            REQUIRE(entries_[i].has_value());
            REQUIRE((*entries_[i])->first <= now_);
            REQUIRE(!node->linked());
            forget(i);
            ++fired_;
            for (auto changes = random_() % 4; changes > 0; --changes) {
                const auto other = random_() % 2 == 0 ? i : static_cast<std::size_t>(random_() % kNodes);
                if (random_() % 3 == 0) {
                    cancel(other);
                } else {
                    schedule(other);
                    scheduled_here.insert(other);
                }
            }
        }
        for (auto entry = deadlines_.begin(); entry != deadlines_.end() && entry->first <= now_; ++entry) {
            REQUIRE_MESSAGE(scheduled_here.count(entry->second) == 1, "a node that is due did not fire");
        }
    }

    void check_timeout() {
        const int timeout = wheel_.next_timeout_ms();
        if (deadlines_.empty()) {
            REQUIRE(timeout == -1);
            return;
        }
        const std::uint64_t first = deadlines_.begin()->first;
        REQUIRE(timeout >= 0);
        REQUIRE(static_cast<std::uint64_t>(timeout) <= (first > now_ ? first - now_ : 0));
    }

    using Deadlines = std::multimap<std::uint64_t, std::size_t>;

    std::mt19937_64 random_;
    const int largest_step_bits_;
    std::uint64_t now_;
    TimerWheel wheel_;
    std::array<TimerNode, kNodes> nodes_;
    Deadlines deadlines_;
    std::array<std::optional<Deadlines::iterator>, kNodes> entries_;
    std::size_t fired_ = 0;
};

}  // namespace

TEST_CASE("TimerWheel: does what a multimap does, through many wraps of its time") {
    for (const int largest_step_bits : {4, 8, 14, 20, 28}) {
        CAPTURE(largest_step_bits);
        // Just before the 32 bits wrap, so that small steps cross it too.
        TimerModel model(test_seed() + static_cast<std::uint64_t>(largest_step_bits), 0x1'FFFF'FE00u,
                         largest_step_bits);
        for (int i = 0; i < 20'000; ++i) {
            model.step();
        }
        CHECK(model.fired() > 100);
        CHECK(model.now() > 0x2'0000'0000u);
        model.clear();
    }
}

}  // namespace penstock
