#include "penstock/platform/thread.h"

#include <csignal>
#include <initializer_list>

namespace penstock::platform {

void block_signals_in_current_thread() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    // Raised by the thread's own fault. A blocked one kills the process without running the handler that
    // would tell where (man 2 sigprocmask): sanitizers and crash reporters need them open.
    for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
        ::sigdelset(&blocked, fatal);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

}  // namespace penstock::platform
