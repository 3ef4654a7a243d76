#include "penstock/engine/offload.h"

#include "penstock/engine/ensure.h"
#include "penstock/platform/thread.h"

namespace penstock {

OffloadPool::OffloadPool(unsigned threads, std::size_t queue_limit) : queue_limit_(queue_limit) {
    threads_.reserve(threads);
    try {
        for (unsigned i = 0; i < threads; ++i) {
            threads_.emplace_back([this] { work(); });
        }
    } catch (...) {
        stop();  // a joinable thread's destructor would end the process
        throw;
    }
}

OffloadPool::~OffloadPool() {
    std::deque<Message> dropped;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        dropped.swap(queue_);
    }
    // Not under the lock: what a dropped job destroys may call back.
    dropped.clear();
    stop();
}

bool OffloadPool::try_submit(Message&& job) {
    ensure(static_cast<bool>(job), "an empty job is submitted");
    {
        const std::lock_guard lock(mutex_);
        if (stopping_ || queue_.size() >= queue_limit_) {
            return false;
        }
        queue_.push_back(std::move(job));
    }
    changed_.notify_one();
    return true;
}

bool OffloadPool::run_one() {
    Message job;
    {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) {
            return false;
        }
        job = std::move(queue_.front());
        queue_.pop_front();
    }
    job();
    return true;
}

void OffloadPool::stop() {
    std::vector<std::thread> threads;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        threads.swap(threads_);
    }
    changed_.notify_all();
    for (std::thread& thread : threads) {
        thread.join();
    }
    // With no threads nobody else would finish what is queued, and somebody waits for each reply.
    while (run_one()) {
    }
}

std::size_t OffloadPool::queued() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
}

void OffloadPool::work() {
    platform::block_signals_in_current_thread();
    platform::name_current_thread("penstock-work");
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
            if (queue_.empty()) {
                return;
            }
        }
        run_one();
    }
}

}  // namespace penstock
