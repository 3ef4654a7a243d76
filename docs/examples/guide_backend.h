// Internal.
// Stands for the client library of a database: answers questions on a thread of its own, but for "never", which waits
// until it is cancelled. Used by guide.cpp. Any thread; destroying it waits for its thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

class Backend {
public:
    using Answer = std::function<void(const std::string&)>;

    Backend() : thread_([this] { run(); }) {}
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    ~Backend() {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    int ask(std::string question, Answer answer) {
        const std::lock_guard lock(mutex_);
        auto& questions = question == "never" ? waiting_ : ready_;
        questions.emplace(++last_, std::pair(std::move(question), std::move(answer)));
        changed_.notify_all();
        return last_;
    }
    void cancel(int ticket) {
        const std::lock_guard lock(mutex_);
        waiting_.erase(ticket);
        ready_.erase(ticket);
    }
    std::size_t pending() {
        const std::lock_guard lock(mutex_);
        return waiting_.size() + ready_.size();
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
            if (ended_) {
                return;
            }
            const auto asked = std::move(ready_.begin()->second);
            ready_.erase(ready_.begin());
            lock.unlock();
            asked.second("it is " + asked.first + "\n");
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<int, std::pair<std::string, Answer>> ready_;
    std::map<int, std::pair<std::string, Answer>> waiting_;
    int last_ = 0;
    bool ended_ = false;
    std::thread thread_;  // last: it uses all of the above
};
