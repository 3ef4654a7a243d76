// Public.
// How failure travels. On the data path an IoResult carries the number that the kernel gave; at
// set-up a Result<T> carries a sentence for a person. Nothing here owns anything but its string,
// and nothing is shared between threads.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace penstock {

// The outcome of one platform call on the data path: `count` bytes (or a descriptor, for calls that
// open one) when `error` is 0; otherwise `error` is an errno value and `count` is meaningless.
struct IoResult {
    std::int64_t count = 0;
    int error = 0;

    [[nodiscard]] bool ok() const { return error == 0; }
    [[nodiscard]] static IoResult success(std::int64_t count) { return {count, 0}; }
    [[nodiscard]] static IoResult failure(int error) { return {0, error}; }
};

// The kernel has nothing for us now; an edge will say when it has (man 2 recv, EAGAIN).
[[nodiscard]] constexpr bool is_would_block(int error) {
    return error == EAGAIN || error == EWOULDBLOCK;
}

// The machine or the process is out of something that may come back: descriptors or memory.
// The right answer is to pause and retry by timer, never to spin (man 2 accept).
[[nodiscard]] constexpr bool is_exhaustion(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// What went wrong at set-up, as one sentence that names the operation, the value and the way out.
struct Error {
    std::string message;
    int code = 0;  // the errno behind it, or 0
};

// A value or an Error. Used where a person reads the failure, never per request.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return content_.index() == 0; }
    explicit operator bool() const { return ok(); }
    // Only when ok().
    [[nodiscard]] T& value() { return std::get<0>(content_); }
    [[nodiscard]] const T& value() const { return std::get<0>(content_); }
    // Only when not ok().
    [[nodiscard]] const Error& error() const { return std::get<1>(content_); }

private:
    std::variant<T, Error> content_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), ok_(false) {}

    [[nodiscard]] bool ok() const { return ok_; }
    explicit operator bool() const { return ok_; }
    [[nodiscard]] const Error& error() const { return error_; }

private:
    Error error_;
    bool ok_ = true;
};

// "what: reason", where the reason is the C library's text for `code`.
[[nodiscard]] Error system_error(const std::string& what, int code);

}  // namespace penstock
