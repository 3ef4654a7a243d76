// Requests for files below a directory on the simulated kernel: whatever their targets and their fields say, each has one
// answer, that is a response as a strict reader sees it, of what lies outside the directory no byte leaves, and parts are
// the parts of a file that Content-Range says. The input is
//
//     byte 0      Flags
//     ...         lines that end with LF; the first letter says what the rest is:
//                 G, H, P   the target of a GET, HEAD or POST, which begins a request
//                 r i       its Range and If-Range
//                 m n s u   its If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since
//                 a         its Accept-Encoding
//                 '$' and '@' in fields stand for the ETag and the Last-Modified of the answer before
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/engine/offload.h"
#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"
#include "penstock/platform/net.h"
#include "penstock/platform/sim/world.h"
#include "penstock/protocols/http/static_files.h"
#include "support/strict_response.h"

namespace penstock {
namespace {

constexpr std::uint16_t kPort = 80;
constexpr int kTurnLimit = 20'000;
constexpr std::size_t kRequestLimit = 8;
// Of a part in multipart/byteranges, beside its bytes: two lines of fields and a boundary.
constexpr std::size_t kPartOverheadBytes = 300;
constexpr std::string_view kSecret = "s3cr3t-0uts1de";

enum Flags : std::uint8_t { kHidden = 1, kListing = 2, kPrecompressed = 4, kNoLinks = 8, kNotFoundPage = 16, kFallback = 32 };

void require(bool condition, const char* what, std::string_view about = "", std::string_view more = "") {
    if (!condition) {
        about = about.substr(0, 4'000);
        more = more.substr(0, 4'000);
        std::fprintf(stderr, "static_files_fuzz: %s\n%.*s\n----\n%.*s\n", what, static_cast<int>(about.size()),
                     about.data(), static_cast<int>(more.size()), more.data());
        std::abort();
    }
}

// ---- The files -----------------------------------------------------------------------------------------

// No two are of one size, so an answer that tells the size tells the file.
struct File {
    const char* path;
    std::size_t size;
};
constexpr File kFiles[] = {
    {"/www/empty", 0},          {"/www/letters.txt", 26},   {"/www/index.html", 31},    {"/www/a.css", 300},
    {"/www/a.css.gz", 101},     {"/www/a.css.br", 102},     {"/www/a.css.zst", 103},    {"/www/large.bin", 40'000},
    {"/www/16k", 16'384},       {"/www/sub/page.html", 32}, {"/www/404.html", 404},     {"/www/app.html", 405},
    {"/www/sub/a b%.txt", 33},  {"/www/.hidden", 34},       {"/www/.git/config", 35},
};

constexpr bool is_hidden(const File& file) { return std::string_view(file.path).find("/.") != std::string_view::npos; }

// Bytes whose offset can be told for a while, and other ones for each size. Made once, as they are asked for at every run.
const std::string& content_of(std::size_t size) {
    static std::map<std::size_t, std::string> made;
    std::string& text = made[size];
    if (text.size() < size) {
        text = std::to_string(size) + ":";
        for (std::size_t i = 0; text.size() < size; ++i) {
            text += std::to_string(i) + ",";
        }
        text.resize(size);
    }
    return text;
}

const File* file_of(std::uint64_t size) {
    const auto* const found = std::find_if(std::begin(kFiles), std::end(kFiles), [&](const File& file) { return file.size == size; });
    return found == std::end(kFiles) ? nullptr : found;
}

void fill(sim::World& world) {
    for (const File& file : kFiles) {
        world.add_file(file.path, content_of(file.size));
    }
    for (const char* const path : {"/secret.txt", "/wwwsecret/secret.txt", "/.secret", "/www2/secret.txt"}) {
        world.add_file(path, std::string(kSecret));
    }
    world.add_directory("/www/bare");
    world.add_link("/www/out", "../secret.txt");
    world.add_link("/www/up", "..");
    world.add_link("/www/whole", "/");
    world.add_link("/www/chain", "out");
    world.add_link("/www/within", "sub/page.html");
    world.add_link("/www/loop", "loop");
    world.add_link("/www/sub/back", "../sub");
    world.add_special("/www/pipe");
    world.add_file("/www/closed", std::string(kSecret));
    world.set_permitted("/www/closed", false);
}

StaticFileOptions options_of(std::uint8_t flags) {
    StaticFileOptions options;
    options.hidden_files = (flags & kHidden) != 0;
    options.directory_listing = (flags & kListing) != 0;
    options.precompressed = (flags & kPrecompressed) != 0;
    options.follow_symlinks = (flags & kNoLinks) != 0 ? FollowSymlinks::never : FollowSymlinks::inside;
    options.not_found_page = (flags & kNotFoundPage) != 0 ? "404.html" : "";
    options.spa_fallback = (flags & kFallback) != 0 ? "app.html" : "";
    return options;
}

// ---- The server ----------------------------------------------------------------------------------------

class Server {
public:
    Server(sim::World& world, const Router& router) : world_(world), factory_(make_protocol_factory(router)) {
        config_.reactors = 1;
        config_.connection_limit = 4;
        config_.refusal_limit = 1;
        config_.io_block_limit = 32;
        config_.io_block_reserve = 8;
        config_.page_limit = 16;
        require(factory_->prepare(config_).ok(), "the router does not build");
        reactor_ = std::make_unique<Reactor>(config_, 0, &offload_);
        platform::ListenTarget target;
        target.port = kPort;
        require(reactor_->open().ok(), "the reactor does not open");
        const Result<int> listener = platform::open_listener(target);
        require(listener.ok() && reactor_->add_listener(listener.value(), *factory_).ok(), "the listener does not open");
    }

    // Until nothing is left to do, here or for the offload pool.
    void settle() {
        do {
            int turns = 0;
            do {
                require(turns++ < kTurnLimit, "the reactor spins");
                reactor_->run_turn(0);
            } while (!world_.quiet() || reactor_->has_work());
        } while (offload_.run_one());
    }
    std::string ask(std::string_view bytes) {
        sim::Peer peer = world_.connect(kPort);
        peer.send(bytes);
        settle();
        std::string answer = peer.take_received();
        peer.close();
        settle();
        require(reactor_->connections().in_use() == 0, "a connection is left");
        require(reactor_->blocks().leased() == 0, "a block is left");
        require(reactor_->pages().leased() == 0, "a page is left");
        return answer;
    }

private:
    sim::World& world_;
    Config config_;
    OffloadPool offload_{0, 16};
    std::shared_ptr<ProtocolFactory> factory_;
    std::unique_ptr<Reactor> reactor_;
};

// ---- Requests ------------------------------------------------------------------------------------------

struct Question {
    std::string_view method;
    std::string bytes;
    std::string keys;  // of its fields

    [[nodiscard]] bool has(std::string_view any_of) const { return keys.find_first_of(any_of) != std::string::npos; }
};

std::string_view method_of(char key) { return key == 'G' ? "GET" : key == 'H' ? "HEAD" : key == 'P' ? "POST" : ""; }

std::string_view field_of(char key) {
    switch (key) {
        case 'r': return "Range";
        case 'i': return "If-Range";
        case 'm': return "If-Match";
        case 'n': return "If-None-Match";
        case 's': return "If-Modified-Since";
        case 'u': return "If-Unmodified-Since";
        case 'a': return "Accept-Encoding";
        default: return "";
    }
}

// Takes the next request off the front. None at the end, or where no request begins.
std::optional<Question> next_question(std::string_view* lines, const std::string& tag, const std::string& date) {
    Question question;
    while (!lines->empty()) {
        const std::size_t end = std::min(lines->find('\n'), lines->size());
        const std::string_view line = lines->substr(0, end);
        const std::string_view method = line.empty() ? "" : method_of(line[0]);
        if (!method.empty() && !question.method.empty()) {
            break;
        }
        lines->remove_prefix(std::min(end + 1, lines->size()));
        if (!method.empty()) {
            question.method = method;
            question.bytes.append(method).append(" ").append(line.substr(1)).append(" HTTP/1.1\r\nHost: t\r\n");
        } else if (!line.empty() && !question.method.empty() && !field_of(line[0]).empty()) {
            question.keys += line[0];
            question.bytes.append(field_of(line[0])).append(": ");
            for (const char letter : line.substr(1)) {
                letter == '$' ? question.bytes.append(tag) : letter == '@' ? question.bytes.append(date) : question.bytes.append(1, letter);
            }
            question.bytes.append("\r\n");
        }
    }
    question.bytes.append("\r\n");
    return question.method.empty() ? std::nullopt : std::optional(std::move(question));
}

// ---- Answers -------------------------------------------------------------------------------------------

std::string field_value(const std::vector<strict::Field>& fields, std::string_view lower_name) {
    const std::vector<std::string> values = strict::values_of(fields, lower_name);
    require(values.size() <= 1, "a field is there twice", lower_name);
    return values.empty() ? "" : values[0];
}

std::optional<std::uint64_t> take_number(std::string_view* text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc{}) {
        return std::nullopt;
    }
    text->remove_prefix(static_cast<std::size_t>(end - text->data()));
    return number;
}

bool take(std::string_view* text, std::string_view what) {
    const bool is_there = text->starts_with(what);
    text->remove_prefix(is_there ? what.size() : 0);
    return is_there;
}

struct Part {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t size = 0;
};

Part part_of(std::string_view content_range) {
    std::string_view rest = content_range;
    require(take(&rest, "bytes "), "a Content-Range without its unit", content_range);
    const auto first = take_number(&rest);
    require(first && take(&rest, "-"), "a Content-Range without its first byte", content_range);
    const auto last = take_number(&rest);
    require(last && take(&rest, "/"), "a Content-Range without its last byte", content_range);
    const auto size = take_number(&rest);
    require(size && rest.empty(), "a Content-Range without its size", content_range);
    require(*first <= *last && *last < *size, "a part that is none", content_range);
    return {*first, *last, *size};
}

class AnswerCheck {
public:
    AnswerCheck(const Question& question, std::uint8_t flags, std::string_view bytes)
        : question_(question), flags_(flags), bytes_(bytes) {
        std::optional<strict::ResponseMessage> message = strict::read_response(bytes);
        require(message.has_value(), "the answer is no response", bytes, question.bytes);
        message_ = std::move(*message);
    }

    void run() {
        require(bytes_.find(kSecret) == std::string_view::npos, "what lies outside has left", bytes_, question_.bytes);
        check_framing();
        switch (message_.status) {
            case 200: check_whole(); break;
            case 206: check_partial(); break;
            case 301: require(field("location").starts_with('/') && !field("location").starts_with("//"), "it leads to another host", bytes_); break;
            case 304: require(question_.has("ns") && !field("etag").empty(), "304 unasked", bytes_, question_.bytes); break;
            case 404: check_not_found(); break;
            case 412: require(question_.has("mun"), "412 unasked", bytes_, question_.bytes); break;
            case 416: check_unsatisfied(); break;
            case 400:
            case 403:
            case 414:
            case 431: break;
            default: require(false, "a status for which there is no reason", bytes_, question_.bytes);
        }
    }
    [[nodiscard]] std::string field(std::string_view lower_name) const { return field_value(message_.fields, lower_name); }

private:
    [[nodiscard]] bool has_body() const { return question_.method != "HEAD" && message_.status != 304; }

    void check_framing() {
        const std::string text = field("content-length");
        require(message_.status == 304 ? text.empty() : !text.empty(), "a length is missing, or one too many", bytes_);
        require(field("transfer-encoding").empty(), "a file in chunks", bytes_);
        std::string_view rest = text;
        length_ = take_number(&rest).value_or(0);
        require(rest.empty(), "a length that is no number", bytes_);
        // A request line that cannot be read is answered with a body although it may have begun with HEAD.
        const bool is_refused = message_.status == 400 && message_.body.size() == length_;
        require(is_refused || message_.body.size() == (has_body() ? length_ : 0), "another length than it says", bytes_,
                question_.bytes);
        const std::string coding = field("content-encoding");
        require(coding.empty() || ((flags_ & kPrecompressed) != 0 && question_.has("a")), "encoded, unasked", bytes_);
    }
    void check_is_served(const File* file) {
        require(file != nullptr, "no file has this size", bytes_, question_.bytes);
        require((flags_ & kHidden) != 0 || !is_hidden(*file), "a hidden file", bytes_, question_.bytes);
    }
    void check_whole() {
        if (field("etag").empty()) {
            require((flags_ & kListing) != 0, "neither a file nor a list", bytes_, question_.bytes);
            require(!has_body() || message_.body.starts_with("<!DOCTYPE html>"), "no list", bytes_, question_.bytes);
            return;
        }
        check_is_served(file_of(length_));
        require(field("accept-ranges") == "bytes", "a file without Accept-Ranges", bytes_);
        require(!has_body() || message_.body == content_of(length_), "other bytes than the file's", bytes_, question_.bytes);
    }
    void check_partial() {
        require(question_.method == "GET" && question_.has("r"), "206 unasked", bytes_, question_.bytes);
        constexpr std::string_view kMultipart = "multipart/byteranges; boundary=";
        const std::string type = field("content-type");
        if (type.starts_with(kMultipart)) {
            require(field("content-range").empty(), "many parts and one range", bytes_);
            check_parts("--" + type.substr(kMultipart.size()));
        } else {
            check_part(part_of(field("content-range")), message_.body);
        }
    }
    void check_part(const Part& part, std::string_view body) {
        check_is_served(file_of(part.size));
        require(body == content_of(part.size).substr(part.first, part.last - part.first + 1), "another part of the file",
                bytes_, question_.bytes);
    }
    void check_parts(const std::string& delimiter) {
        std::string_view rest = message_.body;
        std::uint64_t sum = 0;
        std::uint64_t size = 0;
        std::size_t count = 0;
        for (; take(&rest, delimiter) && !take(&rest, "--\r\n"); ++count) {
            require(take(&rest, "\r\n"), "a delimiter without the end of its line", bytes_);
            const std::size_t end = rest.find("\r\n\r\n");
            require(end != std::string_view::npos, "a part without an end of its fields", bytes_);
            std::vector<strict::Field> fields;
            for (const std::string_view line : strict::lines_of(rest.substr(0, end + 2))) {
                const std::optional<strict::Field> one = strict::read_field(line);
                require(one.has_value(), "a field of a part is none", bytes_);
                fields.push_back(*one);
            }
            rest.remove_prefix(end + 4);
            const Part part = part_of(field_value(fields, "content-range"));
            require(!field_value(fields, "content-type").empty(), "a part without a type", bytes_);
            require(count == 0 || part.size == size, "parts of several files", bytes_);
            size = part.size;
            const std::string_view body = rest.substr(0, part.last - part.first + 1);
            check_part(part, body);
            sum += body.size();
            rest.remove_prefix(body.size());
            require(take(&rest, "\r\n"), "a part without a line's end behind it", bytes_);
        }
        require(rest.empty() && count >= 2 && count <= kRangeLimit, "parts that do not end, or too many or few", bytes_);
        require(sum <= size && length_ <= size + (count + 1) * kPartOverheadBytes, "more than the whole file", bytes_);
    }
    void check_not_found() {
        require(field("etag").empty() && field("last-modified").empty(), "what is not there has a tag", bytes_);
        const bool is_page = length_ == 404;
        require((flags_ & kNotFoundPage) != 0 ? is_page : length_ < 20, "another page than asked for", bytes_, question_.bytes);
        require(!is_page || !has_body() || message_.body == content_of(404), "another page for 404", bytes_);
    }
    void check_unsatisfied() {
        std::string value = field("content-range");
        std::string_view rest = value;
        require(question_.has("r") && take(&rest, "bytes */"), "416 unasked, or without the size", bytes_, question_.bytes);
        const auto size = take_number(&rest);
        require(size && rest.empty(), "416 without the size", bytes_);
        check_is_served(file_of(*size));
    }

    const Question& question_;
    const std::uint8_t flags_;
    const std::string_view bytes_;
    strict::ResponseMessage message_;
    std::uint64_t length_ = 0;
};

void run(std::uint8_t flags, std::string_view lines) {
    sim::World world;
    fill(world);
    {
        auto files = static_files("/www", options_of(flags));
        require(files.ok(), "the directory is not served");
        Router router;
        router.any("/*path", files.value());
        Server server(world, router);
        std::string tag;
        std::string date;
        for (std::size_t i = 0; i < kRequestLimit; ++i) {
            const std::optional<Question> question = next_question(&lines, tag, date);
            if (!question) {
                break;
            }
            const std::string bytes = server.ask(question->bytes);
            AnswerCheck check(*question, flags, bytes);
            check.run();
            tag = check.field("etag");
            date = check.field("last-modified");
        }
    }
    require(world.open_descriptors() == 0, "a descriptor is left");
    require(world.bad_descriptor_calls() == 0, "a descriptor was used that was not open");
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    // A client that names the secret may have it back: redirections repeat its query.
    if (size > 1 && input.find(kSecret) == std::string_view::npos) {
        run(data[0], input.substr(1));
    }
    return 0;
}
