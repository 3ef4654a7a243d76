// Internal.
// Reads all that one client was sent, as a client would that trusts nothing: heads, bodies by their framing, and the order.
// What is cut short at the end is fine, since connections may end anywhere. Functions only; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "http/http_text.h"

namespace penstock::test {

class StormAnswers {
public:
    // `heads`: of each request that was sent, whether it was a HEAD.
    StormAnswers(std::string_view received, const std::vector<bool>& heads) : rest_(received), heads_(heads) {}

    // "", or what is wrong.
    [[nodiscard]] std::string fault() {
        while (!rest_.empty() && fault_.empty()) {
            read_answer();
        }
        return fault_;
    }

private:
    void read_answer();
    void read_body(const Reply& reply);
    void read_chunks();
    [[nodiscard]] bool read_chunk();
    void check_order(const Reply& reply);
    // As far as it has come.
    [[nodiscard]] bool begins_with(std::string_view text) const {
        const std::size_t size = std::min(text.size(), rest_.size());
        return rest_.substr(0, size) == text.substr(0, size);
    }
    void skip(std::size_t size) { rest_.remove_prefix(std::min(size, rest_.size())); }
    void fail(std::string_view what) { fault_ = std::string(what) + ": " + std::string(rest_.substr(0, 80)); }

    std::string_view rest_;
    const std::vector<bool>& heads_;
    std::size_t answers_ = 0;
    long last_id_ = -1;
    bool closed_ = false;
    std::string body_;
    std::string fault_;
};

inline void StormAnswers::read_answer() {
    if (closed_) {
        return fail("something behind the last answer");
    }
    if (!begins_with("HTTP/1.1 ")) {
        return fail("no status line");
    }
    const std::size_t end = rest_.find("\r\n\r\n");
    if (end == std::string_view::npos) {
        rest_ = {};
        return;
    }
    Reply reply;
    reply.status = status_of(rest_);
    reply.head = rest_.substr(0, end + 4);
    skip(end + 4);
    if (reply.status == 100) {
        return;
    }
    closed_ = reply.field("Connection") == "close";
    // Whoever comes above the connection limit is refused unread, by a text that has no date.
    const bool refused_unread = reply.status == 503 && !reply.has_field("Date");
    if (answers_ >= heads_.size() && !refused_unread) {
        return fail("more answers than requests");
    }
    if ((reply.status == 400 || reply.status == 408 || reply.status == 413) && !closed_) {
        return fail("a fault behind which the connection goes on");
    }
    check_order(reply);
    const bool head_only = answers_ < heads_.size() && heads_[answers_];
    ++answers_;
    if (head_only && closed_ && reply.status >= 400) {
        rest_ = {};  // it may have ended before its method was known
    } else if (!head_only) {
        read_body(reply);
    }
}

inline void StormAnswers::check_order(const Reply& reply) {
    if (reply.has_field("X-Id")) {
        const long id = std::stol(reply.field("X-Id"));
        if (id <= last_id_) {
            fail("an answer comes late, or twice");
        }
        last_id_ = id;
    }
}

inline void StormAnswers::read_body(const Reply& reply) {
    body_.clear();
    if (reply.field("Transfer-Encoding") == "chunked") {
        if (reply.has_field("Content-Length")) {
            return fail("a length beside chunks");
        }
        read_chunks();
    } else if (reply.has_field("Content-Length")) {
        const std::size_t size = std::stoul(reply.field("Content-Length"));
        body_ = rest_.substr(0, size);
        skip(size);
    } else if (closed_) {
        body_ = std::exchange(rest_, {});
    }
    if (fault_.empty() && body_.find("HTTP/1") != std::string::npos) {
        fail("a head within a body");
    }
}

inline void StormAnswers::read_chunks() {
    while (!rest_.empty() && fault_.empty() && read_chunk()) {
    }
}

// False behind the last one.
inline bool StormAnswers::read_chunk() {
    const std::size_t line = rest_.find("\r\n");
    std::string_view digits = rest_.substr(0, line);
    if (line == std::string_view::npos && digits.ends_with('\r')) {
        digits.remove_suffix(1);
    }
    if (digits.size() > 16 || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos || line == 0) {
        fail("no size of a chunk");
        return false;
    }
    if (line == std::string_view::npos) {
        rest_ = {};
        return false;
    }
    const std::size_t size = std::stoul(std::string(digits), nullptr, 16);
    skip(line + 2);
    body_ += rest_.substr(0, size);
    skip(size);
    if (!begins_with("\r\n")) {
        fail("no line end behind a chunk");
    }
    skip(2);
    return size != 0;
}

}  // namespace penstock::test
