#include "penstock/engine/reactor.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "penstock/engine/ensure.h"
#include "penstock/engine/http_date.h"
#include "penstock/engine/offload.h"
#include "penstock/engine/tls_session.h"
#include "penstock/engine/tls_work.h"
#include "penstock/platform/clock.h"
#include "penstock/platform/net.h"

namespace penstock {

namespace {

thread_local Reactor* t_current = nullptr;

// Tokens above any connection's index name listeners.
constexpr std::uint32_t kListenerIndex = 0xffff'0000;

class CurrentReactor {
public:
    explicit CurrentReactor(Reactor* reactor) : outer_(std::exchange(t_current, reactor)) {}
    ~CurrentReactor() { t_current = outer_; }
    CurrentReactor(const CurrentReactor&) = delete;
    CurrentReactor& operator=(const CurrentReactor&) = delete;

private:
    Reactor* const outer_;
};

}  // namespace

Reactor* Reactor::current() { return t_current; }

Reactor::Reactor(const Config& config, unsigned number, OffloadPool* offload)
    : config_(config), number_(number), offload_(offload), start_ms_(platform::monotonic_ms()),
      blocks_(kIoBlockBytes, config.io_block_limit, config.free_block_limit),
      pages_(kPageBytes, config.page_limit, config.free_block_limit),
      connections_(config.connection_limit + config.refusal_limit), deadlines_(0), alarms_(0),
      mailbox_(config.mailbox_limit, poller_),
      // One more than may be under way: the place of a reply that is being run is free only when it returns, and by
      // then it may have brought about the next.
      replies_(config.offload_limit + 1, poller_),
      scratch_(new std::byte[kIoBlockBytes]), ready_(connections_), starved_(connections_),
      closed_(connections_) {
    std::memcpy(date_field_.data(), "Date: ", 6);
    std::memcpy(date_field_.data() + 6 + kHttpDateBytes, "\r\n", 2);
    link_->reactor = this;
    dirty_.reserve(std::size_t{config.connection_limit} + config.refusal_limit);
    update_clock();
}

Reactor::~Reactor() {
    {
        const std::lock_guard lock(link_->mutex);
        link_->reactor = nullptr;
    }
    const CurrentReactor scope(this);
    mailbox_.close();
    cut_all();
    finish_turn();
    listeners_.clear();
    locals_.clear();  // they still count
    alarms_.clear();  // timers of the program may outlive this
}

Result<void> Reactor::open() { return poller_.open(); }

Result<void> Reactor::add_listener(int fd, const ProtocolFactory& factory, std::shared_ptr<const TlsContext> tls) {
    const std::size_t number = listeners_.size();
    ensure(number < kListenerLimit, "reactor: more listeners than a slot can name");
    protocols_.push_back(factory.create(*this));
    if (tls != nullptr && tls_work_ == nullptr) {
        tls_work_ = std::make_unique<TlsWork>();
    }
    listeners_.push_back(std::make_unique<Listener>(*this, fd, *protocols_.back(), factory, std::move(tls)));
    const ConnectionToken token{kListenerIndex + static_cast<std::uint32_t>(number), 0};
    const int error = poller_.add(fd, token.pack());
    return error == 0 ? Result<void>() : Result<void>(system_error("cannot watch the listening socket", error));
}

void Reactor::set_tls(std::size_t listener, std::shared_ptr<const TlsContext> tls) { listeners_[listener]->set_tls(std::move(tls)); }

void Reactor::run() {
    while (run_turn(-1)) {
    }
}

// The order of a turn. The clock is read once, right after the wait, so that everything sees one time. Events come
// before timers: a request that arrived just now beats its connection's idle deadline. Messages follow, then
// new clients, who may wait behind those already served. The ready list then gives a second share to those that
// stopped early, once everybody had a first. Output for other connections is flushed once, when nothing more
// can be added to it; and slots are taken apart at the very end, so no pointer goes stale within a turn.
bool Reactor::run_turn(int max_wait_ms) {
    const CurrentReactor scope(this);
    const platform::PollResult polled = poller_.wait(choose_timeout(max_wait_ms), clock_ms_);
    if (polled.error != 0) [[unlikely]] {
        stop_for_fault(polled.error);
        return false;
    }
    counters_.turns.add();
    update_clock();
    if (tls_work_ != nullptr) {
        tls_work_->begin_turn();
    }
    dispatch(polled.events);
    expire_timers();
    if (polled.woken || more_to_do_) {
        run_rest_of_turn(polled.woken);
    } else {
        ensure_debug(!has_work() && starved_.empty(), "reactor: work was added without a word about it");
    }
    if (draining_) [[unlikely]] {
        check_drain();
    }
    return !stopped_;
}

void Reactor::run_rest_of_turn(bool woken) {
    if (woken || messages_left_) {
        run_messages();
    }
    if (clients_wait_) {
        accept_pending();
    }
    run_ready();
    finish_turn();
    more_to_do_ = has_work() || !starved_.empty();  // who is starved waits for any block that comes back, whoever had it
}

// A poller that fails would fail for ever, and the loop would spin: the reactor ends instead, and says why.
void Reactor::stop_for_fault(int error) {
    log(LogLevel::error, system_error("reactor " + std::to_string(number_) + " ends, its poller has failed", error).message);
    mailbox_.close();
    cut_all();
    finish_turn();
    end();
}

bool Reactor::has_work() const {
    return !ready_.empty() || !closed_.empty() || !dirty_.empty() || messages_left_ || clients_wait_;
}

inline int Reactor::choose_timeout(int max_wait_ms) {
    if (more_to_do_ && has_work()) {
        return 0;
    }
    // Unsigned, -1 for "never" is the longest of all.
    auto timeout = static_cast<unsigned>(max_wait_ms);
    timeout = std::min(timeout, static_cast<unsigned>(deadlines_.next_timeout_ms()));
    timeout = std::min(timeout, static_cast<unsigned>(alarms_.next_timeout_ms()));
    if (draining_ && !cut_) [[unlikely]] {
        timeout = std::min(timeout, static_cast<unsigned>(std::max(0, static_cast<std::int32_t>(drain_deadline_ms_ - now_ms_))));
    }
    return static_cast<int>(timeout);
}

inline void Reactor::update_clock() {
    clock_ms_ = platform::monotonic_ms();
    now_ms_ = static_cast<std::uint32_t>(clock_ms_ - start_ms_);
    if (now_ms_ - date_set_ms_ >= date_holds_ms_) [[unlikely]] {
        update_date();
    }
}

// The wall clock is asked again when its second must be over. Who sets it meanwhile is noticed then, within a second.
void Reactor::update_date() {
    constexpr std::int64_t kSecond = 1000;
    const std::int64_t wall = platform::wall_ms();
    const std::int64_t into_second = (wall % kSecond + kSecond) % kSecond;
    date_seconds_ = (wall - into_second) / kSecond;
    write_http_date(date_seconds_, date_field_.data() + 6);
    date_set_ms_ = now_ms_;
    date_holds_ms_ = static_cast<std::uint32_t>(kSecond - into_second);
}

inline void Reactor::dispatch(std::span<const platform::PollEvent> events) {
    for (const platform::PollEvent& event : events) {
        const ConnectionToken token = ConnectionToken::unpack(event.token);
        if (Connection* connection = connections_.find(token)) [[likely]] {
            connection->handle_event(event);
        } else {
            dispatch_to_none(token);
        }
    }
}

void Reactor::dispatch_for_test(const platform::PollEvent& event) { dispatch({&event, 1}); }

// No connection has this name: it is a listener's, or one that has ended.
void Reactor::dispatch_to_none(ConnectionToken token) {
    if (token.index >= kListenerIndex) {
        listeners_[token.index - kListenerIndex]->on_readable();
    } else {
        counters_.stale_events.add();
    }
}

inline void Reactor::expire_timers() {
    const bool deadlines_came = deadlines_.advance(now_ms_);
    const bool alarms_came = alarms_.advance(now_ms_);
    if (deadlines_came || alarms_came) [[unlikely]] {
        run_due_timers();
    }
}

void Reactor::run_due_timers() {
    while (TimerNode* node = deadlines_.pop_due()) {
        auto* const slot = reinterpret_cast<std::byte*>(node) - offsetof(Connection, timer_);
        reinterpret_cast<Connection*>(slot)->handle_deadline();
    }
    alarms_.advance(now_ms_);  // once more: a deadline may just have set one that is due
    while (TimerNode* node = alarms_.pop_due()) {
        auto* const alarm = static_cast<Alarm*>(node);
        alarm->ring(alarm->context);
    }
}

void Reactor::run_messages() {
    const std::uint8_t stop = stop_requested_.load(std::memory_order_acquire);
    if (stop != 0 && !draining_) {
        begin_drain();
    }
    if (stop == 2) {
        drain_deadline_ms_ = now_ms_;
    }
    replies_.run(kMessagesPerTurn);
    mailbox_.run(kMessagesPerTurn);
    messages_left_ = replies_.has_more() || mailbox_.has_more();
}

void Reactor::accept_pending() {
    bool more_wait = false;
    for (const auto& listener : listeners_) {
        listener->accept_some();
        more_wait |= listener->pending();
    }
    clients_wait_ = more_wait;
}

void Reactor::adopt(int fd, const PeerAddress& peer, Protocol& protocol, std::string_view refusal, const TlsAcceptor* tls) {
    Connection* const connection = connections_.try_acquire();
    if (connection == nullptr) {
        platform::close_descriptor(fd);
        return;
    }
    connection->fd_ = fd;
    connection->peer_ = peer;
    connection->protocol_ = &protocol;
    connection->edges_ = Connection::kReadable | Connection::kWritable | Connection::kArriving;
    connection->change_state(ConnectionState::open);
    if (refusal.empty()) {
        counters_.active.add();
        connection->set_deadline_in(tls != nullptr && !draining_ ? config_.tls_handshake_timeout_ms : first_deadline_ms());
        if (tls == nullptr || connection->start_tls(*tls)) {
            connection->read_some();
        } else {
            connection->close();
        }
    } else {
        connection->flags_ = Connection::kRefused;
        ++refused_open_;
        if (connection->output_.try_append_external(blocks_, refusal, nullptr, nullptr)) {
            connection->finish(Linger::yes);
            connection->flush();
        } else {
            connection->close();
        }
    }
    if (connection->state_ != ConnectionState::closed) {
        connection->link_noted_deadline();
        register_with_poller(*connection);
    }
}

// Found in the queue by a drain: served if it asks soon, but not waited for.
std::uint32_t Reactor::first_deadline_ms() const {
    return draining_ ? std::max(config_.linger_timeout_ms, 1u) : config_.idle_timeout_ms;
}

// Late, and only what stays open: a connection that was answered and closed costs no call for it. Being already
// readable makes an event, so nothing that came since the last receive is lost.
void Reactor::register_with_poller(Connection& connection) {
    const int error = poller_.add(connection.fd_, connection.token().pack());
    if (error != 0) {
        counters_.accept_errors.add();
        log(LogLevel::warning, std::string("a connection was dropped, it cannot be watched: ") + std::strerror(error));
        connection.close();
    }
}

// Those that were ready when it began; what becomes ready meanwhile has its turn in the next one.
void Reactor::run_ready() {
    if (tls_work_ != nullptr) {
        tls_work_->begin_second_share();
    }
    for (std::uint32_t left = ready_.size(); left > 0; --left) {
        Connection* const connection = ready_.pop_front();
        if (connection == nullptr) {
            return;  // others were closed by those before them
        }
        connection->flags_ &= static_cast<std::uint8_t>(~Connection::kReady);
        connection->continue_work();
    }
}

void Reactor::finish_turn() {
    for (int pass = 0; pass < kClosePasses; ++pass) {
        flush_dirty();
        take_apart_closed();
        if (!starved_.empty()) {
            relieve_starved();
        }
        if (closed_.empty() && dirty_.empty()) {
            break;
        }
    }
}

void Reactor::flush_dirty() {
    while (!dirty_.empty()) {
        Connection& connection = connections_.at(dirty_.back());
        dirty_.pop_back();
        connection.flags_ &= static_cast<std::uint8_t>(~Connection::kDirty);
        connection.flush();
    }
}

void Reactor::take_apart_closed() {
    for (std::uint32_t left = closed_.size(); left > 0; --left) {
        take_apart(*closed_.pop_front());
    }
}

void Reactor::take_apart(Connection& connection) {
    const bool was_busy = connection.session_ != nullptr;
    connection.protocol_->on_close(connection);
    connection.end_tls(was_busy);
    deadlines_.cancel(connection.timer_);
    connection.output_.clear(blocks_);
    if (connection.input_.has_block()) {
        blocks_.release(connection.input_.detach());
    }
    platform::close_descriptor(std::exchange(connection.fd_, -1));
    if (connection.has(Connection::kRefused)) {
        --refused_open_;
    } else {
        counters_.active.subtract();
        counters_.closed.add();
    }
    if (connection.has(Connection::kDirty)) {
        flush_dirty();  // marked by its own on_close: it must not stay on that list
    }
    connection.flags_ = 0;
    connection.edges_ = 0;
    connection.session_ = nullptr;
    connection.input_ = Input();
    connections_.release(connection);
}

void Reactor::make_ready(Connection& connection) {
    if (connection.has(Connection::kReady) || connection.state_ == ConnectionState::closed) {
        return;
    }
    end_starvation(connection);  // it has something to do that needs no block; if it reads, it will wait again
    connection.flags_ |= Connection::kReady;
    ready_.push_back(connection);
    more_to_do_ = true;
}

void Reactor::make_dirty(Connection& connection) {
    if (!connection.has(Connection::kDirty)) {
        connection.flags_ |= Connection::kDirty;
        dirty_.push_back(connection.index_);
        more_to_do_ = true;
    }
}

void Reactor::make_closed(Connection& connection) {
    if (connection.has(Connection::kReady)) {
        ready_.remove(connection);
    } else if (connection.has(Connection::kStarved)) {
        starved_.remove(connection);
    }
    connection.flags_ &= static_cast<std::uint8_t>(~(Connection::kReady | Connection::kStarved));
    closed_.push_back(connection);
    more_to_do_ = true;
}

void Reactor::request_stop(bool cut) {
    std::uint8_t wanted = cut ? 2 : 1;
    std::uint8_t current = stop_requested_.load(std::memory_order_relaxed);
    while (current < wanted && !stop_requested_.compare_exchange_weak(current, wanted, std::memory_order_release)) {
    }
    poller_.wake();
}

void Reactor::begin_drain() {
    draining_ = true;
    drain_deadline_ms_ = now_ms_ + config_.drain_timeout_ms;
    for (const auto& listener : listeners_) {
        listener->begin_drain();
    }
    connections_.for_each([this](Connection& connection) {
        if (connection.state_ == ConnectionState::open && connection.in_handshake()) {
            connection.tighten_deadline_in(first_deadline_ms());
        } else if (connection.state_ == ConnectionState::open) {
            connection.protocol_->on_drain(connection);
            connection.flush_later();
        }
    });
}

void Reactor::check_drain() {
    if (!idle() && static_cast<std::int32_t>(now_ms_ - drain_deadline_ms_) >= 0) {
        counters_.cut_by_drain.add(connections_.in_use());
        cut_ = true;
        cut_all();
        finish_turn();
    }
    if (idle()) {
        // What was posted before this runs: whoever posted was told that it would.
        mailbox_.close();
        while (mailbox_.run(kMessagesPerTurn) > 0) {
        }
        finish_turn();
        if (idle()) {
            end();
        }
    }
}

// Nothing is under way. Offloaded functions refer into this reactor, so it outlives them whatever the deadline says.
bool Reactor::idle() const {
    return connections_.in_use() == 0 && offloads_in_flight_ == 0 &&
           std::all_of(listeners_.begin(), listeners_.end(), [](const auto& l) { return l->fd() < 0; });
}

void Reactor::cut_all() {
    for (const auto& listener : listeners_) {
        listener->close();
    }
    connections_.for_each([](Connection& connection) { connection.close(); });
}

bool Reactor::try_offload(Message&& job, Message&& reply) {
    if (offload_ == nullptr || offloads_in_flight_ >= config_.offload_limit) {
        return false;
    }
    // Made now: memory that is refused when the job is done would end the pool's thread, and the process with it.
    Message done([this, reply = std::move(reply)]() mutable {
        --offloads_in_flight_;
        reply();
    });
    const bool submitted = offload_->try_submit(
        Message([this, job = std::move(job), done = std::move(done)]() mutable {
            job();
            const bool posted = replies_.try_post(std::move(done));
            ensure(posted, "reactor: an offloaded function's reply has no place");
        }));
    offloads_in_flight_ += submitted ? 1 : 0;  // its reply comes on this thread, so not before this
    return submitted;
}

void Reactor::log(LogLevel level, std::string_view line) const {
    if (config_.log) {
        config_.log(level, line);
    }
}

}  // namespace penstock
