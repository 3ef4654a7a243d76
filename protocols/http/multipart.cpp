#include "penstock/protocols/http/multipart.h"

#include <algorithm>
#include <utility>

#include "penstock/engine/awaitables.h"
#include "penstock/engine/ensure.h"
#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

using Event = MultipartParser::Event;

// Takes "; name=value; name="value"" apart (RFC 9110 §5.6.6). Quoted strings are unescaped where they stand.
class Parameters {
public:
    enum class Step : std::uint8_t { parameter, end, broken };

    Parameters(char* begin, char* end) : at_(begin), end_(end) {}
    Step next();
    [[nodiscard]] std::string_view name() const { return name_; }
    [[nodiscard]] std::string_view value() const { return value_; }

private:
    void skip_space();
    [[nodiscard]] std::string_view take_token();
    [[nodiscard]] bool take_quoted();

    char* at_;
    char* const end_;
    std::string_view name_;
    std::string_view value_;
};

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool has_control(std::string_view text) { return std::any_of(text.begin(), text.end(), is_control); }
bool is_boundary(std::string_view text);
// Where the value's first word ends: in front of white space or ';'.
char* end_of_word(char* begin, char* end);
std::size_t common_prefix(std::string_view left, std::string_view right);

}  // namespace

Result<std::string> multipart_boundary(std::string_view content_type) {
    const Error error{"the Content-Type is not multipart/form-data with one boundary of 1 to 70 characters (RFC 2046 §5.1.1)"};
    std::string text(content_type);
    char* const end = text.data() + text.size();
    char* const type_end = end_of_word(text.data(), end);
    if (!equal_ignoring_case({text.data(), static_cast<std::size_t>(type_end - text.data())}, "multipart/form-data")) {
        return error;
    }
    Parameters parameters(type_end, end);
    std::string boundary;
    for (;;) {
        const Parameters::Step step = parameters.next();
        if (step != Parameters::Step::parameter) {
            return step == Parameters::Step::end && is_boundary(boundary) ? Result<std::string>(std::move(boundary)) : error;
        }
        if (equal_ignoring_case(parameters.name(), "boundary")) {
            if (!boundary.empty() || !is_boundary(parameters.value())) {
                return error;
            }
            boundary = parameters.value();
        }
    }
}

// ---- The parser ----------------------------------------------------------------------------------------

MultipartParser::MultipartParser(std::string_view boundary, const MultipartLimits& limits)
    : limits_(limits), head_(std::make_unique<char[]>(limits.head_limit_bytes)) {
    ensure(!boundary.empty() && boundary.size() <= kBoundaryLimit && boundary.find('\r') == std::string_view::npos,
           "MultipartParser: the boundary is none; take it from multipart_boundary");
    constexpr std::string_view kBegin = "\r\n--";
    std::copy(boundary.begin(), boundary.end(), std::copy(kBegin.begin(), kBegin.end(), delimiter_.begin()));
    delimiter_size_ = kBegin.size() + boundary.size();
}

void MultipartParser::feed(std::string_view bytes) {
    ensure(rest_.empty() || failed(), "MultipartParser::feed: what was fed before is not used up");
    rest_ = bytes;
}

Event MultipartParser::next() {
    data_ = {};
    Event event = failed() ? Event::failed : state_ == State::done ? Event::form_end : Event::need_input;
    while (event == Event::need_input && !rest_.empty()) {
        event = step();
    }
    return event;
}

Event MultipartParser::finish() {
    data_ = {};
    if (failed()) {
        return Event::failed;
    }
    ensure(rest_.empty(), "MultipartParser::finish: what was fed is not used up");
    if (state_ != State::closed && state_ != State::epilogue && state_ != State::done) {
        return fail(400, "multipart: the form ends without its closing delimiter");
    }
    state_ = State::done;
    return Event::form_end;
}

Event MultipartParser::step() {
    switch (state_) {
        case State::preamble:
        case State::data: return scan();
        case State::head: return take_head();
        case State::epilogue: {
            const std::size_t size = rest_.size();
            rest_ = {};
            return skip_outside(size);
        }
        default: return take_delimiter_line();
    }
}

// Data up to what is, or may become, a delimiter. No boundary has a CR, so when a match breaks off, the next one cannot
// have begun within it.
Event MultipartParser::scan() {
    if (matched_ == 0) {
        if (const std::size_t plain = plain_bytes(); plain != 0) {
            const std::string_view piece = rest_.substr(0, plain);
            rest_.remove_prefix(plain);
            return give(piece);
        }
    }
    const std::size_t more = common_prefix(rest_, delimiter().substr(matched_));
    matched_ += more;
    rest_.remove_prefix(more);
    if (matched_ == delimiter_size_) {
        matched_ = implied_ = 0;
        outside_bytes_ = 0;
        state_ = State::delimited;
        return Event::need_input;
    }
    if (rest_.empty()) {
        return Event::need_input;
    }
    const std::string_view held = delimiter().substr(implied_, matched_ - implied_);
    matched_ = implied_ = 0;
    return give(held);
}

std::size_t MultipartParser::plain_bytes() const {
    std::size_t at = rest_.find('\r');
    while (at != std::string_view::npos) {
        const std::size_t matching = common_prefix(rest_.substr(at), delimiter());
        if (matching == delimiter_size_ || at + matching == rest_.size()) {
            return at;
        }
        at = rest_.find('\r', at + matching);
    }
    return rest_.size();
}

// Up to the limit however it was cut, so that the same data is seen before the failure.
Event MultipartParser::give(std::string_view piece) {
    if (state_ == State::preamble) {
        return skip_outside(piece.size());
    }
    const std::uint64_t left = limits_.part_limit_bytes - part_bytes_;
    if (piece.size() > left) {
        piece = piece.substr(0, static_cast<std::size_t>(left));
        (void)fail(413, "multipart: a part is larger than the limit (part_limit_bytes)");
    }
    part_bytes_ += piece.size();
    data_ = piece;
    return !piece.empty() ? Event::data : failed() ? Event::failed : Event::need_input;
}

// Behind the boundary: white space and CR LF, or "--", white space, and CR LF or the end (RFC 2046 §5.1.1).
Event MultipartParser::take_delimiter_line() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (is_space(c) && (state_ == State::delimited || state_ == State::padding || state_ == State::closed)) {
        state_ = state_ == State::closed ? State::closed : State::padding;
        return skip_outside(1);
    }
    if (c == '\r' && (state_ == State::delimited || state_ == State::padding)) {
        state_ = State::line_end;
    } else if (c == '\r' && state_ == State::closed) {
        state_ = State::closed_line_end;
    } else if (c == '-' && state_ == State::delimited) {
        state_ = State::dash;
    } else if (c == '-' && state_ == State::dash) {
        return end_delimiter(State::closed);
    } else if (c == '\n' && state_ == State::line_end) {
        return end_delimiter(State::head);
    } else if (c == '\n' && state_ == State::closed_line_end) {
        state_ = State::epilogue;
    } else {
        return fail(400, "multipart: a line begins with the boundary and is no delimiter: CR LF must end it");
    }
    return Event::need_input;
}

Event MultipartParser::end_delimiter(State next_state) {
    const bool ended_part = std::exchange(in_part_, false);
    state_ = next_state;
    head_size_ = 0;
    return ended_part ? Event::part_end : Event::need_input;
}

Event MultipartParser::skip_outside(std::size_t bytes) {
    outside_bytes_ += bytes;
    return outside_bytes_ <= limits_.outside_limit_bytes
               ? Event::need_input
               : fail(413, "multipart: too many bytes outside the parts (outside_limit_bytes)");
}

// Begins here and not with the delimiter: the part before must have ended when the limit is reached.
Event MultipartParser::begin_head() {
    if (parts_ == limits_.part_limit) {
        return fail(413, "multipart: the form has too many parts (part_limit)");
    }
    ++parts_;
    part_ = {};
    has_disposition_ = false;
    fields_ = 0;
    line_begin_ = 0;
    return Event::need_input;
}

Event MultipartParser::take_head() {
    Event event = head_size_ == 0 ? begin_head() : Event::need_input;
    while (event == Event::need_input && !rest_.empty()) {
        const char c = rest_.front();
        rest_.remove_prefix(1);
        if (head_size_ == limits_.head_limit_bytes) {
            return fail(413, "multipart: the head of a part is larger than the limit (head_limit_bytes)");
        }
        const bool behind_cr = head_size_ > line_begin_ && head_[head_size_ - 1] == '\r';
        head_[head_size_++] = c;
        if ((c == '\n') != behind_cr) {
            return fail(400, "multipart: CR or LF stands alone in the head of a part");
        }
        if (c == '\n') {
            char* const begin = head_.get() + std::exchange(line_begin_, head_size_);
            event = take_line(begin, head_.get() + head_size_ - 2);
        } else if (is_control(c) && c != '\t' && c != '\r') {
            return fail(400, "multipart: a control character in the head of a part");
        }
    }
    return event;
}

Event MultipartParser::take_line(char* begin, char* end) {
    if (begin == end) {
        if (!has_disposition_) {
            return fail(400, "multipart: a part without Content-Disposition (RFC 7578 §4.2)");
        }
        state_ = State::data;
        in_part_ = true;
        part_bytes_ = 0;
        matched_ = implied_ = 2;
        return Event::part_begin;
    }
    if (++fields_ > limits_.field_limit) {
        return fail(413, "multipart: the head of a part has too many fields (field_limit)");
    }
    char* const colon = std::find(begin, end, ':');
    const std::string_view name(begin, static_cast<std::size_t>(colon - begin));
    if (colon == end || !is_token(name)) {
        return fail(400, "multipart: a line in the head of a part is no field");
    }
    begin = std::find_if_not(colon + 1, end, is_space);
    while (end != begin && is_space(end[-1])) {
        --end;
    }
    const std::string_view value(begin, static_cast<std::size_t>(end - begin));
    if (equal_ignoring_case(name, "Content-Disposition")) {
        return take_disposition(begin, end);
    }
    if (equal_ignoring_case(name, "Content-Type")) {
        if (part_.content_type.data() != nullptr) {
            return fail(400, "multipart: a part has two Content-Types");
        }
        part_.content_type = value;
    }
    // Nobody sends any other (RFC 7578 §4.7), and what would be encoded must not pass as it stands.
    if (equal_ignoring_case(name, "Content-Transfer-Encoding") && !equal_ignoring_case(value, "binary") &&
        !equal_ignoring_case(value, "8bit") && !equal_ignoring_case(value, "7bit")) {
        return fail(400, "multipart: a part has a Content-Transfer-Encoding other than binary, 8bit or 7bit");
    }
    return Event::need_input;
}

// A "filename*" is passed over: it must not be used here (RFC 7578 §4.2).
Event MultipartParser::take_disposition(char* begin, char* end) {
    constexpr const char* kBroken = "multipart: Content-Disposition is not form-data with one name and at most one filename";
    char* const type_end = end_of_word(begin, end);
    if (has_disposition_ ||
        !equal_ignoring_case({begin, static_cast<std::size_t>(type_end - begin)}, "form-data")) {
        return fail(400, kBroken);
    }
    has_disposition_ = true;
    Parameters parameters(type_end, end);
    for (;;) {
        const Parameters::Step step = parameters.next();
        if (step == Parameters::Step::broken) {
            return fail(400, kBroken);
        }
        if (step == Parameters::Step::end) {
            return part_.name.data() != nullptr ? Event::need_input : fail(400, kBroken);
        }
        const bool is_name = equal_ignoring_case(parameters.name(), "name");
        if (is_name || equal_ignoring_case(parameters.name(), "filename")) {
            std::string_view& place = is_name ? part_.name : part_.filename;
            if (place.data() != nullptr || has_control(parameters.value())) {
                return fail(400, kBroken);
            }
            place = parameters.value();
        }
    }
}

Event MultipartParser::fail(unsigned status, const char* sentence) {
    state_ = State::failed;
    error_ = sentence;
    error_status_ = status;
    return Event::failed;
}

// ---- The reader ----------------------------------------------------------------------------------------

Task<const MultipartPart*> MultipartReader::next() {
    co_await skip();
    const Event event = co_await advance();
    in_part_ = event == Event::part_begin;
    co_return in_part_ ? &parser_.part() : nullptr;
}

Task<std::string_view> MultipartReader::read() {
    if (!in_part_) {
        co_return std::string_view();
    }
    in_part_ = co_await advance() == Event::data;
    co_return parser_.data();
}

Task<void> MultipartReader::skip() {
    while (in_part_) {
        in_part_ = co_await advance() == Event::data;
    }
}

Task<Result<std::uint64_t>> MultipartReader::spool(std::function<int(std::string_view)> write) {
    std::uint64_t count = 0;
    for (std::string_view piece = co_await read(); !piece.empty(); piece = co_await read()) {
        const int error = co_await offload([&write, piece] { return write(piece); });
        if (error != 0) {
            co_return system_error("write a part of the form", error);
        }
        count += piece.size();
    }
    if (failed()) {
        co_return Error{parser_.error()};
    }
    co_return count;
}

Task<Event> MultipartReader::advance() {
    for (;;) {
        const Event event = parser_.next();
        if (event != Event::need_input) {
            co_return event;
        }
        const std::string_view piece = co_await request_.read();
        if (piece.empty()) {
            co_return parser_.finish();
        }
        parser_.feed(piece);
    }
}

// ---- Parameters ----------------------------------------------------------------------------------------

namespace {

Parameters::Step Parameters::next() {
    for (;;) {
        skip_space();
        if (at_ == end_) {
            return Step::end;
        }
        if (*at_ != ';') {
            return Step::broken;
        }
        ++at_;
        skip_space();
        if (at_ != end_ && *at_ != ';') {
            break;
        }
    }
    name_ = take_token();
    if (name_.empty() || at_ == end_ || *at_ != '=') {
        return Step::broken;
    }
    ++at_;
    if (at_ != end_ && *at_ == '"') {
        return take_quoted() ? Step::parameter : Step::broken;
    }
    value_ = take_token();
    return value_.empty() ? Step::broken : Step::parameter;
}

void Parameters::skip_space() { at_ = std::find_if_not(at_, end_, is_space); }

std::string_view Parameters::take_token() {
    char* const begin = at_;
    at_ = std::find_if_not(at_, end_, characters::is_token_character);
    return {begin, static_cast<std::size_t>(at_ - begin)};
}

// Only '"' and '\' need an escape (RFC 9110 §5.6.4). In front of anything else a backslash stays, since clients send
// paths of their own, "C:\a.txt", as they are.
bool Parameters::take_quoted() {
    char* const begin = ++at_;
    char* out = begin;
    while (at_ != end_ && *at_ != '"') {
        if (*at_ == '\\' && end_ - at_ > 1 && (at_[1] == '"' || at_[1] == '\\')) {
            ++at_;
        }
        *out++ = *at_++;
    }
    value_ = {begin, static_cast<std::size_t>(out - begin)};
    return at_ != end_ && *at_++ == '"';
}

bool is_boundary(std::string_view text) {
    constexpr std::string_view kCharacters =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ";
    constexpr std::size_t kLongest = 70;
    return !text.empty() && text.size() <= kLongest && text.back() != ' ' &&
           text.find_first_not_of(kCharacters) == std::string_view::npos;
}

char* end_of_word(char* begin, char* end) {
    return std::find_if(begin, end, [](char c) { return c == ';' || is_space(c); });
}

std::size_t common_prefix(std::string_view left, std::string_view right) {
    const auto size = static_cast<std::ptrdiff_t>(std::min(left.size(), right.size()));
    const auto differing = std::mismatch(left.begin(), left.begin() + size, right.begin());
    return static_cast<std::size_t>(differing.first - left.begin());
}

}  // namespace

}  // namespace penstock
