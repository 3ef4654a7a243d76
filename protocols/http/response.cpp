#include "penstock/protocols/http/response.h"

#include <new>

#include "penstock/engine/config.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/deferred_response.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/response_encoding.h"

namespace penstock {

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
    if (accept_field(name, value)) {
        remove(name);
        append(name, value);
    }
    return *this;
}

Response& Response::add_header(std::string_view name, std::string_view value) {
    if (accept_field(name, value)) {
        append(name, value);
    }
    return *this;
}

std::string_view Response::header(std::string_view name) const {
    for (const Field* field = first_; field != nullptr; field = field->next) {
        if (equal_ignoring_case(field->name, name)) {
            return field->value;
        }
    }
    return {};
}

// Says what is wrong otherwise.
bool Response::is_valid_field(std::string_view name, std::string_view value) {
    if (!is_token(name)) {
        fail("a field name is a token (RFC 9110 section 5.1), not", name);
        return false;
    }
    if (!is_field_text(value)) {
        fail("the value holds a line break or another control character, field", name);
        return false;
    }
    return true;
}

// Whether it is to be written as it stands.
bool Response::accept_field(std::string_view name, std::string_view value) {
    if (!is_valid_field(name, value)) {
        return false;
    }
    switch (find_header_name(name)) {
        case HeaderName::content_length:
        case HeaderName::transfer_encoding:
        case HeaderName::date: fail("the server sets this field itself, leave it out:", name); return false;
        case HeaderName::connection:
            if (!equal_ignoring_case(value, "close")) {
                fail("of Connection a handler may only set \"close\", not", value);
                return false;
            }
            close_ = true;
            return false;
        case HeaderName::content_type: has_content_type_ = true; break;
        default: break;
    }
    return true;
}

void Response::append(std::string_view name, std::string_view value) {
    if (Field* const field = make_field(name, value)) {
        (last_ != nullptr ? last_->next : first_) = field;
        last_ = field;
    }
}

// A copy in the arena; nullptr, and the response has failed, when there is no room for it.
Response::Field* Response::make_field(std::string_view name, std::string_view value) {
    const std::size_t bytes = name.size() + value.size() + 4;
    if (field_bytes_ + bytes > kResponseFieldsLimitBytes) {
        fail("the response's fields are larger than kResponseFieldsLimitBytes with", name);
        return nullptr;
    }
    Arena& arena = exchange_.arena();
    void* const memory = arena.try_allocate(sizeof(Field), alignof(Field));
    const std::string_view own_name = arena.try_copy(name);
    const std::string_view own_value = arena.try_copy(value);
    if (memory == nullptr || own_name.data() == nullptr || own_value.data() == nullptr) {
        fail("there is no memory for the field", name);
        return nullptr;
    }
    field_bytes_ += static_cast<std::uint32_t>(bytes);
    return ::new (memory) Field{nullptr, own_name, own_value};
}

void Response::remove(std::string_view name) {
    last_ = nullptr;
    for (Field** link = &first_; *link != nullptr;) {
        if (equal_ignoring_case((*link)->name, name)) {
            field_bytes_ -= static_cast<std::uint32_t>((*link)->name.size() + (*link)->value.size() + 4);
            *link = (*link)->next;
        } else {
            last_ = *link;
            link = &(*link)->next;
        }
    }
}

void Response::fail(const char* reason, std::string_view about) {
    failed_ = true;
    exchange_.http().log_about(exchange_, std::string("response: ").append(reason).append(" ").append(about));
}

void Response::clear() {
    first_ = last_ = nullptr;
    field_bytes_ = 0;
    status_ = 200;
    status_set_ = failed_ = has_content_type_ = false;
}

void Response::send(std::string_view body) {
    deliver({.kind = ResponseBody::Kind::copied, .bytes = body});
}

void Response::send(std::string&& body) { deliver({.kind = ResponseBody::Kind::owned, .owned = &body}); }

void Response::send_static(std::string_view body) {
    deliver({.kind = ResponseBody::Kind::fixed, .bytes = body});
}

void Response::send_kept(std::string_view body, void* owner, void (*release)(void*)) {
    deliver({.kind = ResponseBody::Kind::kept, .bytes = body, .owner = owner, .release = release});
}

void Response::send_kept_file(int fd, std::uint64_t offset, std::uint64_t size, void* owner, void (*release)(void*)) {
    deliver({.kind = ResponseBody::Kind::file, .file = {fd, offset, size, owner, release}});
}

void Response::json(std::string_view body) {
    header("Content-Type", "application/json");
    send(body);
}

void Response::json(std::string&& body) {
    header("Content-Type", "application/json");
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
    if (answered_) {
        fail("a second answer to one request is not sent", {});
        body.drop();
        return;
    }
    answered_ = true;
    bool failed = failed_;
    if (failed) {
        start_error();
    }
    exchange_.run_head_hooks();
    if (encoding_ == nullptr || failed || failed_) [[likely]] {
        hand_over(body, failed);
        return;
    }
    ResponseBody encoded = body;
    if (!encoding_->take_over(*this, &encoded)) {  // else its head has left, and it follows piece by piece
        hand_over(encoded, false);
    }
}

void Response::hand_over(const ResponseBody& body, bool failed) {
    if (failed_) {
        failed = true;
        start_error();  // what hooks have set goes, too: one of it is wrong
    }
    const ResponseBody text{.kind = ResponseBody::Kind::fixed, .bytes = status_phrase(500)};
    body_bytes_ = failed ? text.size() : body.size();
    if (failed) {
        body.drop();
    }
    exchange_.answer(failed ? text : body);
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
