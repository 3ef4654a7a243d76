// Public.
// A server: listeners, and N reactors that serve them, each on a thread of its own with its own sockets, loop and
// memory. Several servers in one process do not know of each other.
//
// Owned by the user. `listen`, `start`, `wait`, `run` belong to one thread at a time; what says "any thread" does not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/engine/metrics.h"
#include "penstock/engine/tls.h"
#include "penstock/platform/error.h"

namespace penstock {

class ProtocolFactory;

struct ListenOptions {
    // "": every address, IPv4 and IPv6. "127.0.0.1", "::1", or "unix:/path/to/socket".
    std::string address{};
    // 0: the kernel chooses; `Server::port` tells. Ignored for Unix sockets.
    std::uint16_t port = 0;
    // An IPv6 address does not take IPv4 clients as well.
    bool ipv6_only = false;
    // Permissions of a Unix socket's file.
    unsigned unix_mode = 0660;
    // With it the listener speaks TLS, and nothing else.
    std::optional<TlsOptions> tls{};
};

class Server {
public:
    explicit Server(Config config = {});
    // Stops at once what still runs, and waits for it.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Before `start`. What is wrong with it is told there. What `source` holds is taken now: routes that are added to a
    // Router afterwards are not served.
    void listen(ListenOptions options, std::shared_ptr<ProtocolFactory> factory);
    // Anything that a protocol can be made of, found by make_protocol_factory(source): a Router.
    template <class Source>
    void listen(ListenOptions options, const Source& source) {
        listen(std::move(options), make_protocol_factory(source));
    }

    // Checks the configuration, binds every socket, then starts the threads. On an error nothing runs and nothing
    // is bound. Installs no signal handlers, prints nothing. A stop before it has no effect.
    [[nodiscard]] Result<void> start();
    // Begins to drain: no new connections, what is under way is answered, within drain_timeout_ms. Any thread while the
    // server is started.
    void stop();
    // Does not wait for what is under way. Any thread while the server is started.
    void stop_now();
    // Until all reactors have ended.
    void wait();
    // Until SIGTERM, SIGINT or `stop`; then drains; a second signal cuts. Where a listener has TLS, SIGHUP calls reload_tls, and what
    // came of it is logged. The signals' former handlers are put back.
    // `ready` is called as soon as signals are caught: the time to say that the server runs, since whoever hears of it may
    // end it at once.
    void wait_for_signal(const std::function<void()>& ready = {});
    // All of it: start, wait_for_signal. Returns the program's exit status: 0, or 1 with a line on stderr when it could not
    // start. Without a `Config::log`, warnings and errors go to stderr.
    // `ready` is called when it serves, for what a program does with a running server (`post`, a Timer).
    [[nodiscard]] int run(const std::function<void()>& ready = {});

    // Reads the files of every listener's TlsOptions again; whoever connects from then on is shown the new certificates, and open
    // connections stay as they are. When a file is wrong all listeners keep what they have; when a reactor cannot be told of
    // the new ones, because its mailbox is full or it has ended, those before it have them already. It reads and checks files, so not
    // on a reactor's thread. Any thread while the server is started.
    [[nodiscard]] Result<void> reload_tls();

    // The port that the `listener`-th listener is bound to, counted from 0; 0 before `start` and for Unix sockets. Any
    // thread.
    [[nodiscard]] std::uint16_t port(std::size_t listener = 0) const;
    [[nodiscard]] unsigned reactor_count() const;
    // Counters of all reactors added up, or of each; also after the end. Any thread while the server is started.
    [[nodiscard]] ReactorStats stats() const;
    [[nodiscard]] std::vector<ReactorStats> reactor_stats() const;

    // Runs the function on a reactor's thread, soon. False, with nothing run, when that reactor's mailbox is full, or
    // it has ended, or there is none of that number. Any thread while the server is started.
    [[nodiscard]] bool post(unsigned reactor, std::function<void()> function);

private:
    struct State;
    std::unique_ptr<State> state_;
};

// The number of the reactor whose thread calls, as `Server::post` takes it: in handlers and their callbacks, posted functions
// and Timers. Throws std::logic_error elsewhere.
[[nodiscard]] unsigned current_reactor();

}  // namespace penstock
