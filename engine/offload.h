// Internal.
// A few threads for work that would block a reactor: what handlers `offload`. The
// queue is bounded by what its users may have in flight; each job's reply has its place in a mailbox before
// it starts.
//
// Owned by a Server, shared by its reactors. With no threads (tests, the simulated platform) jobs wait until
// somebody calls `run_one`.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "penstock/engine/mailbox.h"

namespace penstock {

class OffloadPool {
public:
    // At most `queue_limit` jobs wait; `threads` of them run at once.
    OffloadPool(unsigned threads, std::size_t queue_limit);
    // Waits for running jobs; those still queued are dropped.
    ~OffloadPool();
    OffloadPool(const OffloadPool&) = delete;
    OffloadPool& operator=(const OffloadPool&) = delete;

    // False when the queue is full or the pool has stopped; the job is then untouched. Any thread.
    [[nodiscard]] bool try_submit(Message&& job);
    // Runs one waiting job on the calling thread; false when there is none. Any thread.
    bool run_one();
    // Refuses new jobs, lets running and queued ones finish, and joins the threads. Called once or more.
    void stop();

    [[nodiscard]] std::size_t queued() const;

private:
    void work();

    const std::size_t queue_limit_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Message> queue_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace penstock
