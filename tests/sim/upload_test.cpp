// Parts of forms that are saved to files: what is kept, what is told, and that nothing is left of the rest.
#include "engine_fixture.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/platform/file.h"

namespace penstock::test {
namespace {

using Names = std::vector<std::string>;

std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = i % 89 == 0 ? '\r' : i % 89 == 1 ? '\n' : static_cast<char>('a' + i % 23);
    }
    return text;
}

std::string part(std::string_view name, std::string_view data) {
    return "--XyZ\r\nContent-Disposition: form-data; name=\"" + std::string(name) + "\"\r\n\r\n" + std::string(data) + "\r\n";
}

std::string upload(std::string_view form) {
    return "POST /upload HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(form.size()) + "\r\n\r\n" + std::string(form);
}

// What went wrong in the handler, for the test.
struct Told {
    std::optional<Error> error;
    bool was_broken = false;
};

// Keeps every part below /kept, under its own name, and answers "name size;" for each.
Task<void> keep_parts(Told& told, Request& request, Response& response) {
    MultipartReader reader(request, "XyZ");
    std::string answer;
    while (const MultipartPart* current = co_await reader.next()) {
        const std::string name(current->name);
        Result<UploadedFile> file = co_await reader.save("/spool");
        if (!file.ok()) {
            told = {file.error(), reader.failed()};
            response.status(507).send("not saved");
            co_return;
        }
        const Result<void> named = co_await file.value().persist("/kept/" + name);
        if (!named.ok()) {
            told.error = named.error();
            response.status(409).send("not kept");
            co_return;
        }
        answer += name + " " + std::to_string(file.value().size_bytes()) + ";";
    }
    response.send(std::move(answer));
}

struct Uploads {
    Told told;
    Engine engine;
    std::size_t descriptors = 0;  // of the idle engine

    explicit Uploads(bool files_may_be_nameless = true, Config config = small_config())
        : engine(
              [this] {
                  Router router;
                  router.post("/upload", [this](Request& request, Response& response) {
                      return keep_parts(told, request, response);
                  });
                  return router;
              }(),
              std::move(config)) {
        engine.world.add_directory("/spool");
        engine.world.add_directory("/kept");
        if (!files_may_be_nameless) {
            engine.world.forbid_nameless_files();
        }
        descriptors = engine.world.open_descriptors();
    }

    void run_jobs() {
        while (engine.server.offload.run_one()) {
            engine.server.settle();
        }
    }
    std::string ask(std::string_view form) {
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(upload(form));
        engine.server.settle();
        run_jobs();
        const std::string got = peer.take_received();
        peer.close();
        engine.server.settle();
        return got;
    }
    [[nodiscard]] std::string content(const std::string& name) const {
        const Result<int> root = platform::open_directory("/kept");
        REQUIRE(root.ok());
        const IoResult opened = platform::open_beneath(root.value(), name.c_str());
        platform::close_descriptor(root.value());
        REQUIRE(opened.ok());
        std::string text(1'000'000, '\0');
        const IoResult read =
            platform::read_file(static_cast<int>(opened.count), 0, std::as_writable_bytes(std::span(text)));
        platform::close_descriptor(static_cast<int>(opened.count));
        REQUIRE(read.ok());
        text.resize(static_cast<std::size_t>(read.count));
        return text;
    }
    [[nodiscard]] Names kept() const { return engine.world.names_in("/kept"); }
    void check_nothing_left() {
        CHECK(engine.world.names_in("/spool").empty());
        CHECK(engine.world.open_descriptors() == descriptors);
        CHECK(engine.world.bad_descriptor_calls() == 0);
        engine.server.check_nothing_left();
    }
};

// A handler that the test gives, in a world that has /spool.
struct OneHandler {
    Engine engine;

    explicit OneHandler(TaskHandler handler)
        : engine([&handler] {
              Router router;
              router.post("/upload", std::move(handler));
              return router;
          }()) {
        engine.world.add_directory("/spool");
    }
    std::string ask() {
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(upload(part("f", "data") + "--XyZ--\r\n"));
        engine.server.settle();
        while (engine.server.offload.run_one()) {
            engine.server.settle();
        }
        return std::string(body_of(peer.take_received()));
    }
};

}  // namespace

TEST_CASE("parts are saved to files, and stay under the names that they are given") {
    for (const bool nameless : {true, false}) {
        CAPTURE(nameless);
        Uploads uploads(nameless);
        const std::string large = pattern(300'000);
        CHECK(body_of(uploads.ask(part("a", "1") + part("none", "") + part("large", large) + "--XyZ--\r\n")) ==
              "a 1;none 0;large 300000;");
        CHECK(uploads.kept() == Names{"a", "large", "none"});
        CHECK(uploads.content("a") == "1");
        CHECK(uploads.content("none").empty());
        CHECK(uploads.content("large") == large);
        uploads.check_nothing_left();
    }
}

TEST_CASE("a large part passes to its file through a few blocks, however slow the disk is") {
    Config config = small_config();
    config.body_limit_bytes = 10 << 20;
    Uploads uploads(true, config);
    const std::string data = pattern(900'000);
    const std::string request = upload(part("large", data) + "--XyZ--\r\n");
    sim::Peer peer = uploads.engine.world.connect(kPort);
    ReactorUnderTest& server = uploads.engine.server;
    std::uint32_t most = 0;
    std::size_t sent = 0;
    do {
        // The client is always ahead of the disk.
        for (int i = 0; i < 4; ++i) {
            const std::string_view piece = std::string_view(request).substr(sent, 20'000);
            peer.send(piece);
            sent += piece.size();
            server.settle();
        }
        most = std::max(most, server.reactor().blocks().leased());
        const bool ran = server.offload.run_one();
        server.settle();
        most = std::max(most, server.reactor().blocks().leased());
        REQUIRE((ran || !peer.received().empty()));
    } while (peer.received().empty());
    CHECK(body_of(peer.received()) == "large 900000;");
    CHECK(uploads.content("large") == data);
    CHECK(most <= 4);
}

TEST_CASE("short writes make the same file") {
    Uploads uploads;
    uploads.engine.world.script(sim::Call::write_file, sim::World::kAnyDescriptor, 1, sim::Outcome::at_most(7), 1'000);
    const std::string data = pattern(5'000);
    CHECK(body_of(uploads.ask(part("a", data) + "--XyZ--\r\n")) == "a 5000;");
    CHECK(uploads.content("a") == data);
}

TEST_CASE("a file that cannot be made, written or named is told with its errno, and nothing is left of it") {
    const struct {
        sim::Call call;
        std::uint64_t nth;
        int error;
        const char* sentence;
    } cases[] = {
        {sim::Call::create_file, 1, ENOSPC,
         "save a part of the form in the directory \"/spool\": create a file: No space left on device"},
        {sim::Call::create_file, 1, EMFILE,
         "save a part of the form in the directory \"/spool\": create a file: Too many open files"},
        {sim::Call::write_file, 2, ENOSPC,
         "save a part of the form in the directory \"/spool\": write a part of the form: No space left on device"},
        {sim::Call::write_file, 1, EIO,
         "save a part of the form in the directory \"/spool\": write a part of the form: Input/output error"},
        {sim::Call::name_file, 1, EXDEV,
         "name an uploaded file \"/kept/a\": Invalid cross-device link; save it in a directory of the file system where "
         "it is to stay"},
        {sim::Call::name_file, 1, ENOSPC, "name an uploaded file \"/kept/a\": No space left on device"},
    };
    for (const bool nameless : {true, false}) {
        for (const auto& failing : cases) {
            CAPTURE(nameless);
            CAPTURE(failing.sentence);
            Uploads uploads(nameless);
            uploads.engine.world.script(failing.call, sim::World::kAnyDescriptor, failing.nth,
                                        sim::Outcome::fail(failing.error));
            const bool in_naming = failing.call == sim::Call::name_file;
            CHECK(status_of(uploads.ask(part("a", pattern(50'000)) + "--XyZ--\r\n")) == (in_naming ? 409 : 507));
            REQUIRE(uploads.told.error.has_value());
            CHECK(uploads.told.error->message == failing.sentence);
            CHECK(uploads.told.error->code == failing.error);
            CHECK_FALSE(uploads.told.was_broken);
            CHECK(uploads.kept().empty());
            uploads.check_nothing_left();
        }
    }
}

TEST_CASE("a form that breaks off is told as such, and nothing is left of its files") {
    Uploads uploads;
    CHECK(status_of(uploads.ask(part("a", pattern(50'000)))) == 507);
    CHECK(uploads.told.was_broken);
    REQUIRE(uploads.told.error.has_value());
    CHECK(uploads.told.error->message == "multipart: the form ends without its closing delimiter");
    CHECK(uploads.told.error->code == 0);
    CHECK(uploads.kept().empty());
    uploads.check_nothing_left();
}

TEST_CASE("a part that is larger than its limit is told as a broken form, and nothing is left of its file") {
    for (const std::uint64_t limit : {std::uint64_t{3}, std::uint64_t{4}}) {
        CAPTURE(limit);
        OneHandler one([limit](Request& request, Response& response) -> Task<void> {
            MultipartReader reader(request, "XyZ", {.part_limit_bytes = limit});
            CHECK(co_await reader.next() != nullptr);
            const Result<UploadedFile> file = co_await reader.save("/spool");
            CHECK(file.ok() != reader.failed());
            response.send(file.ok() ? "saved" : file.error().message + " " + std::to_string(reader.error_status()));
        });
        one.engine.world.forbid_nameless_files();
        CHECK(one.ask() == (limit < 4 ? "multipart: a part is larger than the limit (part_limit_bytes) 413" : "saved"));
        CHECK(one.engine.world.names_in("/spool").empty());
    }
}

TEST_CASE("a name that is taken stays with the file that has it") {
    for (const bool nameless : {true, false}) {
        CAPTURE(nameless);
        Uploads uploads(nameless);
        uploads.engine.world.add_file("/kept/a", "first");
        CHECK(status_of(uploads.ask(part("a", "second") + "--XyZ--\r\n")) == 409);
        REQUIRE(uploads.told.error.has_value());
        CHECK(uploads.told.error->code == EEXIST);
        CHECK(uploads.told.error->message ==
              "name an uploaded file \"/kept/a\": File exists; nothing is ever replaced, so choose another name");
        CHECK(uploads.content("a") == "first");
        uploads.check_nothing_left();
    }
}

TEST_CASE("a full offload pool is answered with 503, and nothing is left") {
    Config config = small_config();
    config.offload_limit = 1;
    Uploads uploads(true, config);
    const std::string request = upload(part("a", "1") + "--XyZ--\r\n");
    sim::Peer first = uploads.engine.world.connect(kPort);
    first.send(request);
    uploads.engine.server.settle();  // its job waits
    sim::Peer second = uploads.engine.world.connect(kPort);
    CHECK(status_of(uploads.engine.exchange(second, request)) == 503);
    CHECK(uploads.engine.server.reactor().counters().overloaded.get() == 1);
    uploads.run_jobs();
    CHECK(body_of(first.take_received()) == "a 1;");
    first.close();
    second.close();
    uploads.engine.server.settle();
    uploads.check_nothing_left();
}

TEST_CASE("a client may leave behind any byte of its form, and only whole files are left") {
    const std::string request = upload(part("a", "0123456789") + part("b", "") + part("c", pattern(200)) + "--XyZ--\r\n");
    for (const bool nameless : {true, false}) {
        for (const bool jobs_are_done : {true, false}) {
            for (std::size_t cut = 0; cut < request.size(); ++cut) {
                CAPTURE(nameless);
                CAPTURE(jobs_are_done);
                CAPTURE(cut);
                Uploads uploads(nameless);
                sim::Peer peer = uploads.engine.world.connect(kPort);
                peer.send(std::string_view(request).substr(0, cut));
                uploads.engine.server.settle();
                if (jobs_are_done) {
                    uploads.run_jobs();
                }
                if (cut % 2 == 0) {
                    peer.reset();
                } else {
                    peer.close();
                }
                uploads.engine.server.settle();
                uploads.run_jobs();
                uploads.check_nothing_left();
                for (const std::string& name : uploads.kept()) {
                    CHECK(uploads.content(name) == (name == "a" ? "0123456789" : name == "b" ? "" : pattern(200)));
                }
            }
        }
    }
}

TEST_CASE("a client may leave while any of the jobs for its form is under way") {
    const std::string request = upload(part("a", pattern(40'000)) + part("b", "") + "--XyZ--\r\n");
    for (const bool nameless : {true, false}) {
        bool answered = false;
        for (int jobs = 0; !answered; ++jobs) {
            CAPTURE(nameless);
            CAPTURE(jobs);
            REQUIRE(jobs < 100);
            Uploads uploads(nameless);
            sim::Peer peer = uploads.engine.world.connect(kPort);
            peer.send(request);
            uploads.engine.server.settle();
            for (int done = 0; done < jobs && uploads.engine.server.offload.run_one(); ++done) {
                uploads.engine.server.settle();
            }
            answered = !peer.received().empty();
            peer.reset();
            uploads.engine.server.settle();  // parked, unless it was answered
            CHECK(uploads.engine.server.reactor().counters().tasks_parked.get() == (answered ? 0 : 1));
            uploads.run_jobs();
            uploads.check_nothing_left();
            CHECK(uploads.kept().size() <= 2);
            CHECK((!uploads.engine.world.exists("/kept/a") || uploads.content("a") == pattern(40'000)));
        }
    }
}

TEST_CASE("an uploaded file can be moved, named once, and let go of") {
    std::string log;
    OneHandler one([&log](Request& request, Response& response) -> Task<void> {
        MultipartReader reader(request, "XyZ");
        CHECK(co_await reader.next() != nullptr);
        Result<UploadedFile> saved = co_await reader.save("/spool");
        REQUIRE(saved.ok());
        UploadedFile file = std::move(saved.value());
        const Result<void> moved_from = co_await saved.value().persist("/spool/none");
        CHECK_FALSE(moved_from.ok());
        CHECK(saved.value().fd() == -1);
        CHECK(saved.value().size_bytes() == 0);
        CHECK(file.size_bytes() == 4);

        const Result<void> with_nul = co_await file.persist(std::string("/spool/kept\0.txt", 16));
        CHECK((!with_nul.ok() && with_nul.error().code == EINVAL));
        const Result<void> no_directory = co_await file.persist("/none/kept");
        CHECK((!no_directory.ok() && no_directory.error().code == ENOENT));
        CHECK((co_await file.persist("/spool/kept")).ok());
        const Result<void> again = co_await file.persist("/spool/again");
        CHECK_FALSE(again.ok());
        log = again.ok() ? "" : again.error().message;

        std::array<char, 8> bytes{};
        const IoResult read = platform::read_file(file.fd(), 0, std::as_writable_bytes(std::span(bytes)));
        response.send(std::string(bytes.data(), static_cast<std::size_t>(read.count)));
    });
    CHECK(one.ask() == "data");
    CHECK(one.engine.world.names_in("/spool") == Names{"kept"});
    CHECK(log == "name an uploaded file \"/spool/again\": it has its name already, or was moved away");
}

TEST_CASE("an uploaded file that is assigned another lets go of its own") {
    OneHandler one([](Request& request, Response& response) -> Task<void> {
        MultipartReader reader(request, "XyZ");
        CHECK(co_await reader.next() != nullptr);
        Result<UploadedFile> first = co_await reader.save("/spool");
        Result<UploadedFile> second = co_await reader.save("/spool");  // of a part that is at its end: empty
        REQUIRE((first.ok() && second.ok()));
        CHECK(second.value().size_bytes() == 0);
        second.value() = std::move(first.value());
        CHECK(second.value().size_bytes() == 4);
        response.send(std::to_string(second.value().size_bytes()));
    });
    one.engine.world.forbid_nameless_files();
    const std::size_t descriptors = one.engine.world.open_descriptors();
    CHECK(one.ask() == "4");
    CHECK(one.engine.world.names_in("/spool").empty());
    CHECK(one.engine.world.open_descriptors() == descriptors + 1);  // the connection
}

}  // namespace penstock::test
