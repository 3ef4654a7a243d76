// Internal.
// Requests as texts, and replies taken apart. What the tests of HTTP share, on whatever platform they run. Pure
// functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::test {

inline std::string get(std::string_view path, std::string_view more_fields = "") {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(more_fields) + "\r\n";
}

// The status of the first response in `bytes`, 0 when there is none.
inline int status_of(std::string_view bytes) {
    return bytes.size() >= 12 && bytes.substr(0, 7) == "HTTP/1." ? std::stoi(std::string(bytes.substr(9, 3))) : 0;
}

inline std::string_view body_of(std::string_view bytes) {
    const std::size_t end = bytes.find("\r\n\r\n");
    return end == std::string_view::npos ? std::string_view() : bytes.substr(end + 4);
}

inline std::size_t count_of(std::string_view bytes, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = bytes.find(what); at != std::string_view::npos; at = bytes.find(what, at + what.size())) {
        ++count;
    }
    return count;
}

inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
        text.replace(at, what.size(), by);
    }
    return text;
}

struct Reply {
    int status = 0;
    std::string head;  // with its empty line
    std::string body;

    [[nodiscard]] std::string field(std::string_view name) const {
        const std::string begin = "\r\n" + std::string(name) + ": ";
        const std::size_t at = head.find(begin);
        return at == std::string::npos
                   ? ""
                   : head.substr(at + begin.size(), head.find("\r\n", at + 2) - at - begin.size());
    }
    [[nodiscard]] bool has_field(std::string_view name) const {
        return head.find("\r\n" + std::string(name) + ": ") != std::string::npos;
    }
};

// Takes apart what a server sent, by its Content-Length alone. The first `heads` final replies answer HEAD. A
// part of a reply at the end is a reply with status -1.
inline std::vector<Reply> replies_in(std::string_view bytes, std::size_t heads = 0) {
    std::vector<Reply> replies;
    std::size_t final_replies = 0;
    while (!bytes.empty()) {
        Reply reply;
        const std::size_t end = bytes.find("\r\n\r\n");
        reply.status = end == std::string_view::npos ? -1 : status_of(bytes);
        reply.head = bytes.substr(0, end == std::string_view::npos ? end : end + 4);
        bytes.remove_prefix(reply.head.size());
        const std::string length = reply.field("Content-Length");
        if (reply.status >= 200 && final_replies++ >= heads && !length.empty()) {
            const std::size_t size = std::stoul(length);
            reply.status = size > bytes.size() ? -1 : reply.status;
            reply.body = bytes.substr(0, size);
            bytes.remove_prefix(reply.body.size());
        }
        replies.push_back(std::move(reply));
    }
    return replies;
}

// "200 404"; interim replies included.
inline std::string statuses_in(std::string_view bytes, std::size_t heads = 0) {
    std::string statuses;
    for (const Reply& reply : replies_in(bytes, heads)) {
        statuses += (statuses.empty() ? "" : " ") + std::to_string(reply.status);
    }
    return statuses;
}

}  // namespace penstock::test
