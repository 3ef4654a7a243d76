#include "penstock/engine/mailbox.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "penstock/platform/poller.h"
#include "support/abort_message.h"
#include "support/seed.h"

namespace penstock {

namespace {

// Reaching it means that a wake-up was lost or a writer starved: far more than a loaded machine needs.
constexpr int kWaitLimitMs = 20'000;

struct OpenPoller {
    OpenPoller() { REQUIRE(poller.open().ok()); }
    platform::Poller poller;
};

// Counts how many live copies of it there are, and how often one was run.
struct Counted {
    Counted(int* live_count, int* run_count) : live(live_count), runs(run_count) { ++*live; }
    Counted(const Counted& other) : live(other.live), runs(other.runs) { ++*live; }
    Counted(Counted&& other) noexcept : live(other.live), runs(other.runs) { ++*live; }
    Counted& operator=(const Counted&) = delete;
    Counted& operator=(Counted&&) = delete;
    ~Counted() { --*live; }
    void operator()() const { ++*runs; }

    int* live;
    int* runs;
};

}  // namespace

TEST_CASE("Message: an empty one is false, and moving or resetting it does nothing") {
    Message empty;
    CHECK(!empty);
    empty.reset();
    Message moved(std::move(empty));
    CHECK(!moved);
    moved = Message();
    CHECK(!moved);
}

TEST_CASE("Message: runs what it holds, in place or on the heap, and destroys it once") {
    int live = 0;
    int runs = 0;
    {
        Message small{Counted(&live, &runs)};
        std::array<char, Message::kInlineBytes> ballast{};
        Message large{[counted = Counted(&live, &runs), ballast] {
            counted(), static_cast<void>(ballast);
        }};
        CHECK(live == 2);
        small();
        large();
        CHECK(runs == 2);
        Message small_moved(std::move(small));
        Message large_moved(std::move(large));
        CHECK(!small);
        CHECK(!large);
        CHECK(live == 2);
        small_moved();
        large_moved();
        CHECK(runs == 4);
        small_moved = std::move(large_moved);
        CHECK(live == 1);
        small_moved();
        CHECK(runs == 5);
        small_moved.reset();
        CHECK(!small_moved);
        CHECK(live == 0);
        Message unrun{Counted(&live, &runs)};
    }
    CHECK(live == 0);
    CHECK(runs == 5);
}

TEST_CASE("Message: takes what can only be moved, and what is aligned beyond max_align_t") {
    int result = 0;
    Message moved_in([value = std::make_unique<int>(3), &result] { result = *value; });
    moved_in();
    CHECK(result == 3);

    struct alignas(32) Wide {
        std::uintptr_t* misalignment;
        void operator()() const { *misalignment = reinterpret_cast<std::uintptr_t>(this) % 32; }
    };
    std::uintptr_t misalignment = 1;
    Message wide(Wide{&misalignment});
    wide();
    CHECK(misalignment == 0);
}

TEST_CASE("Mailbox: runs in the order of posts, never more than it is told") {
    OpenPoller open;
    Mailbox mailbox(8, open.poller);
    CHECK(mailbox.run(10) == 0);
    CHECK(!mailbox.has_more());
    std::vector<int> seen;
    for (int i = 0; i < 5; ++i) {
        REQUIRE(mailbox.try_post(Message([&seen, i] { seen.push_back(i); })));
    }
    CHECK(mailbox.run(0) == 0);
    CHECK(mailbox.has_more());
    CHECK(mailbox.run(3) == 3);
    CHECK(mailbox.has_more());
    CHECK(mailbox.run(3) == 2);
    CHECK(!mailbox.has_more());
    CHECK(seen == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("Mailbox: full says false and leaves the message untouched, for every size asked for") {
    OpenPoller open;
    for (const auto& [limit, room] : {std::pair{0u, 2}, {1u, 2}, {2u, 2}, {3u, 4}, {64u, 64}}) {
        Mailbox mailbox(limit, open.poller);
        int runs = 0;
        for (int round = 0; round < 5; ++round) {
            for (int i = 0; i < room; ++i) {
                REQUIRE(mailbox.try_post(Message([&runs] { ++runs; })));
            }
            Message refused([&runs] { runs += 1000; });
            CHECK(!mailbox.try_post(std::move(refused)));
            CHECK(static_cast<bool>(refused));
            CHECK(mailbox.run(1) == 1);
            CHECK(mailbox.try_post(std::move(refused)));
            CHECK(!refused);
            CHECK(mailbox.run(1000) == static_cast<std::size_t>(room));
        }
        CHECK(runs == 5 * (room + 1000));
    }
}

TEST_CASE("Mailbox: a message may post, and what it posts runs in the same call") {
    OpenPoller open;
    Mailbox mailbox(4, open.poller);
    int runs = 0;
    REQUIRE(mailbox.try_post(Message([&] {
        ++runs;
        CHECK(!mailbox.has_more());
        CHECK(mailbox.try_post(Message([&runs] { ++runs; })));
    })));
    CHECK(mailbox.run(10) == 2);
    CHECK(runs == 2);
}

TEST_CASE("Mailbox: posts wake the poller, once until the next run") {
    OpenPoller open;
    Mailbox mailbox(8, open.poller);
    CHECK(!open.poller.wait(0).woken);
    for (int round = 0; round < 3; ++round) {
        REQUIRE(mailbox.try_post(Message([] {})));
        CHECK(open.poller.wait(kWaitLimitMs).woken);
        REQUIRE(mailbox.try_post(Message([] {})));
        CHECK(!open.poller.wait(0).woken);
        CHECK(mailbox.run(1) == 1);
        CHECK(mailbox.has_more());
        REQUIRE(mailbox.try_post(Message([] {})));
        CHECK(open.poller.wait(kWaitLimitMs).woken);
        CHECK(mailbox.run(10) == 2);
    }
    CHECK(!open.poller.wait(0).woken);
}

TEST_CASE("Mailbox: what is posted while a run goes on wakes again, also when that run leaves it in") {
    OpenPoller open;
    Mailbox mailbox(4, open.poller);
    REQUIRE(mailbox.try_post(Message([&mailbox] { CHECK(mailbox.try_post(Message([] {}))); })));
    CHECK(open.poller.wait(kWaitLimitMs).woken);
    CHECK(mailbox.run(1) == 1);
    CHECK(open.poller.wait(0).woken);
    CHECK(mailbox.run(1) == 1);
}

TEST_CASE("Mailbox: closed refuses, and still runs what is in") {
    OpenPoller open;
    Mailbox mailbox(4, open.poller);
    int runs = 0;
    REQUIRE(mailbox.try_post(Message([&runs] { ++runs; })));
    mailbox.close();
    mailbox.close();
    Message late([&runs] { ++runs; });
    CHECK(!mailbox.try_post(std::move(late)));
    CHECK(static_cast<bool>(late));
    CHECK(mailbox.has_more());
    CHECK(mailbox.run(10) == 1);
    CHECK(!mailbox.try_post(std::move(late)));
    CHECK(runs == 1);

    Mailbox full(2, open.poller);
    REQUIRE(full.try_post(Message([] {})));
    REQUIRE(full.try_post(Message([] {})));
    full.close();
    CHECK(!full.try_post(std::move(late)));
    CHECK(static_cast<bool>(late));
}

TEST_CASE("Mailbox: what is not run is destroyed, and its destructor may post without harm") {
    OpenPoller open;
    int live = 0;
    int runs = 0;
    bool refused = false;
    struct PostsWhenDestroyed {
        Mailbox* mailbox;
        bool* refused;
        ~PostsWhenDestroyed() {
            *refused = !mailbox->try_post(Message([] {}));
        }
    };
    {
        Mailbox mailbox(8, open.poller);
        for (int i = 0; i < 3; ++i) {
            REQUIRE(mailbox.try_post(Message(Counted(&live, &runs))));
        }
        REQUIRE(mailbox.run(1) == 1);
        std::unique_ptr<PostsWhenDestroyed> poster(new PostsWhenDestroyed{&mailbox, &refused});
        REQUIRE(mailbox.try_post(Message([held = std::move(poster)] {})));
        CHECK(live == 2);
    }
    CHECK(live == 0);
    CHECK(runs == 1);
    CHECK(refused);
}

TEST_CASE("Mailbox: what is not run is destroyed in the order of posts") {
    struct Noted {
        std::vector<int>* seen;
        int number;
        ~Noted() { seen->push_back(number); }
    };
    OpenPoller open;
    std::vector<int> seen;
    {
        Mailbox mailbox(4, open.poller);
        REQUIRE(mailbox.try_post(Message([] {})));
        CHECK(mailbox.run(1) == 1);
        for (int i = 0; i < 4; ++i) {
            std::unique_ptr<Noted> noted(new Noted{&seen, i});
            REQUIRE(mailbox.try_post(Message([noted = std::move(noted)] {})));
        }
    }
    CHECK(seen == std::vector{0, 1, 2, 3});
}

TEST_CASE("Mailbox: an empty message is our own mistake") {
    CHECK(abort_message([] {
              platform::Poller poller;
              Mailbox mailbox(2, poller);
              static_cast<void>(mailbox.try_post(Message()));
          }).find("empty message") != std::string::npos);
}

namespace {

// Several writers against one mailbox. Each message says whose it is and the how manieth.
class Stress {
public:
    Stress(std::uint32_t mailbox_limit, int posts_per_writer)
        : posts_per_writer_(posts_per_writer), mailbox_(mailbox_limit, open_.poller) {
        for (int writer = 0; writer < kWriters; ++writer) {
            threads_.emplace_back([this, writer] { write(writer); });
        }
    }
    ~Stress() {
        give_up_ = true;
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }
    Stress(const Stress&) = delete;
    Stress& operator=(const Stress&) = delete;

    // Sleeps in the poller whenever there is nothing, so that a lost wake-up shows as a wait that times out.
    void read_until(int count, std::size_t run_limit) {
        while (read_ < count) {
            if (!open_.poller.wait(kWaitLimitMs).woken) {
                FAIL("a wake-up was lost after " << read_ << " messages");
            }
            do {
                mailbox_.run(run_limit);
            } while (mailbox_.has_more());
        }
    }

    void close() { mailbox_.close(); }
    void join() {
        for (std::thread& thread : threads_) {
            thread.join();
        }
        threads_.clear();
        while (mailbox_.run(100) > 0) {
        }
    }

    static constexpr int kWriters = 4;
    [[nodiscard]] int read() const { return read_; }
    [[nodiscard]] int accepted() const { return accepted_; }
    [[nodiscard]] bool in_order() const { return in_order_; }
    [[nodiscard]] bool refused_were_untouched() const { return refused_were_untouched_; }

private:
    void write(int writer) {
        for (int number = 0; number < posts_per_writer_ && !give_up_; ++number) {
            Message message([this, writer, number] { receive(writer, number); });
            while (!mailbox_.try_post(std::move(message))) {
                if (!message) {
                    refused_were_untouched_ = false;
                }
                if (give_up_) {
                    return;
                }
                std::this_thread::yield();
            }
            ++accepted_;
        }
    }

    void receive(int writer, int number) {
        int& next = next_[static_cast<std::size_t>(writer)];
        in_order_ = in_order_ && number == next;
        next = number + 1;
        ++read_;
    }

public:
    // Writers stop at the next refusal.
    std::atomic<bool> give_up_{false};

private:
    const int posts_per_writer_;
    OpenPoller open_;
    Mailbox mailbox_;
    std::array<int, kWriters> next_{};
    int read_ = 0;
    bool in_order_ = true;
    std::atomic<int> accepted_{0};
    std::atomic<bool> refused_were_untouched_{true};
    std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("Mailbox: four writers lose nothing, neither order nor a wake-up") {
    constexpr int kPosts = 10'000;
    struct Sizes {
        std::uint32_t mailbox_limit;
        std::size_t run_limit;
    };
    for (const Sizes& sizes : {Sizes{2, 1}, Sizes{16, 3}, Sizes{4096, 256}}) {
        CAPTURE(sizes.mailbox_limit);
        Stress stress(sizes.mailbox_limit, kPosts);
        stress.read_until(Stress::kWriters * kPosts, sizes.run_limit);
        stress.join();
        CHECK(stress.read() == Stress::kWriters * kPosts);
        CHECK(stress.accepted() == stress.read());
        CHECK(stress.in_order());
        CHECK(stress.refused_were_untouched());
    }
}

TEST_CASE("Mailbox: closing under four writers runs what was accepted and nothing else") {
    for (int round = 0; round < 50; ++round) {
        Stress stress(64, 1'000'000);
        stress.read_until(round * 20, 16);
        stress.close();
        stress.give_up_ = true;
        stress.join();
        REQUIRE(stress.accepted() == stress.read());
        REQUIRE(stress.in_order());
        REQUIRE(stress.refused_were_untouched());
    }
}

// In the stress above a wake-up that is lost goes unnoticed when another post follows. Here none follows: the
// second post of a pair falls, a little earlier or later each time, about where the reader answers the first,
// and the next pair waits for both.
TEST_CASE("Mailbox: a post that meets the reader going to sleep is not left lying") {
    OpenPoller open;
    Mailbox mailbox(4, open.poller);
    constexpr int kPairs = 10'000;
    std::atomic<int> answered{0};
    std::atomic<bool> give_up{false};
    std::thread writer([&] {
        std::minstd_rand random(static_cast<unsigned>(test_seed()));
        for (int pair = 1; pair <= kPairs && !give_up; ++pair) {
            CHECK(mailbox.try_post(Message([&answered] { ++answered; })));
            for (std::atomic<unsigned> delay = random() % 512; delay > 0; --delay) {
            }
            CHECK(mailbox.try_post(Message([&answered] { ++answered; })));
            for (int spins = 0; answered < 2 * pair && !give_up; ++spins) {
                if (spins > 1000) {
                    std::this_thread::yield();
                }
            }
        }
    });
    bool woken = true;
    while (answered < 2 * kPairs && woken) {
        // Looking a few times before sleeping brings the two closer together.
        woken = false;
        for (int looks = 0; looks < 100 && !woken; ++looks) {
            woken = open.poller.wait(0).woken;
        }
        woken = woken || open.poller.wait(kWaitLimitMs).woken;
        mailbox.run(2);
    }
    give_up = true;
    writer.join();
    CHECK(woken);
    CHECK(answered == 2 * kPairs);
}

}  // namespace penstock
