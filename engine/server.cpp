#include "penstock/engine/server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "penstock/engine/offload.h"
#include "penstock/engine/protocol.h"
#include "penstock/engine/reactor.h"
#include "penstock/engine/tls_context.h"
#include "penstock/engine/tls_random.h"
#include "penstock/platform/net.h"
#include "penstock/platform/thread.h"

namespace penstock {

namespace {

using TlsContexts = std::vector<std::shared_ptr<const TlsContext>>;

struct ListenRequest {
    ListenOptions options;
    std::shared_ptr<ProtocolFactory> factory;
    std::shared_ptr<TlsTickets> tickets;  // the same for as long as there is a server: what was handed out stays good
    TlsContexts tls;                      // for each reactor, until it is bound; empty for plain TCP
};

}  // namespace

struct Server::State {
    Config config;
    std::vector<ListenRequest> listeners;
    // Asked for by any thread, also while another is in `run`.
    std::array<std::atomic<std::uint16_t>, kListenerLimit> ports{};
    std::array<std::atomic<bool>, kListenerLimit> bound{};  // and so, of a Unix socket, its file is ours
    // Guards what `stop` from another thread would see half made: the list of reactors while it is filled or emptied. Never
    // held while anything waits.
    std::mutex stop_mutex;
    std::mutex reload_mutex;  // one after the other
    // The pool's threads post to the reactors, so `wait` ends it first; its queue refers to nothing after that.
    std::unique_ptr<OffloadPool> offload;
    std::vector<std::unique_ptr<Reactor>> reactors;
    std::vector<std::thread> threads;
    std::atomic<unsigned> running{0};
    std::atomic<platform::StopSignals*> waiter{nullptr};

    [[nodiscard]] Result<void> start();
    [[nodiscard]] Result<void> prepare();
    [[nodiscard]] Result<void> bind(std::size_t listener);
    [[nodiscard]] Result<void> start_threads();
    [[nodiscard]] Result<TlsContexts> load_tls(ListenRequest& request, std::size_t count) const;
    [[nodiscard]] Result<void> reload_tls();
    [[nodiscard]] std::size_t reactor_count();
    [[nodiscard]] platform::ListenTarget target_of(const ListenRequest& request) const;
    void run_reactor(Reactor& reactor);
    void request_stop(bool cut);
    void wait_for(platform::StopSignals& signals);
    [[nodiscard]] platform::Hangup hangup() const;
    void reload_after_hangup();
    void wait();
    void give_up();
    void forget_reactors();
    void log(LogLevel level, const std::string& line) const {
        if (config.log) {
            config.log(level, line);
        }
    }
};

Server::Server(Config config) : state_(std::make_unique<State>()) { state_->config = std::move(config); }

Server::~Server() {
    stop_now();
    wait();
}

void Server::listen(ListenOptions options, std::shared_ptr<ProtocolFactory> factory) {
    state_->listeners.push_back({std::move(options), std::move(factory), {}, {}});
}

Result<void> Server::start() {
    if (!state_->threads.empty()) {
        return Error{"the server is running already; call wait before starting it again"};
    }
    Result<void> result;
    try {
        result = state_->start();
    } catch (const std::exception& failure) {
        // No memory, or no threads for the offload pool.
        result = Error{std::string("the server cannot start: ") + failure.what() +
                       "; lower reactors, offload_threads or mailbox_limit, or raise the limits of memory and processes"};
    }
    if (!result.ok()) {
        state_->give_up();
    }
    return result;
}

Result<void> Server::State::start() {
    Result<void> result = prepare();
    for (std::size_t i = 0; i < listeners.size() && result.ok(); ++i) {
        result = bind(i);
    }
    return result.ok() ? start_threads() : result;
}

Result<void> Server::State::prepare() {
    if (auto valid = validate(config); !valid.ok()) {
        return valid;
    }
    if (listeners.empty()) {
        return Error{"the server has nothing to listen on; call listen before starting it"};
    }
    if (listeners.size() > kListenerLimit) {
        return Error{"the server has " + std::to_string(listeners.size()) + " listeners; at most " +
                     std::to_string(kListenerLimit) + " are possible"};
    }
    const unsigned count = config.reactors != 0 ? config.reactors : platform::usable_core_count();
    for (ListenRequest& request : listeners) {
        if (auto prepared = request.factory->prepare(config); !prepared.ok()) {
            return prepared;
        }
        if (request.options.tls.has_value()) {
            auto loaded = load_tls(request, count);
            if (!loaded.ok()) {
                return loaded.error();
            }
            request.tls = std::move(loaded.value());
        }
    }
    forget_reactors();
    offload = std::make_unique<OffloadPool>(config.offload_threads, std::size_t{count} * config.offload_limit);
    std::vector<std::unique_ptr<Reactor>> made;
    for (unsigned i = 0; i < count; ++i) {
        made.push_back(std::make_unique<Reactor>(config, i, offload.get()));
        if (auto opened = made.back()->open(); !opened.ok()) {
            return opened;
        }
    }
    const std::lock_guard lock(stop_mutex);
    reactors = std::move(made);
    return {};
}

platform::ListenTarget Server::State::target_of(const ListenRequest& request) const {
    platform::ListenTarget target;
    target.address = request.options.address;
    target.port = request.options.port;
    target.backlog = config.backlog;
    target.ipv6_only = request.options.ipv6_only;
    target.unix_mode = request.options.unix_mode;
    return target;
}

// One socket per reactor, all bound before any thread runs: a port that is taken is told while nothing is served yet,
// and the kernel's choice of socket never changes under a running server. A Unix socket has no such groups: there the
// reactors share one socket by duplicates of its descriptor.
Result<void> Server::State::bind(std::size_t listener) {
    ListenRequest& request = listeners[listener];
    platform::ListenTarget target = target_of(request);
    const bool is_unix = target.address.rfind("unix:", 0) == 0;
    int first = -1;
    for (const auto& reactor : reactors) {
        int fd = -1;
        if (is_unix && first >= 0) {
            const IoResult copy = platform::duplicate_descriptor(first);
            if (!copy.ok()) {
                return system_error("cannot share the socket of " + target.address, copy.error);
            }
            fd = static_cast<int>(copy.count);
        } else {
            auto opened = platform::open_listener(target);
            if (!opened.ok()) {
                return opened.error();
            }
            fd = opened.value();
        }
        if (first < 0) {
            first = fd;
            bound[listener].store(true);
            target.port = platform::bound_port(fd);
            ports[listener].store(target.port, std::memory_order_relaxed);
            target.join_group = true;
        }
        auto tls = request.tls.empty() ? nullptr : std::move(request.tls[reactor->number()]);
        if (auto added = reactor->add_listener(fd, *request.factory, std::move(tls)); !added.ok()) {
            return added;
        }
    }
    request.tls.clear();
    if (config.steering == Steering::receiving_cpu && !is_unix) {
        if (const int error = platform::steer_by_cpu(first, static_cast<unsigned>(reactors.size())); error != 0) {
            return system_error("cannot steer connections by CPU; use Steering::kernel_hash", error);
        }
    }
    return {};
}

Result<void> Server::State::start_threads() {
    try {
        for (const auto& reactor : reactors) {
            running.fetch_add(1, std::memory_order_relaxed);
            threads.emplace_back([this, &reactor = *reactor] { run_reactor(reactor); });
        }
    } catch (const std::system_error& failure) {
        return system_error("cannot start a thread for each of " + std::to_string(reactors.size()) +
                                " reactors; lower `reactors` or raise the limit of processes",
                            failure.code().value());
    }
    return {};
}

void Server::State::run_reactor(Reactor& reactor) {
    platform::block_signals_in_current_thread();
    platform::name_current_thread(("penstock-" + std::to_string(reactor.number())).c_str());
    if (config.pin_reactors) {
        if (const int error = platform::pin_current_thread(reactor.number()); error != 0) {
            reactor.log(LogLevel::warning, system_error("reactor " + std::to_string(reactor.number()) +
                                                            " runs without being pinned", error).message);
        }
    }
    reactor.run();
    if (running.fetch_sub(1) == 1) {
        if (platform::StopSignals* const signals = waiter.load()) {
            signals->notify();
        }
    }
}

void Server::State::give_up() {
    request_stop(true);
    wait();
    running.store(0, std::memory_order_relaxed);  // one may be counted whose thread could not be had
    forget_reactors();
}

void Server::State::forget_reactors() {
    std::vector<std::unique_ptr<Reactor>> former;
    const std::lock_guard lock(stop_mutex);
    former.swap(reactors);
}

void Server::stop() { state_->request_stop(false); }

void Server::stop_now() { state_->request_stop(true); }

// The files of Unix sockets go first, while their sockets still listen: what has that name afterwards is another server's.
void Server::State::request_stop(bool cut) {
    const std::lock_guard lock(stop_mutex);
    for (std::size_t i = 0; i < listeners.size() && i < kListenerLimit; ++i) {
        if (bound[i].exchange(false)) {
            platform::remove_socket_file(target_of(listeners[i]));
        }
    }
    for (const auto& reactor : reactors) {
        reactor->request_stop(cut);
    }
}

void Server::wait() { state_->wait(); }

void Server::State::wait() {
    for (std::thread& thread : threads) {
        thread.join();
    }
    threads.clear();
    if (offload != nullptr) {
        offload->stop();
    }
}

void Server::wait_for_signal(const std::function<void()>& ready) {
    platform::StopSignals signals(state_->hangup());
    if (ready) {
        ready();
    }
    state_->wait_for(signals);
}

void Server::State::wait_for(platform::StopSignals& signals) {
    if (signals.error() != 0) {
        log(LogLevel::error,
            system_error("signals cannot be watched: the server runs until it is stopped otherwise", signals.error()).message);
        wait();
        return;
    }
    // Sequentially consistent, like the two in run_reactor: of "here I wait" and "the last one has ended", one sees
    // the other.
    waiter.store(&signals);
    bool cut = false;
    while (running.load() > 0) {
        const int signal = signals.wait(-1);
        if (platform::StopSignals::is_hangup(signal)) {
            reload_after_hangup();
        } else if (signal > 0) {
            request_stop(std::exchange(cut, true));
        }
    }
    wait();
    waiter.store(nullptr);
}

platform::Hangup Server::State::hangup() const {
    const bool has_tls = std::any_of(listeners.begin(), listeners.end(), [](const auto& l) { return l.options.tls.has_value(); });
    return has_tls ? platform::Hangup::watched : platform::Hangup::ignored;
}

void Server::State::reload_after_hangup() {
    if (hangup() == platform::Hangup::ignored) {
        return;  // it was meant for another server of this process
    }
    const Result<void> reloaded = reload_tls();
    log(reloaded.ok() ? LogLevel::info : LogLevel::error,
        reloaded.ok() ? "SIGHUP: the certificates were read again" : "SIGHUP: the certificates stay as they were: " + reloaded.error().message);
}

int Server::run(const std::function<void()>& ready) {
    platform::StopSignals signals(state_->hangup());  // before anything can be seen of the server, and so be told to end
    if (!state_->config.log) {
        state_->config.log = [](LogLevel level, std::string_view line) {
            if (level >= LogLevel::warning) {
                std::fprintf(stderr, "penstock: %.*s\n", static_cast<int>(line.size()), line.data());
            }
        };
    }
    if (const auto started = start(); !started.ok()) {
        std::fprintf(stderr, "%s\n", started.error().message.c_str());
        return 1;
    }
    if (ready) {
        ready();
    }
    state_->wait_for(signals);
    return 0;
}

Result<void> Server::reload_tls() { return state_->reload_tls(); }

// One for all reactors, or one for each where clients show certificates: of those wolfSSL keeps something (TlsContext::forget_shown).
Result<TlsContexts> Server::State::load_tls(ListenRequest& request, std::size_t count) const {
    const TlsOptions& options = *request.options.tls;
    // Who resumes a session is not asked for a certificate again, so where one is asked for, none is resumed.
    const bool resumes = options.ticket_lifetime_s > 0 && options.client_certificate == ClientCertificate::none;
    if (resumes && request.tickets == nullptr) {
        request.tickets = std::make_shared<TlsTickets>(options.ticket_lifetime_s, &random_bytes);
    }
    TlsContexts loaded;
    while (loaded.size() < count) {
        if (!loaded.empty() && options.client_certificate == ClientCertificate::none) {
            loaded.push_back(loaded.front());
            continue;
        }
        auto result = TlsContext::load(options, request.factory->application_protocols(), resumes ? request.tickets : nullptr);
        if (!result.ok()) {
            return result.error();
        }
        loaded.push_back(std::move(result.value()));
    }
    return loaded;
}

std::size_t Server::State::reactor_count() {
    const std::lock_guard lock(stop_mutex);
    return reactors.size();
}

// All are read before any is given out, so that a file that is wrong changes nothing.
Result<void> Server::State::reload_tls() {
    const std::lock_guard reload_lock(reload_mutex);
    std::vector<TlsContexts> loaded(listeners.size());
    const std::size_t count = reactor_count();
    for (std::size_t i = 0; i < listeners.size(); ++i) {
        if (listeners[i].options.tls.has_value()) {
            auto result = load_tls(listeners[i], std::max<std::size_t>(count, 1));
            if (!result.ok()) {
                return result.error();
            }
            loaded[i] = std::move(result.value());
        }
    }
    const std::lock_guard lock(stop_mutex);
    if (reactors.size() != count) {
        return Error{"the server was started or has ended meanwhile; call reload_tls again"};
    }
    for (const auto& reactor : reactors) {
        TlsContexts its;  // by listener
        for (const TlsContexts& of_one : loaded) {
            its.push_back(of_one.empty() ? nullptr : of_one[reactor->number()]);
        }
        if (!reactor->try_post(Message([reactor = reactor.get(), its = std::move(its)] {
                for (std::size_t i = 0; i < its.size(); ++i) {
                    if (its[i] != nullptr) {
                        reactor->set_tls(i, its[i]);
                    }
                }
            }))) {
            return Error{"reactor " + std::to_string(reactor->number()) +
                         " was not given the new certificates, its mailbox is full or it has ended; call reload_tls again"};
        }
    }
    return {};
}

std::uint16_t Server::port(std::size_t listener) const {
    return listener < kListenerLimit ? state_->ports[listener].load(std::memory_order_relaxed) : std::uint16_t{0};
}

unsigned Server::reactor_count() const { return static_cast<unsigned>(state_->reactors.size()); }

ReactorStats Server::stats() const {
    ReactorStats sum;
    for (const ReactorStats& stats : reactor_stats()) {
        sum += stats;
    }
    return sum;
}

std::vector<ReactorStats> Server::reactor_stats() const {
    std::vector<ReactorStats> result;
    for (const auto& reactor : state_->reactors) {
        result.emplace_back(reactor->counters());
    }
    return result;
}

bool Server::post(unsigned reactor, std::function<void()> function) {
    if (reactor >= state_->reactors.size()) {
        return false;
    }
    return state_->reactors[reactor]->try_post(Message([state = state_.get(), function = std::move(function)] {
        try {
            function();
        } catch (const std::exception& exception) {
            state->log(LogLevel::error, std::string("a posted function threw: ") + exception.what());
        } catch (...) {
            state->log(LogLevel::error, "a posted function threw something that is no std::exception");
        }
    }));
}

unsigned current_reactor() {
    const Reactor* const reactor = Reactor::current();
    if (reactor == nullptr) {
        throw std::logic_error("current_reactor: called off a reactor's thread");
    }
    return reactor->number();
}

}  // namespace penstock
