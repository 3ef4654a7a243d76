#include "load/response_reader.h"

#include <algorithm>
#include <charconv>

namespace penstock::load {

namespace {

constexpr std::string_view kVersion = "HTTP/1.1 ";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLineEnd = "\r\n";
// More than any server that is measured sends; one that never ends its head is found by it.
constexpr std::size_t kHeadLimitBytes = 16 * 1'024;

std::string_view whole_head(std::string_view bytes, std::string_view known);
std::optional<ResponseHead> parse(std::string_view head);
template <typename Number>
bool parse_number(std::string_view text, Number* number);
std::string_view value_of(std::string_view line);
bool is_named(std::string_view line, std::string_view lower_case_name);
bool is_equal(std::string_view text, std::string_view lower_case);

}  // namespace

std::optional<ResponseHead> ResponseShape::read(std::string_view head) {
    if (head != known_) {
        const std::optional<ResponseHead> parsed = parse(head);
        if (!parsed) {
            return parsed;
        }
        known_ = head;
        parsed_ = *parsed;
    }
    return parsed_;
}

void ResponseShape::check(const ResponseHead& head, Tally& tally) {
    if (head.status != status_) {
        ++tally.wrong_status;
        return;
    }
    if (!length_) {
        length_ = head.content_length;
    }
    if (head.content_length != *length_) {
        ++tally.wrong_length;
    }
}

std::uint64_t ResponseShape::body_bytes(const ResponseHead& head) const {
    const bool has_body = !to_head_requests_ && head.status != 204 && head.status != 304;
    return has_body ? head.content_length : 0;
}

std::size_t ResponseReader::take(std::string_view bytes, Tally& tally) {
    std::size_t ended = 0;
    while (!bytes.empty() && !has_failed_) {
        if (body_left_ > 0) {
            const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size()));
            body_left_ -= size;
            bytes.remove_prefix(size);
        } else if (!take_head(bytes, tally)) {
            continue;
        }
        ended += body_left_ == 0;
    }
    return ended;
}

void ResponseReader::reset() {
    partial_head_.clear();
    body_left_ = 0;
    has_failed_ = announces_end_ = false;
}

// Whether a head is complete; it is checked then, and body_left_ is set. What is taken is removed from the
// bytes.
bool ResponseReader::take_head(std::string_view& bytes, Tally& tally) {
    std::string_view head = partial_head_.empty() ? whole_head(bytes, shape_->known()) : "";
    if (!head.empty()) {
        bytes.remove_prefix(head.size());
    } else if (complete_partial_head(bytes)) {
        head = partial_head_;
    } else {
        tally.malformed += has_failed_;
        return false;
    }
    const std::optional<ResponseHead> parsed = shape_->read(head);
    if (parsed) {
        shape_->check(*parsed, tally);
        body_left_ = shape_->body_bytes(*parsed);
        announces_end_ = parsed->is_last;
    } else {
        ++tally.malformed;
        has_failed_ = true;
    }
    partial_head_.clear();
    return parsed.has_value();
}

bool ResponseReader::complete_partial_head(std::string_view& bytes) {
    // The bytes that end it may have begun to come with the piece before.
    const std::size_t before = partial_head_.size();
    partial_head_.append(bytes.substr(0, kHeadLimitBytes - before));
    const std::size_t end = partial_head_.find(kHeadEnd, std::max(before, kHeadEnd.size()) - kHeadEnd.size());
    if (end == std::string::npos) {
        has_failed_ = partial_head_.size() == kHeadLimitBytes ||
                      !std::string_view(partial_head_).starts_with(kVersion.substr(0, partial_head_.size()));
        bytes = {};
        return false;
    }
    partial_head_.resize(end + kHeadEnd.size());
    bytes.remove_prefix(partial_head_.size() - before);
    return true;
}

namespace {

// The head that the bytes begin with, or nothing when it does not end in them.
std::string_view whole_head(std::string_view bytes, std::string_view known) {
    if (!known.empty() && bytes.starts_with(known)) {
        return known;
    }
    const std::size_t end = bytes.substr(0, kHeadLimitBytes).find(kHeadEnd);
    return end == std::string_view::npos ? "" : bytes.substr(0, end + kHeadEnd.size());
}

std::optional<ResponseHead> parse(std::string_view head) {
    ResponseHead parsed;
    if (!head.starts_with(kVersion) || !head.ends_with(kHeadEnd) ||
        !parse_number(head.substr(kVersion.size(), 3), &parsed.status) || parsed.status < 100 ||
        !head.substr(kVersion.size() + 3).starts_with(' ')) {
        return {};
    }
    bool has_length = parsed.status == 204 || parsed.status == 304;
    for (std::size_t at = head.find(kLineEnd) + kLineEnd.size(); at < head.size() - kLineEnd.size();) {
        const std::size_t end = head.find(kLineEnd, at);
        const std::string_view line = head.substr(at, end - at);
        at = end + kLineEnd.size();
        if (is_named(line, "transfer-encoding")) {
            return {};
        }
        if (is_named(line, "content-length")) {
            if (!parse_number(value_of(line), &parsed.content_length)) {
                return {};
            }
            has_length = true;
        }
        parsed.is_last =
            parsed.is_last || (is_named(line, "connection") && is_equal(value_of(line), "close"));
    }
    return has_length ? std::optional(parsed) : std::nullopt;
}

template <typename Number>
bool parse_number(std::string_view text, Number* number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc{} && !text.empty() && end == text.data() + text.size();
}

std::string_view value_of(std::string_view line) {
    line.remove_prefix(line.find(':') + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.substr(0, line.find_last_not_of(" \t") + 1);
}

bool is_named(std::string_view line, std::string_view lower_case_name) {
    const std::string_view name = line.substr(0, line.find(':'));
    return name.size() < line.size() && is_equal(name, lower_case_name);
}

bool is_equal(std::string_view text, std::string_view lower_case) {
    return std::ranges::equal(text, lower_case, [](char one, char lower) {
        return (one >= 'A' && one <= 'Z' ? one - 'A' + 'a' : one) == lower;
    });
}

}  // namespace

}  // namespace penstock::load
