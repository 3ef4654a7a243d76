// The HTTP/1 codec alone: what it reads of a stream of requests, and what it writes of a response. No connection, no
// kernel, no handler. The first byte says which:
//
//     'Q'   a stream of requests: byte 1 how many cut sizes follow, those, then the stream
//     'S'   a response: see run_response in support/response_fuzz.h
//
// Of a stream: it reads the same whole and cut, for handlers that take bodies whole and for those that read them; a second
// reader, written from the standards, agrees about each request; and what was read, written out again, reads the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"
#include "penstock/platform/sim/world.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"
#include "support/response_fuzz.h"
#include "support/strict_request.h"

namespace penstock {
namespace {

using Outcome = Http1Parser::Outcome;

// Low, so that short inputs reach them.
constexpr strict::Limits kLimits{.target_bytes = 300, .field_count = 30, .body_bytes = 1'000};
// The input block of a connection holds all of a stream, so that nothing has to be received into it meanwhile.
constexpr std::size_t kStreamLimit = 12'000;

Config make_config() {
    Config config;
    config.reactors = 1;
    config.target_limit_bytes = kLimits.target_bytes;
    config.header_count_limit = kLimits.field_count;
    config.body_limit_bytes = kLimits.body_bytes;
    config.log = [](LogLevel, std::string_view) { ++fuzz::g_log_lines; };
    return config;
}

std::shared_ptr<const RouteTable> one_handler(Handler handler) {
    Router router;
    router.fallback(std::move(handler));
    const auto table = router.build();
    fuzz::require(table.ok(), "the router does not build");
    return table.value();
}

// What an exchange needs around it. One for all inputs: nothing of an input stays in it.
struct Bench {
    sim::World world;
    const Config config = make_config();
    Reactor reactor{config, 0, nullptr};
    Http1 whole{reactor, one_handler([](Request&, Response&) {})};
    Http1 streaming{reactor, one_handler([](Request&, Response&) -> Task<void> { co_return; })};
};

Bench& bench() {
    static Bench one;
    return one;
}

// ---- Reading -------------------------------------------------------------------------------------------

struct Parsed {
    enum class State : std::uint8_t { whole, failed, unfinished } state = State::unfinished;
    unsigned status = 0;  // of a failed one
    strict::RequestMessage message;

    bool operator==(const Parsed&) const = default;
};

std::string string_of(std::string_view text) { return std::string(text); }

// All that a handler is given.
void describe(Request& request, strict::RequestMessage* message) {
    message->method = method_name(request.method());
    if (request.method() == Method::trace) {
        message->method = "TRACE";  // no route can have it, so it has no name
    }
    message->target = request.target();
    message->path = request.path();
    message->query = request.query();
    message->host = request.host();
    message->minor_version = request.minor_version();
    for (std::size_t i = 0; i < request.header_count(); ++i) {
        const HeaderField field = request.header_at(i);
        message->fields.push_back({string_of(field.name), string_of(field.value)});
        fuzz::require(request.header(field.name).data() != nullptr, "a field is not found by its name", field.name);
    }
    for (std::size_t i = 0; i < request.trailer_count(); ++i) {
        const HeaderField field = request.trailer_at(i);
        message->trailers.push_back({string_of(field.name), string_of(field.value)});
        fuzz::require(request.trailer(field.name).data() != nullptr, "a trailer is not found by its name", field.name);
    }
}

// A connection's input without the connection, and one exchange after the other on it.
class StreamReader {
public:
    // `cuts` are used over and over; none: the stream comes whole.
    StreamReader(Http1& http, std::string_view stream, std::span<const std::uint8_t> cuts)
        : http_(http), rest_(stream), cuts_(cuts) {}
    ~StreamReader() { release_block(); }
    StreamReader(const StreamReader&) = delete;
    StreamReader& operator=(const StreamReader&) = delete;

    // All requests, the last one of which may be failed or unfinished.
    std::vector<Parsed> read() {
        std::vector<Parsed> requests;
        do {
            requests.push_back(read_one());
        } while (requests.back().state == Parsed::State::whole && (!rest_.empty() || !connection_.input().empty()));
        return requests;
    }

private:
    Parsed read_one() {
        Exchange* const exchange = Exchange::try_create(http_, connection_);
        fuzz::require(exchange != nullptr, "there is no page");
        const std::size_t left_before = rest_.size() + connection_.input().size();
        Parsed parsed;
        Outcome outcome = connection_.input().empty() ? Outcome::need_more : exchange->parse();
        while (outcome == Outcome::need_more && receive(*exchange, &parsed)) {
            outcome = exchange->parse();
        }
        if (outcome == Outcome::head) {
            outcome = read_pieces(*exchange, &parsed);
        }
        if (outcome == Outcome::failed) {
            parsed.state = Parsed::State::failed;
            parsed.status = parsed.status != 0 ? parsed.status : exchange->parser().error_status();
            fuzz::require(parsed.status >= 400 && parsed.status <= 599, "a refusal has no status");
        } else if (outcome == Outcome::complete) {
            parsed.state = Parsed::State::whole;
            describe(exchange->request(), &parsed.message);
            if (!exchange->streams_body()) {
                parsed.message.body = exchange->request().body();
            }
            exchange->consume_message();
            parsed.message.end = left_before - rest_.size() - connection_.input().size();
        }
        if (outcome != Outcome::complete) {
            parsed.message = {};  // nobody is given it
        }
        exchange->destroy();
        return parsed;
    }

    // As a handler does that reads its body.
    Outcome read_pieces(Exchange& exchange, Parsed* parsed) {
        for (;;) {
            switch (exchange.next_piece()) {
                case Exchange::BodyStep::piece: parsed->message.body += exchange.request().body(); break;
                case Exchange::BodyStep::end: return Outcome::complete;
                case Exchange::BodyStep::wait:
                    if (exchange.body_error() != 0) {
                        parsed->status = exchange.body_error();
                        return Outcome::failed;
                    }
                    fuzz::require(exchange.request().trailer_count() == 0, "trailers before the end of the body");
                    if (!receive_more()) {
                        return Outcome::need_more;
                    }
                    break;
            }
        }
    }

    bool receive(Exchange& exchange, Parsed* parsed) {
        if (rest_.empty()) {
            return false;
        }
        if (const unsigned status = connection_.input().has_block() ? exchange.make_room() : 0; status != 0) {
            parsed->status = status;
            return false;
        }
        return receive_more();
    }

    bool receive_more() {
        if (rest_.empty()) {
            return false;
        }
        Input& input = connection_.input();
        if (!input.has_block()) {
            input.attach(bench().reactor.blocks().try_acquire());
        }
        const std::size_t cut = cuts_.empty() ? rest_.size() : std::size_t{1} + cuts_[next_cut_++ % cuts_.size()];
        const std::size_t size = std::min({rest_.size(), cut, input.room().size()});
        fuzz::require(size > 0, "the input is full and more is wanted");
        std::memcpy(input.room().data(), rest_.data(), size);
        input.commit(size);
        rest_.remove_prefix(size);
        return true;
    }

    void release_block() {
        if (connection_.input().has_block()) {
            bench().reactor.blocks().release(connection_.detach_input_block());
        }
    }

    Http1& http_;
    Connection connection_;  // lends its input; it was never opened
    std::string_view rest_;
    std::span<const std::uint8_t> cuts_;
    std::size_t next_cut_ = 0;
};

// ---- What must hold of it ------------------------------------------------------------------------------

std::string text_of(const Parsed& parsed) {
    const strict::RequestMessage& message = parsed.message;
    std::string text = "state " + std::to_string(static_cast<int>(parsed.state)) + " status " +
                       std::to_string(parsed.status) + " end " + std::to_string(message.end) + "\n" + message.method + " " +
                       message.target + " 1." + std::to_string(message.minor_version) + "\n" + message.path + " ? " +
                       message.query + " @ " + message.host;
    for (const strict::Field& field : message.fields) {
        text.append("\n[").append(field.name).append("] [").append(field.value).append("]");
    }
    text.append("\nbody [").append(message.body).append("]");
    for (const strict::Field& field : message.trailers) {
        text.append("\ntrailer [").append(field.name).append("] [").append(field.value).append("]");
    }
    return text;
}

std::vector<Parsed> read_stream(Http1& http, std::string_view stream, std::span<const std::uint8_t> cuts) {
    std::vector<Parsed> requests = StreamReader(http, stream, cuts).read();
    fuzz::require(bench().reactor.blocks().leased() == 0, "a block is left");
    fuzz::require(bench().reactor.pages().leased() == 0, "a page is left");
    fuzz::require(bench().reactor.free_body_memory() == bench().config.body_memory_limit_bytes, "body memory is left");
    return requests;
}

void require_same(const std::vector<Parsed>& one, const std::vector<Parsed>& other, const char* what) {
    fuzz::require(one.size() == other.size(), what, std::to_string(one.size()), std::to_string(other.size()));
    for (std::size_t i = 0; i < one.size(); ++i) {
        fuzz::require(one[i] == other[i], what, text_of(one[i]), text_of(other[i]));
    }
}

// Where the second reader sees an unfinished message, the first may have seen already that it cannot become a good one.
void require_second_opinion(const Parsed& parsed, std::string_view bytes) {
    Parsed second;
    const strict::Verdict verdict = strict::read_request(bytes, kLimits, &second.message);
    switch (verdict) {
        case strict::Verdict::whole:
            second.state = Parsed::State::whole;
            fuzz::require(parsed == second, "the strict reader takes it, and otherwise", text_of(parsed), text_of(second));
            break;
        case strict::Verdict::refused:
            fuzz::require(parsed.state == Parsed::State::failed, "the strict reader refuses it", text_of(parsed), bytes);
            break;
        case strict::Verdict::unfinished_body:
            fuzz::require(parsed.state == Parsed::State::unfinished, "half a body", text_of(parsed), bytes);
            break;
        case strict::Verdict::unfinished_head:
        case strict::Verdict::unfinished_chunks:
            fuzz::require(parsed.state != Parsed::State::whole, "half a message is whole", text_of(parsed), bytes);
            break;
    }
}

std::string written_out(const strict::RequestMessage& message) {
    std::string text = message.method + " " + message.target + " HTTP/1." + std::to_string(message.minor_version) + "\r\n";
    bool chunked = false;
    for (const strict::Field& field : message.fields) {
        text.append(field.name).append(": ").append(field.value).append("\r\n");
        chunked = chunked || strict::lowered(field.name) == "transfer-encoding";
    }
    text += "\r\n";
    if (!chunked) {
        return text + message.body;
    }
    if (!message.body.empty()) {
        char line[20];
        std::snprintf(line, sizeof line, "%zx\r\n", message.body.size());
        text.append(line).append(message.body).append("\r\n");
    }
    text += "0\r\n";
    for (const strict::Field& field : message.trailers) {
        text.append(field.name).append(": ").append(field.value).append("\r\n");
    }
    return text + "\r\n";
}

void require_round_trip(const Parsed& parsed) {
    const std::string text = written_out(parsed.message);
    const std::vector<Parsed> again = read_stream(bench().whole, text, {});
    fuzz::require(again.size() == 1, "written out, one request is several", text_of(parsed), text);
    Parsed expected = parsed;
    expected.message.end = text.size();
    fuzz::require(again[0] == expected, "written out, a request reads otherwise", text_of(again[0]), text_of(expected));
}

void run_requests(std::span<const std::uint8_t> data) {
    const std::size_t cut_count = data.empty() ? 0 : std::min<std::size_t>(data[0], data.size() - 1);
    const std::span<const std::uint8_t> cuts = data.subspan(data.empty() ? 0 : 1, cut_count);
    const auto bytes = data.subspan(std::min(data.size(), cut_count + 1));
    const std::string_view stream(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kStreamLimit));
    static constexpr std::uint8_t kOneByte[] = {0};
    const std::vector<Parsed> whole = read_stream(bench().whole, stream, {});
    require_same(whole, read_stream(bench().whole, stream, cuts), "cut, it reads otherwise");
    require_same(whole, read_stream(bench().whole, stream, kOneByte), "byte by byte, it reads otherwise");
    require_same(whole, read_stream(bench().streaming, stream, {}), "read in pieces, it reads otherwise");
    require_same(whole, read_stream(bench().streaming, stream, cuts), "cut and read in pieces, it reads otherwise");
    std::size_t begin = 0;
    for (const Parsed& parsed : whole) {
        require_second_opinion(parsed, stream.substr(begin));
        begin += parsed.message.end;
        if (parsed.state == Parsed::State::whole) {
            require_round_trip(parsed);
        }
    }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    if (size == 0) {
        return 0;
    }
    const std::span<const std::uint8_t> rest(data + 1, size - 1);
    if (data[0] == 'S') {
        Connection connection;
        Exchange* const exchange = Exchange::try_create(bench().whole, connection);
        fuzz::require(exchange != nullptr, "there is no page");
        fuzz::run_response(rest, exchange->response(), bench().reactor);
        exchange->destroy();
    } else {
        run_requests(rest);
    }
    return 0;
}
