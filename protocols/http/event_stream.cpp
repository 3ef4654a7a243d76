#include "penstock/protocols/http/event_stream.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace penstock {

namespace {

using namespace std::string_view_literals;

// A stream may last for days: what one large event took beyond this is given back with the next. Ordinary events are
// smaller, and a hundred thousand idle streams then keep little.
constexpr std::size_t kKeptTextBytes = 4 << 10;

}  // namespace

EventStream::EventStream(Response& response) : response_(response) {
    // The type's only encoding is UTF-8 (HTML Standard §9.2.5), so it has no charset.
    response.header("Content-Type", "text/event-stream").header("Cache-Control", "no-store");
}

ResponseWrite EventStream::send(const Event& event) {
    start_text();
    if (!event.event.empty()) {
        append_field("event: ", event.event);
    }
    if (!event.id.empty()) {
        append_field("id: ", event.id);
    }
    if (event.retry_ms) {
        text_.append("retry: ").append(std::to_string(*event.retry_ms)).append("\n");
    }
    // Also when empty: a client drops an event without a data field (§9.2.6).
    append_lines("data: ", event.data);
    text_.append("\n");
    return response_.write(text_);
}

ResponseWrite EventStream::comment(std::string_view text) {
    start_text();
    append_lines(": ", text);
    text_.append("\n");
    return response_.write(text_);
}

void EventStream::start_text() {
    if (text_.capacity() > kKeptTextBytes) {
        text_ = std::string();
    }
    text_.clear();
}

// `start` ends with a space, since a client takes one away: a value's own leading space then survives (§9.2.6).
void EventStream::append_lines(std::string_view start, std::string_view text) {
    for (;;) {
        const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
        text_.append(start).append(text.substr(0, end)).append("\n");
        if (end == text.size()) {
            return;
        }
        text.remove_prefix(end + (text.substr(end, 2) == "\r\n" ? 2 : 1));
    }
}

void EventStream::append_field(std::string_view start, std::string_view value) {
    text_.append(start);
    std::copy_if(value.begin(), value.end(), std::back_inserter(text_),
                 [](char c) { return "\r\n\0"sv.find(c) == std::string_view::npos; });
    text_.append("\n");
}

}  // namespace penstock
