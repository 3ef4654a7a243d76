// Internal.
// The calls that a turn of the loop makes for each request or connection, as short as the system lets them be. The C
// library's functions for them are points at which a thread can be cancelled; to be one costs more than all else that
// they do, and no thread of ours is ever cancelled. So the kernel is asked directly where that is written down here,
// and the library otherwise. Under a sanitizer it is always the library, whose functions are watched to learn of
// memory that the kernel writes and of what happens before what.
//
// They return what the kernel does, a result of 0 or more or the negative of an errno; of closing, which has nothing to tell
// that could be acted upon, nothing. Any thread.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__linux__) && defined(__x86_64__) && defined(__LP64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define PENSTOCK_DIRECT_CALLS 1
#include <sys/syscall.h>
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef PENSTOCK_DIRECT_CALLS
#endif
#endif
#endif

namespace penstock::platform {

#ifdef PENSTOCK_DIRECT_CALLS
// The kernel takes its arguments in these registers, and spoils rcx and r11 (System V ABI for x86-64, appendix A.2).
inline long kernel_call(long number, long first, const void* second, std::uintptr_t third, long fourth) {
    register long r10 asm("r10") = fourth;
    register long r8 asm("r8") = 0;
    register long r9 asm("r9") = 0;
    long result = number;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}
#endif

// What a function of the library has returned.
inline long or_negative_errno(long result) {
    return result < 0 ? -static_cast<long>(errno) : result;
}

inline long call_receive(int fd, void* data, std::size_t size) {
#ifdef PENSTOCK_DIRECT_CALLS
    return kernel_call(SYS_recvfrom, fd, data, size, 0);
#else
    return or_negative_errno(::recv(fd, data, size, 0));
#endif
}

inline long call_send(int fd, const void* data, std::size_t size, int flags) {
#ifdef PENSTOCK_DIRECT_CALLS
    return kernel_call(SYS_sendto, fd, data, size, flags);
#else
    return or_negative_errno(::send(fd, data, size, flags));
#endif
}

inline long call_accept(int fd, sockaddr* address, socklen_t* size, int flags) {
#ifdef PENSTOCK_DIRECT_CALLS
    return kernel_call(SYS_accept4, fd, address, reinterpret_cast<std::uintptr_t>(size), flags);
#else
    return or_negative_errno(::accept4(fd, address, size, flags));
#endif
}

inline void call_close(int fd) {
#ifdef PENSTOCK_DIRECT_CALLS
    (void)kernel_call(SYS_close, fd, nullptr, 0, 0);
#else
    ::close(fd);
#endif
}

}  // namespace penstock::platform
