// Timers of the program, on a clock that tests move.
#include "engine_fixture.h"

#include <stdexcept>

#include "support/abort_message.h"

namespace penstock::test {
namespace {

// A reactor that serves nothing, and the way onto its thread. Timers of a test are declared before it, so that it ends first.
struct Bench {
    Engine engine{Router()};

    void on_reactor(const std::function<void()>& function) {
        REQUIRE(engine.server.reactor().try_post(Message([&function] { function(); })));
        engine.server.settle();
    }
    // One step after the other, with a turn in each.
    void pass(std::uint32_t steps, std::uint32_t step_ms = 1) {
        for (std::uint32_t i = 0; i < steps; ++i) {
            engine.server.advance(step_ms);
        }
    }
};

}  // namespace

TEST_CASE("a timer rings once, not early, and can be set again") {
    int rung = 0;
    Timer timer;
    Bench bench;
    CHECK_FALSE(timer.running());
    bench.on_reactor([&] { timer.start(10, [&] { ++rung; }); });
    CHECK(timer.running());
    bench.pass(9);
    CHECK(rung == 0);
    bench.pass(1);
    CHECK(rung == 1);
    CHECK_FALSE(timer.running());
    bench.pass(100);
    CHECK(rung == 1);
    bench.on_reactor([&] {
        timer.start(10, [&] { rung += 10; });
        timer.start(20, [&] { rung += 100; });  // in its place
    });
    bench.pass(19);
    CHECK(rung == 1);
    bench.pass(1);
    CHECK(rung == 101);
    bench.on_reactor([&] { timer.start(0, [&] { ++rung; }); });
    bench.pass(1, 0);
    CHECK(rung == 102);
}

TEST_CASE("a timer that is stopped or destroyed does not ring, and lets go of its function") {
    int rung = 0;
    const auto held = std::make_shared<int>(0);
    Timer stopped;
    Timer never_started;
    auto destroyed = std::make_unique<Timer>();
    Bench bench;
    bench.on_reactor([&] {
        stopped.start(10, [&rung, held] { ++rung; });
        destroyed->start_repeating(10, [&rung, held] { ++rung; });
        never_started.stop();
    });
    CHECK(held.use_count() == 3);
    bench.pass(9);
    bench.on_reactor([&] {
        stopped.stop();
        CHECK_FALSE(stopped.running());
        stopped.stop();
        destroyed.reset();
    });
    CHECK(held.use_count() == 1);
    bench.pass(100);
    CHECK(rung == 0);
}

TEST_CASE("a handler sets a timer, and what it throws is logged") {
    Timer timer;
    Router router;
    router.get("/", [&timer](Request& request, Response& response) {
        timer.start_repeating(10, [odd = request.path() == "/", count = 0]() mutable {
            if (++count == 2) {
                throw std::runtime_error("the second time");
            }
            if (count == 3 && odd) {
                throw 3;
            }
        });
        response.send_static("set");
    });
    Engine engine(router);
    CHECK(body_of(engine.ask(get("/"))) == "set");
    engine.server.advance(10);
    CHECK(engine.server.log.lines.empty());
    engine.server.advance(10);
    CHECK(engine.server.log.mention("a timer's function threw: the second time"));
    engine.server.advance(10);
    CHECK(engine.server.log.mention("no std::exception"));
    CHECK(timer.running());
    CHECK(engine.server.log.lines.size() == 2);
}

TEST_CASE("a repeating timer rings at multiples of its interval, and leaves out those that have passed") {
    std::vector<std::uint32_t> times;
    Timer timer;
    Bench bench;
    Reactor& reactor = bench.engine.server.reactor();
    std::uint32_t begin_ms = 0;
    std::uint64_t work_ms = 0;  // what its function takes
    bench.on_reactor([&] {
        begin_ms = reactor.now_ms();
        timer.start_repeating(10, [&] {
            times.push_back(reactor.now_ms() - begin_ms);
            CHECK(timer.running());
            bench.engine.world.advance_ms(std::exchange(work_ms, 0));
        });
    });
    bench.pass(30);
    CHECK(times == std::vector<std::uint32_t>{10, 20, 30});
    work_ms = 3;  // less than the interval: no drift
    bench.pass(17);
    CHECK(times == std::vector<std::uint32_t>{10, 20, 30, 40, 50});
    work_ms = 35;  // 60 to 95
    bench.pass(10);
    times.clear();
    bench.pass(5);
    CHECK(times == std::vector<std::uint32_t>{96, 100});  // the first of them late, the others not at all
    bench.pass(1, 47);  // a stall, from 100 to 147
    bench.pass(3);
    CHECK(times == std::vector<std::uint32_t>{96, 100, 147, 150});
    bench.on_reactor([&] { timer.stop(); });
    bench.pass(100);
    CHECK(times.size() == 4);
}

TEST_CASE("an interval of 0 is one of a millisecond") {
    int rung = 0;
    Timer timer;
    Bench bench;
    bench.on_reactor([&] { timer.start_repeating(0, [&] { ++rung; }); });
    CHECK(rung == 0);
    bench.pass(5);
    CHECK(rung == 5);
}

TEST_CASE("delays beyond the wheel's reach, once and repeated") {
    for (const std::uint32_t delay_ms : {400'000'000u, 2'200'000'000u, 4'294'967'295u}) {
        CAPTURE(delay_ms);
        int rung = 0;
        int repeated = 0;
        Timer once;
        Timer again;
        Bench bench;
        bench.on_reactor([&] {
            once.start(delay_ms, [&] { ++rung; });
            again.start_repeating(delay_ms, [&] { ++repeated; });
        });
        const std::uint32_t step_ms = 1u << 27;
        for (int lap = 0; lap < 2; ++lap) {
            bench.pass(delay_ms / step_ms, step_ms);
            bench.pass(1, delay_ms % step_ms - 1);
            CHECK(rung == (lap == 0 ? 0 : 1));
            CHECK(repeated == lap);
            bench.pass(1);
            CHECK(rung == 1);
            CHECK(repeated == lap + 1);
        }
    }
}

TEST_CASE("within its own function a timer may be started again, stopped and destroyed") {
    int rung = 0;
    std::string seen;
    Timer chain;
    Timer stops;
    Timer restarts;
    auto destroyed = std::make_unique<Timer>();
    Bench bench;
    bench.on_reactor([&] {
        std::function<void()> next = [&seen, &chain, text = std::string(100, 'c')] {
            CHECK_FALSE(chain.running());
            chain.start(5, [&seen, &chain] {
                seen += "second ";
                chain.start_repeating(5, [&seen] { seen += "again "; });
                CHECK(chain.running());
            });
            seen += text.substr(0, 1) + " ";  // its own captures are still there
        };
        chain.start(5, std::move(next));
        stops.start_repeating(5, [&rung, &stops, text = std::string(100, 's')] {
            stops.stop();
            CHECK_FALSE(stops.running());
            rung += text[0] == 's' ? 1 : 100;
        });
        restarts.start_repeating(5, [&rung, &restarts] {
            restarts.start(7, [&rung] { rung += 10; });
        });
        destroyed->start_repeating(5, [&rung, &destroyed, text = std::string(100, 'd')] {
            destroyed.reset();
            rung += text[0] == 'd' ? 1'000 : 0;
        });
    });
    bench.pass(5);
    CHECK(rung == 1'001);
    CHECK_FALSE(destroyed);
    bench.pass(15);
    CHECK(seen == "c second again again ");
    CHECK(rung == 1'011);
    CHECK_FALSE(restarts.running());
    CHECK_FALSE(stops.running());
    CHECK(chain.running());
}

TEST_CASE("a function that owns its timer destroys it when it is let go of") {
    struct Session {
        Timer timer;
        int rung = 0;
    };
    std::weak_ptr<Session> watched;
    Bench bench;
    bench.on_reactor([&] {
        const auto session = std::make_shared<Session>();
        watched = session;
        session->timer.start(5, [session] { ++session->rung; });
    });
    CHECK_FALSE(watched.expired());
    bench.pass(5);
    CHECK(watched.expired());
    bench.on_reactor([&] {
        const auto session = std::make_shared<Session>();
        watched = session;
        session->timer.start(5, [session] { ++session->rung; });
    });
    bench.on_reactor([&] { watched.lock()->timer.stop(); });
    CHECK(watched.expired());
}

TEST_CASE("a running timer keeps no drain from ending, and does not ring after it") {
    int rung = 0;
    Timer repeating;
    Timer late;
    Bench bench;
    Reactor& reactor = bench.engine.server.reactor();
    bench.on_reactor([&] {
        repeating.start_repeating(1, [&] { ++rung; });
        late.start(1'000'000, [&] { ++rung; });
    });
    bench.pass(3);
    CHECK(rung == 3);
    reactor.request_stop(false);
    // Posted before the end, and so run at the end: what it sets is forgotten like the rest.
    Timer last;
    REQUIRE(reactor.try_post(Message([&] { last.start(1, [&] { ++rung; }); })));
    CHECK_FALSE(reactor.run_turn(0));
    for (const Timer* timer : {&repeating, &late, &last}) {
        CHECK_FALSE(timer->running());
    }
    bench.engine.world.advance_ms(2'000'000);
    CHECK(rung == 3);
    repeating.stop();  // on this thread now, which is no reactor's
    bench.engine.server.destroy();
    CHECK(abort_message([&] { late.start(1, [] {}); }).find("started on a thread that is no reactor's") !=
          std::string::npos);
}

TEST_CASE("a timer outlives its reactor, also one that ends by a fault or is destroyed while it runs, and serves another") {
    int rung = 0;
    Timer timer;
    for (const bool fault : {true, false}) {
        Bench bench;
        bench.on_reactor([&] { timer.start_repeating(10, [&] { ++rung; }); });
        CHECK(timer.running());
        bench.pass(10);
        if (fault) {
            bench.engine.world.script(sim::Call::poller_wait, sim::World::kAnyDescriptor, 1, sim::Outcome::fail(EBADF));
            CHECK_FALSE(bench.engine.server.reactor().run_turn(0));
            CHECK_FALSE(timer.running());
        }
        bench.engine.server.destroy();
        CHECK_FALSE(timer.running());
    }
    CHECK(rung == 2);
}

TEST_CASE("a running timer that another thread stops, starts or destroys ends the program with a sentence") {
    auto timer = std::make_unique<Timer>();
    Bench bench;
    bench.on_reactor([&] { timer->start(10, [] {}); });
    for (const auto& misuse : std::vector<std::function<void()>>{[&] { timer->stop(); }, [&] { timer.reset(); }}) {
        CHECK(abort_message(misuse).find("on another thread than its reactor's while it runs") != std::string::npos);
    }
    CHECK(abort_message([&] { timer->start(1, [] {}); }).find("no reactor's") != std::string::npos);
    std::string empty_function;
    bench.on_reactor([&] { empty_function = abort_message([&] { timer->start(1, nullptr); }); });
    CHECK(empty_function.find("empty function") != std::string::npos);
    bench.engine.server.destroy();
}

}  // namespace penstock::test
