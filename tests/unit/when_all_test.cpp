#include "penstock/engine/when_all.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace penstock {

namespace {

// Something to wait for that comes when the test says so.
class Gate {
public:
    // Given back by what waits, so that the test sees when its frame goes.
    struct Wait {
        Gate& gate;
        bool await_ready() const { return gate.open_; }
        void await_suspend(std::coroutine_handle<> handle) { gate.waiting_.push_back(handle); }
        int await_resume() const {
            if (!gate.failure_.empty()) {
                throw std::runtime_error(gate.failure_);
            }
            return gate.value_;
        }
    };

    Wait wait() { return Wait{*this}; }
    void open(int value) {
        open_ = true;
        value_ = value;
        for (const std::coroutine_handle<> handle : std::exchange(waiting_, {})) {
            handle.resume();
        }
    }
    void fail(const std::string& text) {
        failure_ = text;
        open(0);
    }

private:
    bool open_ = false;
    int value_ = 0;
    std::string failure_;
    std::vector<std::coroutine_handle<>> waiting_;
};

// Counts those that live.
class Presence {
public:
    explicit Presence(int* count) : count_(count) { ++*count_; }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    ~Presence() { --*count_; }

private:
    int* count_;
};

Task<int> value_of(Gate& gate, int* present) {
    const Presence presence(present);
    co_return co_await gate.wait();
}

Task<void> pass(Gate& gate, int* present) {
    const Presence presence(present);
    co_await gate.wait();
}

Task<std::unique_ptr<int>> at_once(int value) { co_return std::make_unique<int>(value); }

Task<int> fail_at_once(const char* text) {
    throw std::runtime_error(text);
    co_return 0;
}

Task<int> sum_of(std::vector<Task<int>> tasks) {
    int sum = 0;
    for (const int value : co_await when_all(std::move(tasks))) {
        sum += value;
    }
    co_return sum;
}

std::string message_of(const Task<int>& task) {
    try {
        REQUIRE(task.done());
        REQUIRE(task.exception());
        std::rethrow_exception(task.exception());
    } catch (const std::exception& exception) {
        return exception.what();
    }
}

std::vector<Task<int>> three(Gate& first, Gate& second, Gate& third, int* present) {
    std::vector<Task<int>> tasks;
    tasks.push_back(value_of(first, present));
    tasks.push_back(value_of(second, present));
    tasks.push_back(value_of(third, present));
    return tasks;
}

}  // namespace

TEST_CASE("when_all: gives what each gave, in their order, when the last is done") {
    int present = 0;
    Gate first;
    Gate second;
    Gate third;
    std::string seen;
    const auto waiter = [&]() -> Task<void> {
        auto [a, nothing, c, d] =
            co_await when_all(value_of(first, &present), pass(second, &present), third.wait(), at_once(4));
        static_assert(std::is_same_v<decltype(nothing), std::monostate>);
        CHECK(present == 0);  // the frames of those that are done hold no locals
        seen = std::to_string(a) + std::to_string(c) + std::to_string(*d);
    };
    const Task<void> task = waiter();
    CHECK(present == 2);
    third.open(3);
    first.open(1);
    CHECK_FALSE(task.done());
    second.open(2);
    CHECK(task.done());
    CHECK(seen == "134");
}

TEST_CASE("when_all: goes on at once when all are done, and when there are none") {
    int done = 0;
    const auto waiter = [&]() -> Task<void> {
        auto [a, b] = co_await when_all(at_once(1), at_once(2));
        done += *a + *b;
        const std::tuple<> none = co_await when_all();
        static_cast<void>(none);
        CHECK((co_await when_all(std::vector<Task<int>>())).empty());
        co_await when_all(std::vector<Task<void>>());
        ++done;
    };
    CHECK(waiter().done());
    CHECK(done == 4);
}

TEST_CASE("when_all: a vector of tasks, whatever the order in which they end") {
    std::vector<int> order{0, 1, 2};
    do {
        int present = 0;
        std::array<Gate, 3> gates;
        Task<int> task = sum_of(three(gates[0], gates[1], gates[2], &present));
        for (const int index : order) {
            CHECK_FALSE(task.done());
            gates[static_cast<std::size_t>(index)].open(1 << index);
        }
        REQUIRE(task.done());
        CHECK(task.await_resume() == 7);
        CHECK(present == 0);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("when_all: rethrows what the first in time threw, but not before all have ended") {
    int present = 0;
    std::array<Gate, 3> gates;
    const Task<int> task = sum_of(three(gates[0], gates[1], gates[2], &present));
    gates[2].fail("third");
    CHECK_FALSE(task.done());
    CHECK(present == 2);  // nobody is destroyed for the failure of another
    gates[0].fail("first");
    CHECK_FALSE(task.done());
    gates[1].open(1);
    CHECK(message_of(task) == "third");
}

TEST_CASE("when_all: those that failed before it waits count in their order, and the others are waited for") {
    int present = 0;
    Gate gate;
    std::vector<Task<int>> tasks;
    tasks.push_back(value_of(gate, &present));
    tasks.push_back(fail_at_once("early"));
    tasks.push_back(fail_at_once("later"));
    const Task<int> task = sum_of(std::move(tasks));
    CHECK_FALSE(task.done());
    gate.fail("last");
    CHECK(message_of(task) == "early");
}

TEST_CASE("when_all: a task without memory for its frame throws bad_alloc, when the others are done") {
    int present = 0;
    Gate gate;
    bool refused = false;
    const auto waiter = [&]() -> Task<void> {
        try {
            co_await when_all(value_of(gate, &present), Task<int>());
        } catch (const std::bad_alloc&) {
            refused = true;
        }
    };
    const Task<void> task = waiter();
    CHECK_FALSE(task.done());
    gate.open(1);
    CHECK(task.done());
    CHECK(refused);
}

TEST_CASE("when_all: destroyed while it waits, it destroys all where they wait") {
    int present = 0;
    std::array<Gate, 3> gates;
    Task<int> task = sum_of(three(gates[0], gates[1], gates[2], &present));
    gates[1].open(1);
    CHECK(present == 2);
    task.reset();
    CHECK(present == 0);
}

TEST_CASE("when_all: one that is being started may let another go on") {
    int present = 0;
    Gate gate;
    const auto opener = [&gate]() -> Task<int> {
        gate.open(5);
        co_return 1;
    };
    int sum = 0;
    const auto waiter = [&]() -> Task<void> {
        auto [a, b, c] = co_await when_all(value_of(gate, &present), gate.wait(), opener());
        sum = a + b + c;
    };
    const Task<void> task = waiter();
    CHECK(task.done());
    CHECK(sum == 11);
}

TEST_CASE("when_all: one that goes on may let others go on, down to the last, and end what waits for them all") {
    int present = 0;
    Gate outer;
    Gate inner;
    const auto chain = [&]() -> Task<int> {
        const Presence presence(&present);
        const int value = co_await outer.wait();
        inner.open(value + 1);
        co_return value;
    };
    int sum = 0;
    const auto waiter = [&]() -> Task<void> {
        std::vector<Task<int>> tasks;
        tasks.push_back(chain());
        tasks.push_back(value_of(inner, &present));
        sum = co_await sum_of(std::move(tasks));
    };
    Task<void> task = waiter();
    outer.open(1);
    CHECK(task.done());
    CHECK(sum == 3);
    CHECK(present == 0);
}

TEST_CASE("when_all: nests") {
    int present = 0;
    std::array<Gate, 3> gates;
    std::string seen;
    const auto waiter = [&]() -> Task<void> {
        auto [pair, single] =
            co_await when_all(when_all(value_of(gates[0], &present), pass(gates[1], &present)), gates[2].wait());
        seen = std::to_string(std::get<0>(pair)) + std::to_string(single);
    };
    const Task<void> task = waiter();
    gates[2].open(3);
    gates[0].open(1);
    CHECK_FALSE(task.done());
    gates[1].open(2);
    CHECK(task.done());
    CHECK(seen == "13");
}

TEST_CASE("when_all: ten thousand that end one after the other need no stack for it") {
    int present = 0;
    Gate gate;
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 10'000; ++i) {
        tasks.push_back(value_of(gate, &present));
    }
    Task<int> task = sum_of(std::move(tasks));
    CHECK(present == 10'000);
    gate.open(1);
    REQUIRE(task.done());
    CHECK(task.await_resume() == 10'000);
}

}  // namespace penstock
