#include "penstock/protocols/http/request.h"

#include <algorithm>
#include <new>

#include "penstock/engine/arena.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

namespace {

[[nodiscard]] std::string_view without_white(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text.substr(0, text.find_last_not_of(" \t") + 1);  // npos + 1 is 0
}

}  // namespace

std::string_view Request::query_parameter(std::string_view name) const {
    std::string_view rest = query_;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('&'), rest.size());
        const std::string_view pair = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const std::size_t equals = std::min(pair.find('='), pair.size());
        if (percent_decode(pair.substr(0, equals), true, arena_) == name) {
            return percent_decode(pair.substr(std::min(equals + 1, pair.size())), true, arena_);
        }
    }
    return {};
}

BodyRead Request::read() { return BodyRead(exchange_); }

void Request::read(std::function<void(std::string_view)> on_piece) { exchange_.call_with_piece(std::move(on_piece)); }

Task<std::string_view> Request::read_all() {
    const std::string_view first = co_await read();
    if (exchange_.message_complete && !exchange_.decodes_body()) {
        co_return first;  // all of it, where it lies
    }
    for (std::string_view piece = first; !piece.empty(); piece = co_await read()) {
        if (const unsigned status = exchange_.keep_piece(piece); status != 0) {
            exchange_.set_body_error(status);  // the next read ends this coroutine
        }
    }
    exchange_.show_kept_body();
    co_return body_;
}

bool BodyRead::await_ready() { return exchange_.next_piece() != Exchange::BodyStep::wait; }

void BodyRead::await_suspend(std::coroutine_handle<> reader) {
    waits_ = true;
    exchange_.wait_for_body(reader);
}

std::string_view BodyRead::await_resume() {
    waits_ = false;
    return exchange_.request().body();
}

BodyRead::~BodyRead() {
    if (waits_) {
        exchange_.forget_body_reader();
    }
}

std::string_view Request::parameter(std::string_view name) const {
    for (std::size_t i = 0; i < parameter_count_; ++i) {
        if (parameters_[i].name == name) {
            return parameters_[i].value;
        }
    }
    return {};
}

std::string_view Request::header(std::string_view name) const {
    const HeaderName known = find_header_name(name);
    if (known != HeaderName::unknown) {
        return header(known);
    }
    for (std::size_t i = 0; i < field_count_; ++i) {
        if (fields_[i].known == HeaderName::unknown && equal_ignoring_case(header_at(i).name, name)) {
            return header_at(i).value;
        }
    }
    return {};
}

HeaderField Request::header_at(std::size_t index) const {
    const Field& field = fields_[index];
    return {text(field.name_offset, field.name_size), text(field.value_offset, field.value_size)};
}

std::string_view Request::trailer(std::string_view name) const {
    for (std::size_t i = 0; i < trailer_count_; ++i) {
        if (equal_ignoring_case(trailers_[i].name, name)) {
            return trailers_[i].value;
        }
    }
    return {};
}

bool Request::set_trailers(std::string_view lines, std::size_t count) {
    trailers_ = static_cast<HeaderField*>(arena_.try_allocate(count * sizeof(HeaderField), alignof(HeaderField)));
    if (trailers_ == nullptr) {
        return false;
    }
    for (; count > 0; --count) {
        const std::size_t end = lines.find('\r');
        const std::size_t colon = lines.find(':');
        const std::string_view name = lines.substr(0, colon);
        if (!is_for_heads_only(find_header_name(name))) {
            ::new (static_cast<void*>(&trailers_[trailer_count_++]))
                HeaderField{name, without_white(lines.substr(colon + 1, end - colon - 1))};
        }
        lines.remove_prefix(end + 2);
    }
    return true;
}

bool Request::grow_fields() {
    const std::size_t capacity = std::size_t{field_capacity_} * 2;
    auto* const fields = static_cast<Field*>(arena_.try_allocate(capacity * sizeof(Field), alignof(Field)));
    if (fields == nullptr) {
        return false;
    }
    std::copy_n(fields_, field_count_, fields);
    fields_ = fields;
    field_capacity_ = static_cast<std::uint16_t>(capacity);
    return true;
}

const TlsInfo* Request::tls() const {
    const Connection* const connection = exchange_.connection();
    return connection != nullptr ? connection->tls_info() : nullptr;
}

}  // namespace penstock
