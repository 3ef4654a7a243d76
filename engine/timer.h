// Public.
// Calls a function on a reactor's thread when a time has passed, once or again and again.
//
//     auto flush = std::make_unique<Timer>();
//     (void)server.post(0, [&flush] { flush->start_repeating(1'000, [] { write_statistics(); }); });
//
// Owned by the user. Used on the thread of one reactor: inside a handler, or in a function given to Server::post. While it
// runs, only that thread may stop, start or destroy it; anybody else is stopped with a sentence, as far as that can be
// told. When the reactor has ended (Server::wait has returned) it does not run any more and its function is not called
// again; then it may be destroyed on any thread, before its server or after it, or be started on another reactor. A
// running timer keeps no drain from ending.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace penstock {

class Timer {
public:
    Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    // Stops it; also from within its own function.
    ~Timer();

    // Calls `function` once, when at least `delay_ms` milliseconds have passed since this turn of the reactor's loop began,
    // or every `interval_ms` (0 counts as 1). A timer that runs already begins anew; also from within its own function.
    // Throws std::bad_alloc without memory; then it does not run. What the function throws is logged.
    //
    // A repeating timer does not drift: it rings at multiples of its interval, however long its function takes. Of those
    // that pass while the reactor is busy the first rings late and the others are left out.
    void start(std::uint32_t delay_ms, std::function<void()> function);
    void start_repeating(std::uint32_t interval_ms, std::function<void()> function);
    // The function is not called any more, and is destroyed; when it calls this itself, as soon as it returns.
    void stop();
    // It will call its function. Within it, only a repeating one says so, or one that was started again.
    [[nodiscard]] bool running() const;

private:
    struct State;
    void begin(std::uint32_t delay_ms, std::uint32_t interval_ms, std::function<void()> function);

    std::unique_ptr<State> state_;  // made by the first start
};

}  // namespace penstock
