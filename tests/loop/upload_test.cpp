// Forms that are saved to real files by a running server: curl's, and those of clients that leave.
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "loop/loop_client.h"

namespace penstock {

namespace {

constexpr std::size_t kFileBytes = 5'000'003;  // many blocks, and no multiple of one

std::string pattern_of(std::size_t bytes) {
    std::string text;
    text.reserve(bytes + 16);
    for (std::size_t i = 0; text.size() < bytes; ++i) {
        text.append(std::to_string(i)).append(i % 3 == 0 ? "\r\n--" : ",");
    }
    text.resize(bytes);
    return text;
}

std::string content_of(const std::string& path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
}

std::string form_of(std::string_view name, std::string_view data) {
    std::string form("--XyZ\r\nContent-Disposition: form-data; name=\"");
    return form.append(name).append("\"\r\n\r\n").append(data).append("\r\n--XyZ--\r\n");
}

std::string upload_head(std::size_t bytes) {
    return "POST /keep HTTP/1.1\r\nHost: loop\r\nContent-Type: multipart/form-data; boundary=XyZ\r\nContent-Length: " +
           std::to_string(bytes) + "\r\n\r\n";
}

// Keeps every part in the directory under its own name.
Task<void> keep_parts(const std::string& directory, Request& request, Response& response) {
    const Result<std::string> boundary = multipart_boundary(request.header(HeaderName::content_type));
    if (!boundary.ok()) {
        response.status(415);
        co_return;
    }
    MultipartReader reader(request, boundary.value());
    std::string answer;
    while (const MultipartPart* part = co_await reader.next()) {
        const std::string name(part->name);
        Result<UploadedFile> file = co_await reader.save(directory);
        if (!file.ok()) {
            response.status(507).send(file.error().message);
            co_return;
        }
        const Result<void> named = co_await file.value().persist(directory + "/" + name);
        if (!named.ok()) {
            response.status(409).send(named.error().message);
            co_return;
        }
        answer += name + " " + std::to_string(file.value().size_bytes()) + ";";
    }
    response.send(std::move(answer));
}

struct KeepingServer {
    TemporaryDirectory directory;
    Server server{reactors(2)};
    std::size_t descriptors = 0;  // of this process, without clients

    KeepingServer() {
        Router router;
        router.post(
            "/keep",
            [path = directory.path()](Request& request, Response& response) {
                return keep_parts(path, request, response);
            },
            RouteOptions{.body_limit_bytes = 100 << 20});
        server.listen({.address = "127.0.0.1"}, std::move(router));
        start_or_fail(server);
        descriptors = open_descriptors();
    }
    [[nodiscard]] std::size_t files() const { return entries_of(directory.path().c_str()); }
    // The client's own descriptor must be closed by then.
    [[nodiscard]] bool lets_go_of_everything() const {
        return eventually([this] { return open_descriptors() == descriptors; });
    }
};

// Larger files than that are refused, by EFBIG; the signal that goes with it is blocked in a server's threads.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &former_) == 0);
        rlimit lowered = former_;
        lowered.rlim_cur = bytes;
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &lowered) == 0);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &former_); }

private:
    rlimit former_{};
};

}  // namespace

TEST_CASE("upload: what curl sends is kept byte by byte, and a name that is taken stays as it is") {
    if (std::system("curl --version > /dev/null 2>&1") != 0) {
        MESSAGE("not tested: there is no curl here");
        return;
    }
    KeepingServer keeping;
    const TemporaryDirectory client;
    const std::string data = pattern_of(kFileBytes);
    std::ofstream(client / "file", std::ios::binary) << data;
    const auto curl = [&](const std::string& fields) {
        const std::string command = "curl --silent --show-error --max-time 60 --noproxy '*' --output '" + (client / "answer") +
                                    "' " + fields + " http://127.0.0.1:" + std::to_string(keeping.server.port()) + "/keep";
        REQUIRE(std::system(command.c_str()) == 0);
        return content_of(client / "answer");
    };
    const std::string file_field = "-F 'large=@" + (client / "file") + "'";
    CHECK(curl("-F small=hello " + file_field + " -F empty=") == "small 5;large 5000003;empty 0;");
    CHECK(content_of(keeping.directory / "small") == "hello");
    CHECK((content_of(keeping.directory / "large") == data));
    CHECK(content_of(keeping.directory / "empty").empty());
    CHECK(keeping.files() == 3);

    CHECK(curl("-F small=changed") == "name an uploaded file \"" + (keeping.directory / "small") +
                                          "\": File exists; nothing is ever replaced, so choose another name");
    CHECK(content_of(keeping.directory / "small") == "hello");
    CHECK(keeping.files() == 3);
    CHECK(keeping.lets_go_of_everything());
}

TEST_CASE("upload: of a client that leaves in the middle nothing is left") {
    KeepingServer keeping;
    const std::string form = form_of("large", pattern_of(kFileBytes));
    for (const bool resets : {true, false}) {
        CAPTURE(resets);
        LoopClient client(keeping.server.port());
        client.send(upload_head(form.size()));
        client.send(std::string_view(form).substr(0, form.size() / 2));
        // Both ends of the connection, and the file.
        CHECK(eventually([&keeping] { return open_descriptors() == keeping.descriptors + 3; }));
        CHECK(keeping.files() <= 1);
        if (resets) {
            client.reset();
        } else {
            client.close();
        }
        CHECK(keeping.lets_go_of_everything());
        CHECK(keeping.files() == 0);
    }
}

TEST_CASE("upload: of a file that does not fit nothing is left") {
    KeepingServer keeping;
    const std::string form = form_of("large", pattern_of(kFileBytes));
    {
        const FileSizeLimit limit(1'000'000);
        LoopClient client(keeping.server.port());
        client.send(upload_head(form.size()));
        // Little more than fits: a server that has answered does not take the rest for ever.
        client.send(std::string_view(form).substr(0, 1'030'000));
        const Answer answer = client.receive();
        CHECK(answer.status == 507);
        CHECK(answer.body == "save a part of the form in the directory \"" + keeping.directory.path() +
                                 "\": write a part of the form: File too large");
    }
    CHECK(keeping.lets_go_of_everything());
    CHECK(keeping.files() == 0);
    // And the next one is none the worse for it.
    LoopClient client(keeping.server.port());
    const std::string small = form_of("small", "hello");
    client.send(upload_head(small.size()));
    client.send(small);
    CHECK(client.receive().body == "small 5;");
}

}  // namespace penstock
