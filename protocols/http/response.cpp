#include "penstock/protocols/http/response.h"

#include <new>

#include "penstock/engine/config.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/copy_text.h"
#include "penstock/protocols/http/deferred_response.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/field_rules.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/prepared_field.h"
#include "penstock/protocols/http/response_encoding.h"

namespace penstock {

namespace {

[[nodiscard]] const PreparedField& json_type() {
    static const PreparedField kType("Content-Type", "application/json");
    return kType;
}

[[nodiscard]] std::size_t line_bytes_of(std::string_view name, std::string_view value) {
    return name.size() + value.size() + 4;
}

}  // namespace

Response& Response::status(unsigned code) {
    if (code < 200 || code > 599) {
        fail("a final status is 200 to 599", std::to_string(code));
        return *this;
    }
    status_ = static_cast<std::uint16_t>(code);
    status_set_ = true;
    return *this;
}

Response& Response::header(std::string_view name, std::string_view value) {
    return put_field(find_header_name(name), name, value, true);
}

Response& Response::header(HeaderName name, std::string_view value) {
    return put_field(name, header_name(name), value, true);
}

Response& Response::header(const PreparedField& field) { return put_field(field, true, true); }

Response& Response::header_static(const PreparedField& field) { return put_field(field, true, false); }

Response& Response::add_header(std::string_view name, std::string_view value) {
    return put_field(find_header_name(name), name, value, false);
}

Response& Response::add_header(const PreparedField& field) { return put_field(field, false, true); }

std::string_view Response::header(std::string_view name) const {
    if (const HeaderName known = find_header_name(name); known != HeaderName::unknown) {
        return header(known);
    }
    for (const Field* field = first_; field != nullptr; field = field->next) {
        if (equal_ignoring_case(field->name(), name)) {
            return field->value();
        }
    }
    return {};
}

std::string_view Response::header(HeaderName name) const {
    if (name == HeaderName::unknown || (names_set_ & bit_of(name)) == 0) {
        return {};
    }
    for (const Field* field = first_; field != nullptr; field = field->next) {
        if (field->known == name) {
            return field->value();
        }
    }
    return {};
}

inline Response& Response::put_field(HeaderName known, std::string_view name, std::string_view value, bool replaces) {
    if ((kFieldsOfServer & bit_of(known)) != 0 || (known == HeaderName::unknown && !is_token(name)) ||
        !characters::is_field_text(value)) [[unlikely]] {
        take_special_field(known, name, value);
        return *this;
    }
    if (replaces) {
        remove(known, name);
    }
    const std::size_t bytes = line_bytes_of(name, value);
    if (void* const memory = field_memory(name, bytes, bytes)) [[likely]] {
        append(make_field(memory, known, name, value));
    }
    return *this;
}

// Not inlined, so that what is usual has nothing saved for it.
[[gnu::noinline]] void Response::take_special_field(HeaderName known, std::string_view name, std::string_view value) {
    if (const FieldFault fault = find_field_fault(known, name, value); fault.reason != nullptr) {
        fail(fault.reason, fault.about);
    } else {
        close_ = true;  // "Connection: close" is all that remains
    }
}

// It has been checked already.
inline Response& Response::put_field(const PreparedField& field, bool replaces, bool copies) {
    if (field.known_ == HeaderName::connection) [[unlikely]] {
        close_ = true;
        return *this;
    }
    if (replaces) {
        remove(field.known_, field.name());
    }
    const std::size_t bytes = field.line_.size();
    if (void* const memory = field_memory(field.name(), bytes, copies ? bytes : 0)) [[likely]] {
        append(make_field(memory, field, copies));
    }
    return *this;
}

Response::Field* Response::make_trailer(HeaderName known, std::string_view name, std::string_view value) {
    const std::size_t bytes = line_bytes_of(name, value);
    void* const memory = field_memory(name, bytes, bytes);
    return memory != nullptr ? make_field(memory, known, name, value) : nullptr;
}

inline Response::Field* Response::make_field(void* memory, HeaderName known, std::string_view name,
                                             std::string_view value) {
    char* const line = static_cast<char*>(memory) + sizeof(Field);
    char* const end = copy_text(copy_literal(copy_text(line, name), ": "), value);
    copy_literal(end, "\r\n");
    return ::new (memory) Field{nullptr, line, static_cast<std::uint16_t>(line_bytes_of(name, value)),
                                static_cast<std::uint16_t>(name.size()), known};
}

inline Response::Field* Response::make_field(void* memory, const PreparedField& field, bool copies) {
    const std::string_view line = field.line_;
    const char* own_line = line.data();
    if (copies) {
        char* const copy = static_cast<char*>(memory) + sizeof(Field);
        copy_text(copy, line);
        own_line = copy;
    }
    return ::new (memory)
        Field{nullptr, own_line, static_cast<std::uint16_t>(line.size()), field.name_size_, field.known_};
}

inline void Response::append(Field* field) {
    names_set_ |= bit_of(field->known);
    *end_ = field;
    end_ = &field->next;
}

inline void* Response::field_memory(std::string_view name, std::size_t line_bytes, std::size_t own_bytes) {
    const std::size_t bytes = field_bytes_ + line_bytes;
    void* const memory = bytes <= kResponseFieldsLimitBytes
                             ? exchange_.arena().try_allocate(sizeof(Field) + own_bytes, alignof(Field))
                             : nullptr;
    if (memory == nullptr) [[unlikely]] {
        fail_for_memory(name, bytes);
        return nullptr;
    }
    field_bytes_ = static_cast<std::uint32_t>(bytes);
    return memory;
}

[[gnu::noinline]] void Response::fail_for_memory(std::string_view name, std::size_t bytes) {
    fail(bytes > kResponseFieldsLimitBytes ? "the response's fields are larger than kResponseFieldsLimitBytes with"
                                           : "there is no memory for the field",
         name);
}

// Looks for it only where one may be.
inline void Response::remove(HeaderName known, std::string_view name) {
    if ((names_set_ & bit_of(known)) != 0) {
        remove_all(known, name);
    }
}

void Response::remove(std::string_view name) { remove(find_header_name(name), name); }

void Response::remove_all(HeaderName known, std::string_view name) {
    end_ = &first_;
    while (Field* const field = *end_) {
        if (field->known == known && (known != HeaderName::unknown || equal_ignoring_case(field->name(), name))) {
            field_bytes_ -= field->line_size;
            *end_ = field->next;
        } else {
            end_ = &field->next;
        }
    }
    if (known != HeaderName::unknown) {
        names_set_ &= ~bit_of(known);
    }
}

void Response::fail(const char* reason, std::string_view about) {
    failed_ = true;
    exchange_.http().log_about(exchange_, std::string("response: ").append(reason).append(" ").append(about));
}

void Response::clear() {
    first_ = first_trailer_ = nullptr;
    end_ = &first_;
    field_bytes_ = 0;
    names_set_ = 0;
    status_ = 200;
    status_set_ = failed_ = false;
}

void Response::send(std::string_view body) {
    if (!try_send_at_once(body)) [[unlikely]] {
        deliver_copied(body);
    }
}

// By itself, since what its body takes on the stack would have to be guarded above.
[[gnu::noinline]] void Response::deliver_copied(std::string_view body) {
    deliver({.kind = ResponseBody::Kind::copied, .bytes = body});
}

void Response::send(std::string&& body) { deliver({.kind = ResponseBody::Kind::owned, .owned = &body}); }

void Response::send_static(std::string_view body) {
    if (!try_send_at_once(body)) {
        deliver_fixed(body);
    }
}

[[gnu::noinline]] void Response::deliver_fixed(std::string_view body) {
    deliver({.kind = ResponseBody::Kind::fixed, .bytes = body});
}

// What most responses are, without a look at all that others may be. False, with nothing done, for those.
inline bool Response::try_send_at_once(std::string_view body) {
    if (answered_ || failed_ || encoding_ != nullptr || exchange_.has_hooks() ||
        !exchange_.http().try_send_at_once(exchange_, body)) [[unlikely]] {
        return false;
    }
    answered_ = true;
    body_bytes_ = body.size();
    exchange_.notice_change();
    return true;
}

void Response::send_kept(std::string_view body, void* owner, void (*release)(void*)) {
    deliver({.kind = ResponseBody::Kind::kept, .bytes = body, .owner = owner, .release = release});
}

void Response::send_kept_file(int fd, std::uint64_t offset, std::uint64_t size, void* owner, void (*release)(void*)) {
    deliver({.kind = ResponseBody::Kind::file, .file = {fd, offset, size, owner, release}});
}

void Response::json(std::string_view body) {
    header_static(json_type());
    send(body);
}

void Response::json(std::string&& body) {
    header_static(json_type());
    send(std::move(body));
}

void Response::send_file(int fd, std::uint64_t offset, std::uint64_t size) {
    deliver({.kind = ResponseBody::Kind::file, .file = {fd, offset, size}});
}

void Response::send_file_parts(int fd, std::span<const FilePart> parts) {
    deliver({.kind = ResponseBody::Kind::parts, .file = {fd, 0, 0}, .parts = parts});
}

void Response::send_empty() { deliver({}); }

void Response::deliver(const ResponseBody& body) {
    if (answered_) [[unlikely]] {
        refuse_second_answer(body);
        return;
    }
    answered_ = true;
    if (failed_ || encoding_ != nullptr || exchange_.has_hooks()) [[unlikely]] {
        deliver_specially(body);
        return;
    }
    hand_over(body);
}

void Response::refuse_second_answer(const ResponseBody& body) {
    fail("a second answer to one request is not sent", {});
    body.drop();
}

void Response::deliver_specially(const ResponseBody& body) {
    const bool failed = failed_;
    if (failed) {
        start_error();
    }
    exchange_.run_head_hooks();
    if (failed || failed_) {
        hand_over_error(body);
        return;
    }
    if (encoding_ == nullptr) {
        hand_over(body);
        return;
    }
    ResponseBody encoded = body;
    if (encoding_->take_over(*this, &encoded)) {
        return;  // its head has left, and it follows piece by piece
    }
    if (failed_) {
        hand_over_error(encoded);
    } else {
        hand_over(encoded);
    }
}

// In place of the body, which is dropped, and of what hooks have set, if one of it is wrong.
void Response::hand_over_error(const ResponseBody& body) {
    if (failed_) {
        start_error();
    }
    body.drop();
    hand_over({.kind = ResponseBody::Kind::fixed, .bytes = status_phrase(500)});
}

void Response::hand_over(const ResponseBody& body) {
    body_bytes_ = body.size();
    exchange_.answer(body);
    exchange_.notice_change();
}

void Response::start_error() {
    clear();
    status(500);
}

DeferredResponse Response::defer() { return exchange_.defer(); }

void Response::on_abort(std::function<void()> function) { exchange_.call_on_abort(std::move(function)); }

void Response::abort() {
    answered_ = true;
    cut();
    exchange_.abort();
}

}  // namespace penstock
