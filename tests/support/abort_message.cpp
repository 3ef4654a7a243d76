#include "support/abort_message.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

namespace penstock {

namespace {

[[noreturn]] void run_child(const std::function<void()>& body, int stderr_fd);

}  // namespace

std::string abort_message(const std::function<void()>& body) {
    std::array<int, 2> fds{};
    if (::pipe(fds.data()) != 0) {
        return "";
    }
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(fds[0]);
        run_child(body, fds[1]);
    }
    ::close(fds[1]);
    std::string message;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 1; child > 0 && count > 0;) {
        count = ::read(fds[0], buffer.data(), buffer.size());
        message.append(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    ::close(fds[0]);
    int status = 0;
    const bool waited = child > 0 && ::waitpid(child, &status, 0) == child;
    return waited && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? message : "";
}

namespace {

void run_child(const std::function<void()>& body, int stderr_fd) {
    constexpr unsigned kLimitSeconds = 20;  // then SIGALRM ends it
    ::alarm(kLimitSeconds);
    // doctest and the sanitizers catch SIGABRT to report it; here it is what is hoped for.
    std::signal(SIGABRT, SIG_DFL);
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(stderr_fd, STDERR_FILENO);
    body();
    ::_exit(0);
}

}  // namespace

}  // namespace penstock
