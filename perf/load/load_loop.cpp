#include "load/load_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace penstock::load {

namespace {

constexpr std::int64_t kNsPerS = 1'000'000'000;
constexpr std::size_t kEvents = 1'024;
constexpr std::size_t kInputBytes = 256 * 1'024;
// Requests that are sent at once stand back to back, in as much memory at most.
constexpr std::size_t kRequestsBytes = 1 << 20;
// Fewer than any server's backlog: a connection that does not fit into it waits for a second.
constexpr std::size_t kRampsAtOnce = 100;
constexpr double kRampLimitS = 60;
constexpr unsigned kFailureLimit = 3;

std::string request_text(const Options& options);
std::int64_t now_ns();
std::int64_t to_ns(double seconds) {
    return static_cast<std::int64_t>(seconds * kNsPerS);
}
double cpu_s();
void check(bool is_well, const char* what);

}  // namespace

LoadLoop::LoadLoop(const Options& options)
    : options_(options), shape_(options.status, options.length, options.method == "HEAD"),
      input_(kInputBytes) {
    const std::string request = request_text(options);
    request_bytes_ = request.size();
    const std::size_t copies = std::clamp<std::size_t>(kRequestsBytes / request_bytes_, 1, options.depth);
    for (std::size_t copy = 0; copy < copies; ++copy) {
        requests_.append(request);
    }
    if (options.is_tls) {
        tls_ = std::make_unique<TlsContext>(options);
    }
    connections_.reserve(options.connections);
    for (std::uint32_t i = 0; i < options.connections; ++i) {
        connections_.emplace_back(shape_).tls = tls_ ? std::make_unique<TlsStream>(*tls_) : nullptr;
    }
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    check(epoll_ >= 0, "epoll_create1");
}

LoadLoop::~LoadLoop() {
    for (Connection& connection : connections_) {
        close(connection);
    }
    ::close(epoll_);
}

std::string LoadLoop::ramp() {
    const std::int64_t end_ns = now_ns() + to_ns(kRampLimitS);
    last_answer_ns_ = now_ns();
    while (ramp_next_ < std::min(kRampsAtOnce, connections_.size())) {
        go_on(connections_[ramp_next_++]);
    }
    while (ramped_ < connections_.size() && given_up_ == 0) {
        const std::int64_t deadline = std::min(end_ns, last_answer_ns_ + to_ns(options_.patience_s));
        if (now_ns() >= deadline) {
            break;
        }
        turn(deadline);
    }
    if (ramped_ == connections_.size()) {
        retries_.clear();  // all go on in the first flow, and none twice
        return {};
    }
    return std::to_string(connections_.size() - ramped_) + " of " + std::to_string(connections_.size()) +
           " connections have had no answer, " + std::to_string(tally_.refused) + " were refused" +
           (tls_ && !tls_->figures().problem.empty() ? "; TLS: " + tls_->figures().problem : "");
}

void LoadLoop::flow(double seconds, std::uint64_t requests) {
    figures_ = {};
    tally_ = {};
    if (tls_) {
        tls_->figures().handshakes = tls_->figures().resumed = 0;
    }
    most_requests_ = requests;
    issued_ = 0;
    for (Connection& connection : connections_) {
        connection.due = connection.sent = connection.answered = 0;
    }
    const double cpu_before_s = cpu_s();
    start_ns_ = last_answer_ns_ = now_ns();
    const std::int64_t end_ns = start_ns_ + to_ns(seconds);
    phase_ = Phase::flow;
    make_requests(end_ns);
    phase_ = Phase::drain;
    drain(end_ns + to_ns(options_.patience_s));
    figures_.asked = issued_;
    figures_.seconds = static_cast<double>(last_answer_ns_ - start_ns_) / kNsPerS;
    figures_.cpu_s = cpu_s() - cpu_before_s;
}

void LoadLoop::make_requests(std::int64_t end_ns) {
    if (!is_open_loop()) {
        for (Connection& connection : connections_) {
            go_on(connection);
        }
    }
    for (std::int64_t now = now_ns(); now < end_ns && given_up_ < connections_.size(); now = now_ns()) {
        if (is_open_loop()) {
            schedule(now);
        }
        const bool is_done = issued_ == most_requests_;
        if (is_done && is_settled()) {
            return;
        }
        turn(is_open_loop() && !is_done ? std::min(end_ns, due_at(issued_)) : end_ns);
    }
    if (is_open_loop()) {
        schedule(end_ns - 1);  // those that became due during the last turn
    }
}

// What is still not answered in the end is counted, and its connection closed lest it be answered later.
void LoadLoop::drain(std::int64_t until_ns) {
    while (!is_settled() && now_ns() < until_ns) {
        turn(until_ns);
    }
    tally_.unanswered += waiting_;
    tally_.unended += ending_;
    for (Connection& connection : connections_) {
        if (connection.sent != connection.answered || connection.awaits_end) {
            close(connection);
        }
    }
    waiting_ = 0;
    retries_.clear();
}

void LoadLoop::turn(std::int64_t until_ns) {
    const std::int64_t left_ns = retries_.empty() ? std::max<std::int64_t>(until_ns - now_ns(), 0) : 0;
    const timespec limit = {static_cast<std::time_t>(left_ns / kNsPerS),
                            static_cast<long>(left_ns % kNsPerS)};
    std::array<epoll_event, kEvents> events;
    const int count = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &limit, nullptr);
    check(count >= 0 || errno == EINTR, "epoll_pwait2");
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        on_event(*static_cast<Connection*>(event.data.ptr), event.events);
    }
    std::vector<Connection*> retries;
    retries.swap(retries_);
    for (Connection* connection : retries) {
        go_on(*connection);
    }
}

void LoadLoop::on_event(Connection& connection, std::uint32_t events) {
    // In a handshake the request waits for what the server says.
    if ((events & EPOLLOUT) != 0 || (connection.tls && connection.unsent_bytes > 0)) {
        flush(connection);
    }
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && connection.fd >= 0) {
        do {
            receive(connection);
        } while (connection.fd >= 0 && connection.tls && connection.tls->has_more());
        // Receiving may have ended the handshake, of which the socket tells nothing more.
        if (connection.tls && connection.unsent_bytes > 0) {
            flush(connection);
        }
    }
}

void LoadLoop::receive(Connection& connection) {
    const std::ptrdiff_t size = receive_some(connection);
    if (size <= 0) {
        if (size == 0 || errno != EAGAIN) {
            connection.is_refused |= size < 0 && errno == ECONNREFUSED;
            on_end(connection);
        }
        return;
    }
    figures_.bytes += static_cast<std::uint64_t>(size);
    ResponseReader& reader = connection.reader;
    const std::size_t ended = reader.take({input_.data(), static_cast<std::size_t>(size)}, tally_);
    const std::uint64_t wanted = connection.sent - connection.answered;
    on_answers(connection, std::min<std::uint64_t>(ended, wanted));
    const bool is_answered = connection.answered == connection.sent;
    if (!reader.has_failed() && (ended > wanted || (is_answered && !reader.is_between_responses()))) {
        ++tally_.malformed;
        fail(connection);
    } else if (reader.has_failed()) {
        fail(connection);
    } else if (is_answered && (options_.closes || reader.announces_end())) {
        ending_ += !connection.awaits_end;
        connection.awaits_end = true;
    } else if (is_answered || (is_open_loop() && phase_ != Phase::ramp)) {
        go_on(connection);
    }
}

// As recv does it, EAGAIN included.
std::ptrdiff_t LoadLoop::receive_some(Connection& connection) {
    if (!connection.tls) {
        return ::recv(connection.fd, input_.data(), input_.size(), 0);
    }
    const std::ptrdiff_t size = connection.tls->receive(input_.data(), input_.size());
    if (size == TlsStream::awaits_input || size == TlsStream::awaits_output) {
        errno = EAGAIN;
    } else if (size < 0 && errno == EAGAIN) {
        errno = EPROTO;
    }
    return size;
}

void LoadLoop::on_answers(Connection& connection, std::size_t count) {
    if (count == 0) {
        return;
    }
    last_answer_ns_ = now_ns();
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_paced = is_open_loop() && phase_ != Phase::ramp;
        const std::int64_t since_ns =
            is_paced ? due_at(number_of(connection, connection.answered)) : connection.sent_at_ns;
        figures_.latency_ns.record(
            static_cast<std::uint64_t>(std::max<std::int64_t>(last_answer_ns_ - since_ns, 0)));
        ++connection.answered;
    }
    figures_.requests += count;
    waiting_ -= count;
    connection.failures = 0;
    connection.has_answered = true;
}

void LoadLoop::on_end(Connection& connection) {
    if (connection.awaits_end) {
        close(connection);
        go_on(connection);
        return;
    }
    lose_requests(connection, connection.is_refused ? &tally_.refused : &tally_.closed);
    fail(connection);
}

// The connection is of no more use. What it was asked is lost: behind an answer that is none, which has been counted itself.
void LoadLoop::fail(Connection& connection) {
    std::uint64_t lost = 0;
    lose_requests(connection, &lost);
    tally_.malformed += lost - std::min<std::uint64_t>(lost, 1);
    close(connection);
    if (++connection.failures >= kFailureLimit) {
        give_up(connection);
    } else {
        retries_.push_back(&connection);
    }
}

void LoadLoop::give_up(Connection& connection) {
    connection.is_given_up = true;
    ++given_up_;
    connection.sent = connection.due;
    lose_requests(connection, &tally_.refused);
}

void LoadLoop::lose_requests(Connection& connection, std::uint64_t* kind) {
    const std::uint64_t lost = connection.sent - connection.answered;
    *kind += lost;
    waiting_ -= lost;
    connection.answered = connection.sent;
}

// The connection's next requests, if there are any to be made now.
void LoadLoop::go_on(Connection& connection) {
    if (connection.is_given_up) {
        return;
    }
    if (phase_ == Phase::ramp) {
        if (!connection.has_answered) {
            connection.due += options_.depth;
            waiting_ += options_.depth;
            request(connection, options_.depth);
        } else if (!connection.is_ramped) {
            connection.is_ramped = true;
            ++ramped_;
            if (ramp_next_ < connections_.size()) {
                retries_.push_back(&connections_[ramp_next_++]);
            }
        }
    } else if (is_open_loop()) {
        const std::uint64_t free = options_.depth - (connection.sent - connection.answered);
        const std::uint64_t count =
            connection.awaits_end ? 0 : std::min(free, connection.due - connection.sent);
        if (count > 0) {
            request(connection, count);
        }
    } else if (phase_ == Phase::flow && issued_ < most_requests_) {
        const std::uint64_t count = std::min<std::uint64_t>(options_.depth, most_requests_ - issued_);
        issued_ += count;
        waiting_ += count;
        connection.due += count;
        request(connection, count);
    }
}

void LoadLoop::schedule(std::int64_t now) {
    for (; issued_ < most_requests_ && due_at(issued_) <= now; ++issued_) {
        Connection& connection = connections_[issued_ % connections_.size()];
        if (connection.is_given_up) {
            ++tally_.refused;
            continue;
        }
        ++connection.due;
        ++waiting_;
        go_on(connection);
    }
}

void LoadLoop::request(Connection& connection, std::uint64_t count) {
    connection.sent_at_ns = now_ns();
    connection.sent += count;
    if (connection.fd < 0 && !open(connection)) {
        lose_requests(connection, &tally_.refused);
        fail(connection);
        return;
    }
    connection.unsent_bytes += count * request_bytes_;
    flush(connection);
}

bool LoadLoop::open(Connection& connection) {
    figures_.reopened += phase_ != Phase::ramp;
    connection.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int one = 1;
    ::setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    address.sin_addr.s_addr = htonl(options_.address);
    if (connection.fd < 0 ||
        (::connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
         errno != EINPROGRESS)) {
        return false;
    }
    watch(connection, EPOLL_CTL_ADD, EPOLLIN);
    return !connection.tls || connection.tls->open(connection.fd);
}

void LoadLoop::flush(Connection& connection) {
    while (connection.unsent_bytes > 0) {
        // What is unsent ends with a whole request, so this much of the first one has gone out already.
        const std::size_t begun =
            (request_bytes_ - connection.unsent_bytes % request_bytes_) % request_bytes_;
        const std::size_t size = std::min<std::uint64_t>(connection.unsent_bytes, requests_.size() - begun);
        const std::ptrdiff_t sent = send_some(connection, requests_.data() + begun, size);
        if (sent >= 0) {
            connection.unsent_bytes -= static_cast<std::uint64_t>(sent);
        } else if (errno == EAGAIN) {
            watch_output(connection, sent != TlsStream::awaits_input || !connection.tls);
            return;
        } else {
            // There is no connection any more. An answer may have come before, so the end is left to
            // receiving.
            connection.is_refused = errno == ECONNREFUSED;
            connection.unsent_bytes = 0;
        }
    }
    watch_output(connection, false);
}

// As send does it. Of TLS also what it waits for, with EAGAIN.
std::ptrdiff_t LoadLoop::send_some(Connection& connection, const char* data, std::size_t size) {
    if (!connection.tls) {
        return ::send(connection.fd, data, size, MSG_NOSIGNAL);
    }
    const std::ptrdiff_t sent = connection.tls->send(data, size);
    if (sent == TlsStream::awaits_input || sent == TlsStream::awaits_output) {
        errno = EAGAIN;
    } else if (sent <= 0) {
        const int cause = errno == EAGAIN ? EPROTO : errno;
        ::shutdown(connection.fd, SHUT_RDWR);  // receiving is told of the end, even by a server that stays
        errno = cause;
        return TlsStream::failed;
    }
    return sent;
}

void LoadLoop::watch_output(Connection& connection, bool is_wanted) {
    if (connection.watches_output != is_wanted) {
        watch(connection, EPOLL_CTL_MOD, is_wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
        connection.watches_output = is_wanted;
    }
}

void LoadLoop::watch(Connection& connection, int operation, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &connection;
    check(::epoll_ctl(epoll_, operation, connection.fd, &event) == 0, "epoll_ctl");
}

void LoadLoop::close(Connection& connection) {
    if (connection.tls) {
        connection.tls->close();
    }
    if (connection.fd >= 0) {
        ::close(connection.fd);
    }
    ending_ -= connection.awaits_end;
    connection.fd = -1;
    connection.awaits_end = connection.watches_output = connection.is_refused = false;
    connection.unsent_bytes = 0;
    connection.reader.reset();
}

// Requests are due at even distances, on one connection after the other.
std::int64_t LoadLoop::due_at(std::uint64_t number) const {
    return start_ns_ + to_ns(static_cast<double>(number) / options_.rate);
}

std::uint64_t LoadLoop::number_of(const Connection& connection, std::uint64_t own) const {
    return own * connections_.size() + static_cast<std::uint64_t>(&connection - connections_.data());
}

namespace {

std::string request_text(const Options& options) {
    std::string text = options.method + " " + options.path + " HTTP/1.1\r\nHost: 127.0.0.1:";
    text.append(std::to_string(options.port));
    text.append(options.closes ? "\r\nConnection: close" : "");
    if (options.body_bytes > 0 || options.method == "POST" || options.method == "PUT") {
        text.append("\r\nContent-Length: ").append(std::to_string(options.body_bytes));
    }
    text.append(options.is_json ? "\r\nContent-Type: application/json\r\n\r\n" : "\r\n\r\n");
    text.append(options.body_bytes, 'x');
    if (options.is_json) {
        text[text.size() - options.body_bytes] = text.back() = '"';
    }
    return text;
}

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * kNsPerS + now.tv_nsec;
}

double cpu_s() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void check(bool is_well, const char* what) {
    if (!is_well) {
        const bool is_missing = errno == ENOSYS;
        throw std::runtime_error(std::string(what) + ": " + std::strerror(errno) +
                                 (is_missing ? "; it takes Linux 5.11 or later: measure on such a kernel" : ""));
    }
}

}  // namespace

}  // namespace penstock::load
