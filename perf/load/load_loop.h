// Internal.
// The requests of one run, over all of its connections, in one thread. First the ramp gives each connection
// an answer; then flows are measured, each of which ends when everything that it has asked for is answered or
// given up. Whatever a server does, each of these ends: by its time, and by the patience beyond it. What the kernel refuses
// is thrown as std::runtime_error, whose words say what can be done.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/histogram.h"
#include "load/options.h"
#include "load/response_reader.h"
#include "load/tally.h"
#include "load/tls.h"

namespace penstock::load {

struct Figures {
    std::uint64_t requests = 0;  // that were answered, as expected or not
    std::uint64_t asked = 0;     // that were made or due: answered, or counted as errors
    std::uint64_t bytes = 0;
    std::uint64_t reopened = 0;  // connections, beyond the first ones; with --close each request needs one
    double seconds = 0;          // from the first request to the last answer
    double cpu_s = 0;            // of this program
    Histogram latency_ns;
};

class LoadLoop {
public:
    explicit LoadLoop(const Options& options);
    ~LoadLoop();

    LoadLoop(const LoadLoop&) = delete;
    LoadLoop& operator=(const LoadLoop&) = delete;

    // Empty, or why there is nothing to measure.
    std::string ramp();
    // Requests for so long or so many of them, as they are due or as answers come, and then what is left of them.
    void flow(double seconds, std::uint64_t requests);

    const Figures& figures() const { return figures_; }  // of the last flow
    const Tally& tally() const { return tally_; }        // likewise
    const TlsFigures* tls() const { return tls_ ? &tls_->figures() : nullptr; }  // likewise

private:
    enum class Phase { ramp, flow, drain };

    struct Connection {
        explicit Connection(ResponseShape& shape) : reader(shape) {}

        ResponseReader reader;
        std::unique_ptr<TlsStream> tls;  // none without TLS
        int fd = -1;
        unsigned failures = 0;  // openings without an answer since the last one
        bool has_answered = false;
        bool is_ramped = false;
        bool is_given_up = false;
        bool awaits_end = false;  // after its only response, or the last one by what the server has said
        bool watches_output = false;
        bool is_refused = false;
        std::uint64_t unsent_bytes = 0;
        std::int64_t sent_at_ns = 0;  // what is on its way, and the opening for it before that
        // Numbers of the requests of this flow. Each is no larger than the one before.
        std::uint64_t due = 0;
        std::uint64_t sent = 0;
        std::uint64_t answered = 0;  // or lost
    };

    void make_requests(std::int64_t end_ns);
    void drain(std::int64_t until_ns);
    void turn(std::int64_t until_ns);
    void on_event(Connection& connection, std::uint32_t events);
    void receive(Connection& connection);
    std::ptrdiff_t receive_some(Connection& connection);
    std::ptrdiff_t send_some(Connection& connection, const char* data, std::size_t size);
    void on_answers(Connection& connection, std::size_t count);
    void on_end(Connection& connection);
    void fail(Connection& connection);
    void give_up(Connection& connection);
    void lose_requests(Connection& connection, std::uint64_t* kind);

    void go_on(Connection& connection);
    void schedule(std::int64_t now);
    void request(Connection& connection, std::uint64_t count);
    bool open(Connection& connection);
    void flush(Connection& connection);
    void watch_output(Connection& connection, bool is_wanted);
    void watch(Connection& connection, int operation, std::uint32_t events);
    void close(Connection& connection);

    bool is_open_loop() const { return options_.rate > 0; }
    bool is_settled() const { return waiting_ == 0 && ending_ == 0 && retries_.empty(); }
    std::int64_t due_at(std::uint64_t number) const;
    std::uint64_t number_of(const Connection& connection, std::uint64_t own) const;

    Options options_;
    ResponseShape shape_;
    std::string requests_;  // some of them back to back
    std::size_t request_bytes_ = 0;
    std::unique_ptr<TlsContext> tls_;  // none without TLS
    std::vector<Connection> connections_;
    std::vector<Connection*> retries_;  // those that go on in the next turn
    std::vector<char> input_;
    int epoll_ = -1;

    Phase phase_ = Phase::ramp;
    std::uint64_t most_requests_ = 0;  // of this flow
    std::int64_t start_ns_ = 0;
    std::int64_t last_answer_ns_ = 0;
    std::uint64_t issued_ = 0;   // requests of this flow that are due
    std::uint64_t waiting_ = 0;  // due and neither answered nor lost
    std::uint64_t ending_ = 0;   // connections that the server has to end
    std::size_t ramp_next_ = 0;
    std::size_t ramped_ = 0;
    std::size_t given_up_ = 0;
    Figures figures_;
    Tally tally_;
};

}  // namespace penstock::load
