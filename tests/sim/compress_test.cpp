// Which responses are compressed and which are not, what their fields say, and what the cache and the budget do.
#include <functional>
#include <map>

#include "compress_fixture.h"

namespace penstock::test {
namespace {

constexpr std::size_t kLeast = 1'000;
constexpr std::size_t kStep = kEncodeStepBytes;
constexpr std::size_t kAtOnce = kEncodeAtOnceLimitBytes;

// Bodies by size, handed over in each way that there is.
Router sized_router(CompressOptions options = {}) {
    Router router = compressing(std::move(options));
    const auto size_of = [](Request& request) { return std::stoul(std::string(request.parameter("size"))); };
    router.get("/copied/:size", [=](Request& request, Response& response) { response.send(std::string_view(text_body(size_of(request)))); });
    router.get("/owned/:size", [=](Request& request, Response& response) { response.send(text_body(size_of(request))); });
    router.get("/fixed/:size", [=](Request& request, Response& response) {
        static std::map<std::size_t, std::string> kept;
        std::string& text = kept[size_of(request)];
        text = text.empty() ? text_body(size_of(request)) : text;
        response.send_static(text);
    });
    router.get("/task/:size", [=](Request& request, Response& response) -> Task<void> {
        response.send(text_body(size_of(request)));
        co_return;
    });
    router.get("/written/:size", [=](Request& request, Response& response) -> Task<void> {
        const std::string text = text_body(size_of(request));
        for (std::size_t at = 0; at < text.size(); at += 5'000) {
            co_await response.write(std::string_view(text).substr(at, 5'000));
        }
        response.end();
    });
    return router;
}

// A route whose response the test makes.
Router one_route(std::function<void(Response&)> make, CompressOptions options = {}) {
    Router router = compressing(std::move(options));
    router.get("/", [make = std::move(make)](Request&, Response& response) { make(response); });
    return router;
}

Compressed ask_once(std::function<void(Response&)> make, std::string_view fields) {
    Engine engine(one_route(std::move(make)));
    return ask_for(engine, "/", fields);
}

}  // namespace

TEST_CASE("every coding gives back every size of every kind of body") {
    Engine engine(sized_router());
    for (const ContentCoding coding : available_codings()) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kLeast - 1, kLeast, kStep - 1, kStep, kStep + 1, kAtOnce - 1,
                                       kAtOnce, kAtOnce + 1, std::size_t{1} << 20}) {
            for (const std::string_view kind : {"copied", "owned", "fixed", "task", "written"}) {
                CAPTURE(content_coding_name(coding));
                CAPTURE(size);
                CAPTURE(kind);
                const std::string path = "/" + std::string(kind) + "/" + std::to_string(size);
                const Compressed answer = ask_for(engine, path, accepting(content_coding_name(coding)));
                CHECK(answer.reply.status == 200);
                CHECK(answer.plain == text_body(size));
                const bool encoded = size >= kLeast || kind == "written";
                CHECK(answer.coding() == (encoded ? content_coding_name(coding) : ""));
                CHECK(answer.field("Vary") == (encoded ? "Accept-Encoding" : ""));
                CHECK(answer.reply.has_field("Content-Length") == (kind != "written" && size <= kAtOnce));
                if (size >= kStep) {
                    CHECK(answer.sent.size() < size / 2);
                }
            }
        }
    }
}

TEST_CASE("the client's weights choose the coding") {
    Engine engine(sized_router({.codings = {"gzip", "deflate"}}));
    const struct {
        const char* accepted;
        const char* coding;
    } cases[] = {
        {"gzip", "gzip"},
        {"deflate", "deflate"},
        {"gzip, deflate", "gzip"},
        {"deflate, gzip", "gzip"},
        {"gzip;q=0.5, deflate;q=0.6", "deflate"},
        {"gzip;q=0", ""},
        {"gzip;q=0, *", "deflate"},
        {"*", "gzip"},
        {"*;q=0", ""},
        {"identity", ""},
        {"identity;q=0", ""},
        {"identity, gzip;q=0.5", ""},
        {"identity;q=0.5, gzip", "gzip"},
        {"br", ""},
        {"x-gzip", "gzip"},
        {"GZIP", "gzip"},
        {"gzip;q=2", ""},
        {"", ""},
    };
    for (const auto& expected : cases) {
        CAPTURE(expected.accepted);
        for (const std::string_view path : {"/copied/5000", "/copied/100000", "/written/5000"}) {
            const Compressed answer = ask_for(engine, path, accepting(expected.accepted));
            CHECK(answer.coding() == expected.coding);
            CHECK(answer.field("Vary") == "Accept-Encoding");
        }
    }
    CHECK(ask_for(engine, "/copied/5000", "").coding().empty());
    CHECK(ask_for(engine, "/copied/5000", accepting("br") + accepting("gzip")).coding() == "gzip");  // one list in two fields
}

TEST_CASE("what must not be compressed is not, and says so only where others would get it compressed") {
    const std::string text = text_body(5'000);
    const auto with = [&text](std::string name, std::string value) {
        return [&text, name, value](Response& response) { response.header(name, value).send(text); };
    };
    const struct {
        const char* what;
        std::function<void(Response&)> make;
        const char* coding;
        const char* vary;
    } cases[] = {
        {"plain text", with("X", "y"), "gzip", "Accept-Encoding"},
        {"a type with parameters", with("Content-Type", "Text/HTML ; charset=utf-8"), "gzip", "Accept-Encoding"},
        {"a suffix", with("Content-Type", "application/problem+json"), "gzip", "Accept-Encoding"},
        {"SVG", with("Content-Type", "image/svg+xml"), "gzip", "Accept-Encoding"},
        {"a picture", with("Content-Type", "image/png"), "", ""},
        {"a font that is compressed", with("Content-Type", "font/woff2"), "", ""},
        {"no media type", with("Content-Type", std::string(500, 'x')), "", ""},
        {"encoded already", with("Content-Encoding", "br"), "br", ""},
        {"no-transform", with("Cache-Control", "max-age=1, No-Transform"), "", ""},
        {"another directive", with("Cache-Control", "max-age=1"), "gzip", "Accept-Encoding"},
        {"a part", with("Content-Range", "bytes 0-4999/10000"), "", ""},
        {"Vary that is there", with("Vary", "Origin"), "gzip", "Origin, Accept-Encoding"},
        {"Vary that says it", with("Vary", "Origin, accept-encoding"), "gzip", "Origin, accept-encoding"},
        {"Vary that says all", with("Vary", "*"), "gzip", "*"},
        {"an error", [&text](Response& response) { response.status(404).send(text); }, "gzip", "Accept-Encoding"},
        {"206", [&text](Response& response) { response.status(206).send(text); }, "", "Accept-Encoding"},
        {"204", [](Response& response) { response.status(204).send_empty(); }, "", ""},
        {"304", [](Response& response) { response.status(304).send_empty(); }, "", "Accept-Encoding"},
        {"two fields Vary",
         [&text](Response& response) {
             response.add_header("Vary", "Origin").add_header("Vary", "Cookie").send(text);
         },
         "gzip", "Origin, Cookie, Accept-Encoding"},
    };
    for (const auto& expected : cases) {
        CAPTURE(expected.what);
        Engine engine(one_route(expected.make));
        sim::Peer peer = engine.world.connect(kPort);
        const std::string bytes = engine.exchange(peer, get("/", accepting("gzip")));
        const Reply reply = replies_in(bytes).front();
        CHECK(reply.field("Content-Encoding") == expected.coding);
        CHECK(reply.field("Vary") == expected.vary);
        CHECK(count_of(reply.head, "\r\nVary: ") == (*expected.vary != '\0' ? 1 : 0));
        if (reply.field("Content-Encoding") == "gzip") {
            CHECK(take_apart(bytes).plain == text);
        } else if (reply.status != 204 && reply.status != 304) {
            CHECK(reply.body == text);
        }
    }
}

TEST_CASE("a body that gets no smaller leaves as it is") {
    const std::string noise = random_body(20'000);
    Engine engine(one_route([&noise](Response& response) { response.send(noise); }));
    for (const ContentCoding coding : available_codings()) {
        for (int i = 0; i < 2; ++i) {  // also out of the cache
            const Compressed answer = ask_for(engine, "/", accepting(content_coding_name(coding)));
            CHECK(answer.coding().empty());
            CHECK(answer.sent == noise);
            CHECK(answer.field("Vary") == "Accept-Encoding");
        }
    }
    CHECK(engine.server.reactor().counters().compress_cache_hits.get() == available_codings().size());
}

TEST_CASE("HEAD gets the fields of GET, and no length that is not known") {
    Engine engine(sized_router());
    for (const std::string_view path : {"/copied/999", "/copied/5000", "/copied/65536", "/copied/65537", "/written/5000"}) {
        CAPTURE(path);
        const Compressed full = ask_for(engine, path, accepting("gzip"));
        const Compressed head = ask_for(engine, path, accepting("gzip"), "HEAD");
        CHECK(head.sent.empty());
        CHECK(head.reply.head == full.reply.head);
    }
    CHECK(engine.server.reactor().counters().encoders_refused.get() == 0);
}

TEST_CASE("a strong tag becomes weak, and no ranges are offered") {
    for (const std::size_t size : {std::size_t{5'000}, std::size_t{100'000}}) {
        const auto make = [size](const char* tag) {
            return [size, tag](Response& response) {
                response.header("ETag", tag).header("Accept-Ranges", "bytes").send(text_body(size));
            };
        };
        CHECK(ask_once(make("W/\"one\""), accepting("gzip")).field("ETag") == "W/\"one\"");
        Engine engine(one_route(make("\"one\"")));
        const Compressed encoded = ask_for(engine, "/", accepting("gzip"));
        CHECK(encoded.field("ETag") == "W/\"one\"");
        CHECK_FALSE(encoded.reply.has_field("Accept-Ranges"));
        const Compressed plain = ask_for(engine, "/", "");
        CHECK(plain.field("ETag") == "\"one\"");
        CHECK(plain.field("Accept-Ranges") == "bytes");
    }
}

TEST_CASE("the same body is compressed once, and the one used least goes first") {
    Engine engine(sized_router({.cache_bytes = 20'000}));
    const ReactorCounters& counters = engine.server.reactor().counters();
    const auto ask = [&](std::string_view size, std::string_view coding) {
        const std::uint64_t hits = counters.compress_cache_hits.get();
        const Compressed answer = ask_for(engine, "/copied/" + std::string(size), accepting(coding));
        CHECK(answer.coding() == coding);
        CHECK(answer.plain == text_body(std::stoul(std::string(size))));
        return counters.compress_cache_hits.get() != hits;
    };
    CHECK_FALSE(ask("5000", "gzip"));
    CHECK(ask("5000", "gzip"));
    CHECK_FALSE(ask("5000", "deflate"));
    CHECK(ask("5000", "gzip"));
    CHECK_FALSE(ask("9000", "gzip"));  // deflate of 5000 has to go
    CHECK(ask("5000", "gzip"));
    CHECK_FALSE(ask("5000", "deflate"));
    CHECK_FALSE(ask("60000", "gzip"));  // larger than all of it
    CHECK_FALSE(ask("60000", "gzip"));
}

TEST_CASE("without a cache nothing is kept") {
    Engine engine(sized_router({.cache_bytes = 0}));
    (void)ask_for(engine, "/copied/5000", accepting("gzip"));
    (void)ask_for(engine, "/copied/5000", accepting("gzip"));
    CHECK(engine.server.reactor().counters().compress_cache_hits.get() == 0);
    CHECK(engine.server.reactor().counters().compress_cache_misses.get() == 0);
}

TEST_CASE("when the memory for encoders is spent, a smaller coding is taken, and then none") {
    Config config = small_config();
    const struct {
        std::uint64_t limit;
        const char* coding;
    } cases[] = {{8 << 20, "br"}, {3 << 20, "zstd"}, {500'000, "gzip"}, {100'000, ""}, {0, ""}};
    for (const auto& expected : cases) {
        CAPTURE(expected.limit);
        config.encoder_memory_limit_bytes = expected.limit;
        Engine engine(sized_router(), config);
        std::string answered;
        for (const std::string_view path : {"/copied/5000", "/owned/100000", "/written/5000"}) {
            CAPTURE(path);
            std::string coding = expected.coding;
            if ((coding == "br" && !is_available(ContentCoding::brotli)) || (coding == "zstd" && !is_available(ContentCoding::zstd))) {
                coding = "gzip";
            }
            const Compressed answer = ask_for(engine, path, accepting("br, zstd, gzip"));
            CHECK(answer.coding() == coding);
            answered = answer.coding();
            CHECK(answer.field("Vary") == "Accept-Encoding");
            CHECK(answer.plain.size() == std::stoul(std::string(path.substr(path.rfind('/') + 1))));
        }
        const bool is_first = !answered.empty() && answered == content_coding_name(available_codings().front());
        CHECK((engine.server.reactor().counters().encoders_refused.get() == 0) == is_first);
    }
}

TEST_CASE("options that cannot be meant are refused with a sentence that says what to write") {
    const struct {
        CompressOptions options;
        const char* says;
    } cases[] = {
        {{.types = {"text"}}, "types: \"text\" is no media type"},
        {{.types = {""}}, "types: \"\" is no media type"},
        {{.types = {"text/html; charset=utf-8"}}, "is no media type"},
        {{.codings = {"gzip", "lzma"}}, "codings: \"lzma\" is no coding"},
        {{.codings = {"identity"}}, "codings: \"identity\" is no coding"},
        {{.codings = {"gzip", "x-gzip"}}, "codings: \"x-gzip\" is there twice"},
        {{.gzip_level = 0}, "gzip_level: \"0\" is no level"},
        {{.brotli_level = 10}, "brotli_level: \"10\" is no level"},
    };
    for (const auto& expected : cases) {
        const Result<Middleware> made = compress(expected.options);
        REQUIRE_FALSE(made.ok());
        CHECK(made.error().message.find(expected.says) != std::string::npos);
        const bool tells = made.error().message.find("write ") != std::string::npos || made.error().message.find("leave ") != std::string::npos;
        CHECK(tells);
    }
    CHECK(compress().ok());
}

TEST_CASE("fields that leave no room for Content-Encoding are an error of the program, told as one") {
    Engine engine(one_route([](Response& response) {
        for (int i = 0; i < 3; ++i) {
            response.add_header("X", std::string(4'080, 'x'));
        }
        response.send(text_body(5'000));
    }));
    const Compressed answer = ask_for(engine, "/", accepting("gzip"));
    CHECK(answer.reply.status == 500);
    CHECK(engine.server.log.mention("kResponseFieldsLimitBytes"));
}

}  // namespace penstock::test
