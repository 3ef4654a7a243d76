// Internal.
// What the engine needs of threads and signals beyond std::thread. Each function says which thread
// it acts on; none keeps state but StopSignals.
#pragma once

namespace penstock::platform {

// Cores that this process may run on, at least 1 (man 2 sched_getaffinity).
[[nodiscard]] unsigned usable_core_count();

// Pins the calling thread to the `index`-th of the usable cores, counted round. Returns 0 or errno.
int pin_current_thread(unsigned index);

// Names the calling thread for ps and perf; cut to what the kernel holds (15 bytes on Linux).
void name_current_thread(const char* name);

// Blocks every signal in the calling thread, so that an embedder's signals reach its own threads and
// a sendfile to a dead peer cannot kill the process with SIGPIPE (sendfile has no MSG_NOSIGNAL).
void block_signals_in_current_thread();

// Whether SIGHUP is waited for as well: it asks a server to read its files again.
enum class Hangup : bool { ignored, watched };

// Waits for SIGTERM or SIGINT, or for `notify` from any thread. Installed only while one exists;
// the former handlers come back when it is destroyed. At most kMaxWatchers exist at a time. A signal is for all of them: one
// that does not watch for SIGHUP is told of it too while another does.
class StopSignals {
public:
    static constexpr int kMaxWatchers = 16;

    explicit StopSignals(Hangup hangup = Hangup::ignored);
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    // 0, or the errno that kept it from being installed.
    [[nodiscard]] int error() const { return error_; }
    // Blocks until a signal (returns its number), `notify` (returns 0) or `timeout_ms` (-1 waits for
    // ever; returns -1 at the limit).
    [[nodiscard]] int wait(int timeout_ms);
    [[nodiscard]] static bool is_hangup(int signal);
    // Any thread; also from a signal handler.
    void notify();

private:
    int read_fd_ = -1;
    int write_fd_ = -1;
    int slot_ = -1;
    Hangup hangup_ = Hangup::ignored;
    int error_ = 0;
};

}  // namespace penstock::platform
