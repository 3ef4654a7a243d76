// Internal.
// The head of a request read in three ways: by PlainHead alone; by an exchange that is given all of it at once, and so tries
// PlainHead first; and by an exchange that is given the first byte alone, after which llhttp reads it. What the ways must
// agree about is compared by `find_difference`. No connection, no kernel, no handler.
//
// Owned by one test; its thread alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/engine/ensure.h"
#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"
#include "penstock/platform/sim/world.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/plain_head.h"

namespace penstock::test {

// What was read, as text: outcome, request line, fields in their order, what is found by known names, framing, body.
struct ReadHead {
    Http1Parser::Outcome outcome = Http1Parser::Outcome::need_more;
    unsigned status = 0;  // of a failed one
    std::string request;  // of one that is whole
    std::string fields;   // whatever became of it
};

class HeadBench {
public:
    explicit HeadBench(Config config) : config_(std::move(config)) {}
    HeadBench(const HeadBench&) = delete;
    HeadBench& operator=(const HeadBench&) = delete;

    // The pieces together fit a block.
    ReadHead read(std::span<const std::string_view> pieces) {
        Connection connection;  // lends its input; it was never opened
        connection.input().attach(reactor_.blocks().try_acquire());
        Exchange* const exchange = Exchange::try_create(http_, connection);
        ensure(exchange != nullptr, "there is no page");
        ReadHead result;
        for (const std::string_view piece : pieces) {
            Input& input = connection.input();
            ensure(piece.size() <= input.room().size(), "the pieces do not fit a block");
            std::memcpy(input.room().data(), piece.data(), piece.size());
            input.commit(piece.size());
            result.outcome = exchange->parse();
            if (result.outcome != Http1Parser::Outcome::need_more) {
                break;
            }
        }
        result.fields = fields_of(exchange->request());
        if (result.outcome == Http1Parser::Outcome::failed) {
            result.status = exchange->parser().error_status();
        } else if (exchange->parser().head_complete()) {
            result.request = request_of(*exchange);
            exchange->consume_message();
            result.request += "\nleft " + std::to_string(connection.input().size());
        }
        exchange->destroy();
        reactor_.blocks().release(connection.detach_input_block());
        return result;
    }
    ReadHead read_whole(std::string_view bytes) { return read(std::span{&bytes, 1}); }
    ReadHead read_by_llhttp(std::string_view bytes) {
        const std::string_view pieces[] = {bytes.substr(0, 1), bytes.substr(std::min<std::size_t>(1, bytes.size()))};
        return read(pieces);
    }

    // The size of the head, or 0. The bytes are copied into memory of just their size, so that reading beyond is noticed.
    std::size_t read_plain(std::string_view bytes, std::string* fields = nullptr, std::string* line_text = nullptr) {
        const auto copy = std::make_unique<char[]>(bytes.size());
        std::copy(bytes.begin(), bytes.end(), copy.get());
        Connection connection;
        Exchange* const exchange = Exchange::try_create(http_, connection);
        ensure(exchange != nullptr, "there is no page");
        RequestLine line{};
        const std::size_t size = PlainHead::try_read({copy.get(), std::min<std::size_t>(bytes.size(), config_.head_limit_bytes)},
                                                 {config_.target_limit_bytes, config_.header_count_limit},
                                                 exchange->request(), &line);
        ensure(size != 0 || exchange->request().header_count() == 0, "fields are left behind");
        if (size != 0 && fields != nullptr) {
            *fields = fields_of(exchange->request());
            *line_text = line_of(line.method, line.target, line.minor_version);
        }
        exchange->destroy();
        return size;
    }

    // "" when all ways agree. `*plain`: PlainHead took it.
    std::string find_difference(std::string_view bytes, bool* plain = nullptr) {
        std::string fields;
        std::string line;
        const std::size_t size = read_plain(bytes, &fields, &line);
        if (plain != nullptr) {
            *plain = size != 0;
        }
        const ReadHead whole = read_whole(bytes);
        const ReadHead cut = read_by_llhttp(bytes);
        if (whole.outcome != cut.outcome || whole.status != cut.status || whole.request != cut.request) {
            return "whole: " + text_of(whole) + "\nby llhttp: " + text_of(cut);
        }
        if (size == 0) {
            return "";
        }
        // What is refused now was read to its end by both, and refused for what it means.
        const bool same = fields == cut.fields && fields == whole.fields && size == head_size(bytes) &&
                          (cut.request.empty() || cut.request.starts_with(line)) &&
                          (cut.outcome != Http1Parser::Outcome::need_more || !cut.request.empty());
        return same ? "" : "plain: " + line + fields + std::to_string(size) + "\nby llhttp: " + text_of(cut);
    }

private:
    static std::shared_ptr<const RouteTable> any_request() {
        Router router;
        router.fallback([](Request&, Response&) {});
        return router.build().value();
    }

    static std::string line_of(Method method, std::string_view target, unsigned minor) {
        return std::string(method_name(method)) + " " + std::string(target) + " 1." + std::to_string(minor) + "\n";
    }

    static std::string fields_of(const Request& request) {
        std::string text;
        for (std::size_t i = 0; i < request.header_count(); ++i) {
            const HeaderField field = request.header_at(i);
            text.append("[").append(field.name).append("][").append(field.value).append("]\n");
        }
        for (std::size_t i = 0; i < kKnownHeaders; ++i) {
            const auto name = static_cast<HeaderName>(i);
            if (const std::string_view value = request.header(name); value.data() != nullptr) {
                text.append(header_name(name)).append(request.repeated(name) ? " twice: " : ": ").append(value).append("\n");
            }
        }
        return text;
    }

    static std::string request_of(Exchange& exchange) {
        Request& request = exchange.request();
        std::string text = line_of(request.method(), request.target(), request.minor_version());
        text.append(request.path()).append(" ? ").append(request.query()).append(" @ ").append(request.host());
        text.append("\n").append(fields_of(request)).append("length ").append(std::to_string(exchange.content_length()));
        text.append(exchange.client_keeps_alive() ? " stays" : " closes");
        text.append(exchange.expects_continue ? " continue" : "").append("\n").append(request.body());
        return text;
    }

    static std::string text_of(const ReadHead& head) {
        return "outcome " + std::to_string(static_cast<int>(head.outcome)) + " status " + std::to_string(head.status) + "\n" +
               head.request + "\n" + head.fields;
    }

    // A head that both have read has no empty line but its last.
    static std::size_t head_size(std::string_view bytes) { return bytes.find("\r\n\r\n") + 4; }

    sim::World world_;
    const Config config_;
    Reactor reactor_{config_, 0, nullptr};
    Http1 http_{reactor_, any_request()};
};

}  // namespace penstock::test
