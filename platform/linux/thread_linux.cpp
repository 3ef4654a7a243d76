#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "penstock/platform/thread.h"

namespace penstock::platform {

namespace {

struct FreeCpuSet {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

// The cores of the calling thread, in a set of as many bits as this kernel needs.
struct UsableCores {
    std::unique_ptr<cpu_set_t, FreeCpuSet> set;
    std::size_t size = 0;  // bytes
    unsigned limit = 0;    // numbers the set can hold
    unsigned count = 0;
    int error = 0;
};

// Linux can be built for 8192 processors (CONFIG_NR_CPUS); the rest is room to grow.
constexpr unsigned kMaxCoreNumbers = 1U << 16;

UsableCores read_usable_cores();

}  // namespace

unsigned usable_core_count() {
    const unsigned count = read_usable_cores().count;
    return count == 0 ? 1 : count;
}

int pin_current_thread(unsigned index) {
    const UsableCores cores = read_usable_cores();
    if (cores.error != 0) {
        return cores.error;
    }
    unsigned to_skip = index % cores.count;
    for (unsigned core = 0; core < cores.limit; ++core) {
        if (!CPU_ISSET_S(core, cores.size, cores.set.get()) || to_skip-- != 0) {
            continue;
        }
        CPU_ZERO_S(cores.size, cores.set.get());
        CPU_SET_S(core, cores.size, cores.set.get());
        return ::sched_setaffinity(0, cores.size, cores.set.get()) == 0 ? 0 : errno;
    }
    return EINVAL;
}

void name_current_thread(const char* name) {
    constexpr std::size_t kMaxNameBytes = 15;  // longer ones are refused, not cut (man 3 pthread_setname_np)
    ::pthread_setname_np(::pthread_self(), std::string(name).substr(0, kMaxNameBytes).c_str());
}

namespace {

// A set smaller than the kernel's own is refused with EINVAL, whatever bits are in use, and a plain cpu_set_t
// holds 1024 (man 2 sched_setaffinity, "Handling systems with large CPU affinity masks").
UsableCores read_usable_cores() {
    UsableCores cores;
    cores.error = EINVAL;
    for (unsigned limit = CPU_SETSIZE; limit <= kMaxCoreNumbers && cores.error == EINVAL; limit *= 2) {
        cores.limit = limit;
        cores.size = CPU_ALLOC_SIZE(limit);
        cores.set.reset(CPU_ALLOC(limit));
        if (cores.set == nullptr) {
            cores.error = ENOMEM;
            break;
        }
        CPU_ZERO_S(cores.size, cores.set.get());
        cores.error = ::sched_getaffinity(0, cores.size, cores.set.get()) == 0 ? 0 : errno;
    }
    if (cores.error == 0) {
        cores.count = static_cast<unsigned>(CPU_COUNT_S(cores.size, cores.set.get()));
    }
    return cores;
}

}  // namespace

}  // namespace penstock::platform
