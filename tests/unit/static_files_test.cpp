// The handler behind a real server on loopback: what it opens, and what it keeps open, only the system can
// tell.
#include "penstock/protocols/http/static_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "penstock/penstock.h"

using namespace penstock;
namespace fs = std::filesystem;

namespace {

// A directory that is removed with all in it.
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string path = (fs::temp_directory_path() / "penstock-test-XXXXXX").string();
        REQUIRE(::mkdtemp(path.data()) != nullptr);
        path_ = path;
    }
    ~TemporaryDirectory() { fs::remove_all(path_); }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    [[nodiscard]] const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

struct Answer {
    unsigned status = 0;
    std::string head;
    std::string body;

    // Empty when there is no such field.
    [[nodiscard]] std::string field(std::string_view name) const {
        const std::string start = "\r\n" + std::string(name) + ": ";
        const std::size_t begin = head.find(start);
        if (begin == std::string::npos) {
            return {};
        }
        const std::size_t value = begin + start.size();
        return head.substr(value, head.find("\r\n", value) - value);
    }
};

// One connection to the server under test.
class Client {
public:
    explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const timeval limit{.tv_sec = 20, .tv_usec = 0};  // far beyond what a healthy server needs
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    }
    ~Client() { ::close(fd_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    Answer ask(const std::string& method, const std::string& target) {
        const std::string request = method + " " + target + " HTTP/1.1\r\nHost: test\r\n\r\n";
        REQUIRE(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(request.size()));
        Answer answer;
        const std::size_t end = receive_until("\r\n\r\n") + 4;
        answer.head = take(end);
        REQUIRE(answer.head.size() > 12);
        std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status);
        std::size_t length = 0;
        const std::string text = answer.field("Content-Length");
        std::from_chars(text.data(), text.data() + text.size(), length);
        if (method != "HEAD") {
            while (received_.size() < length) {
                receive();
            }
            answer.body = take(length);
        }
        return answer;
    }

private:
    std::size_t receive_until(std::string_view mark) {
        while (received_.find(mark) == std::string::npos) {
            receive();
        }
        return received_.find(mark);
    }
    void receive() {
        char buffer[64 << 10];
        const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
        REQUIRE(count > 0);
        received_.append(buffer, static_cast<std::size_t>(count));
    }
    std::string take(std::size_t size) {
        std::string taken = received_.substr(0, size);
        received_.erase(0, size);
        return taken;
    }

    int fd_;
    std::string received_;
};

// A server of one reactor for a temporary directory.
class Site {
public:
    explicit Site(StaticFileOptions options = {}, const std::string& pattern = "/*path")
        : server_(one_reactor()) {
        options.cache.time_to_live_ms = 0;  // these tests change files and look at once
        Result<PlainHandler> handler = static_files(root().string(), options);
        REQUIRE(handler.ok());
        Router router;
        router.get(pattern, handler.value());
        ListenOptions loopback;
        loopback.address = "127.0.0.1";
        server_.listen(loopback, router);
        const Result<void> started = server_.start();
        REQUIRE_MESSAGE(started.ok(), started.error().message);
        client_ = std::make_unique<Client>(server_.port());
    }

    [[nodiscard]] const fs::path& root() const { return directory_.path(); }
    void write(const std::string& name, std::string_view content) const {
        fs::create_directories((root() / name).parent_path());
        std::ofstream(root() / name, std::ios::binary) << content;
    }
    Answer get(const std::string& target) { return client_->ask("GET", target); }
    Answer head(const std::string& target) { return client_->ask("HEAD", target); }

private:
    static Config one_reactor() {
        Config config;
        config.reactors = 1;
        return config;
    }

    TemporaryDirectory directory_;
    Server server_;
    std::unique_ptr<Client> client_;
};

std::string pattern_of(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>(i * 31 + i / 256);
    }
    return bytes;
}

std::ptrdiff_t open_descriptors() {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

std::string http_date(std::time_t seconds) {
    char text[64];
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

}  // namespace

TEST_CASE("files of all sizes arrive whole, with their type and validators") {
    Site site;
    for (const std::size_t size : {0u, 1u, 4'096u, 4'097u, 16'384u, 16'385u, 300'000u, 3'000'000u}) {
        CAPTURE(size);
        const std::string content = pattern_of(size);
        site.write("some/file.css", content);
        const Answer answer = site.get("/some/file.css");
        CHECK(answer.status == 200);
        CHECK(answer.body.size() == size);
        CHECK((answer.body == content));
        CHECK(answer.field("Content-Type") == "text/css; charset=utf-8");
        CHECK(answer.field("X-Content-Type-Options") == "nosniff");
        struct stat status {};
        REQUIRE(::stat((site.root() / "some/file.css").c_str(), &status) == 0);
        CHECK(answer.field("Last-Modified") == http_date(status.st_mtime));

        const Answer head = site.head("/some/file.css");
        CHECK(head.status == 200);
        for (const char* const name : {"Content-Length", "Content-Type", "ETag", "Last-Modified"}) {
            CAPTURE(name);
            CHECK(head.field(name) == answer.field(name));
            CHECK_FALSE(answer.field(name).empty());
        }
    }
}

TEST_CASE("an entity tag is strong and changes with time, size and file") {
    Site site;
    site.write("a.txt", "one");
    const std::string path = (site.root() / "a.txt").string();
    const auto tag_at = [&](std::int64_t nanoseconds) {
        const timespec time{.tv_sec = 1'000'000'000, .tv_nsec = nanoseconds};
        const timespec times[] = {time, time};
        REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
        return site.get("/a.txt").field("ETag");
    };
    const std::string first = tag_at(5);
    CHECK(first.size() > 2);
    CHECK(first.front() == '"');
    CHECK(first.back() == '"');
    CHECK(std::count(first.begin(), first.end(), '"') == 2);
    CHECK(tag_at(5) == first);
    CHECK(tag_at(6) != first);
    site.write("a.txt", "four");
    CHECK(tag_at(5) != first);
    site.write("new.txt",
               "one");  // while the old one exists, so that it cannot take over the old one's number
    fs::rename(site.root() / "new.txt", path);
    CHECK(tag_at(5) != first);
}

TEST_CASE("Last-Modified is never in the future, and left out before 1970") {
    Site site;
    site.write("a.txt", "text");
    const auto set_time = [&](std::time_t seconds) {
        const timespec times[] = {{seconds, 500}, {seconds, 500}};
        REQUIRE(::utimensat(AT_FDCWD, (site.root() / "a.txt").c_str(), times, 0) == 0);
    };
    set_time(784'111'777);
    CHECK(site.get("/a.txt").field("Last-Modified") == "Sun, 06 Nov 1994 08:49:37 GMT");
    set_time(4'000'000'000);
    const std::time_t before = std::time(nullptr);
    const std::string date = site.get("/a.txt").field("Last-Modified");
    CHECK((date == http_date(before) || date == http_date(before + 1) || date == http_date(before - 1)));
    set_time(-100);
    CHECK(site.get("/a.txt").field("Last-Modified").empty());
    CHECK(site.get("/a.txt").status == 200);
}

TEST_CASE("a directory gives its index, and is redirected to where links in it lead on") {
    Site site;
    site.write("index.html", "top");
    site.write("sub/index.html", "below");
    site.write("empty/file", "x");
    CHECK(site.get("/").body == "top");
    CHECK(site.get("/").field("Content-Type") == "text/html; charset=utf-8");
    CHECK(site.get("/index.html").body == "top");
    CHECK(site.get("/sub/").body == "below");
    CHECK(site.get("/sub/.").body == "below");
    CHECK(site.get("/empty/").status == 404);
    CHECK(site.get("/index.html/").status == 404);
    const Answer answer = site.get("/sub?a=%20b&c");
    CHECK(answer.status == 301);
    CHECK(answer.field("Location") == "/sub/?a=%20b&c");
    CHECK(answer.body.empty());
    CHECK(site.head("/sub").field("Location") == "/sub/");
    fs::create_directories(site.root() / "odd/index.html");
    CHECK(site.get("/odd/").status == 404);
}

TEST_CASE("a redirection is escaped and stays on this host") {
    Site site;
    for (const char* const name :
         {"a b", "caf\xC3\xA9", "\\host.example", "q?#%", "x\r\nSet-Cookie: a=b", "host.example"}) {
        fs::create_directories(site.root() / name);
    }
    CHECK(site.get("/a%20b").field("Location") == "/a%20b/");
    CHECK(site.get("/caf%C3%A9").field("Location") == "/caf%C3%A9/");
    CHECK(site.get("/%5Chost.example").field("Location") == "/%5Chost.example/");
    CHECK(site.get("/\\host.example").field("Location") == "/%5Chost.example/");
    CHECK(site.get("/q%3F%23%25").field("Location") == "/q%3F%23%25/");
    const Answer forged = site.get("/x%0D%0ASet-Cookie:%20a=b");
    CHECK(forged.field("Location") == "/x%0D%0ASet-Cookie:%20a=b/");
    CHECK(forged.field("Set-Cookie").empty());
    CHECK(site.get("//host.example").status == 404);
    CHECK(site.get("/.//host.example").status == 404);
    CHECK(site.get("/%2Fhost.example").status == 404);

    Site behind_slashes({}, "//*path");
    fs::create_directories(behind_slashes.root() / "host.example");
    CHECK(behind_slashes.get("//host.example").field("Location") == "/host.example/");
}

TEST_CASE("nothing outside the directory is opened") {
    TemporaryDirectory outside;
    std::ofstream(outside.path() / "secret.txt") << "secret";
    Site site;
    site.write("sub/file.txt", "inside");
    const std::string name = outside.path().filename().string();
    fs::create_symlink(outside.path() / "secret.txt", site.root() / "absolute.txt");
    fs::create_symlink("../" + name + "/secret.txt", site.root() / "relative.txt");
    fs::create_symlink(outside.path(), site.root() / "folder");
    fs::create_symlink("loop", site.root() / "loop");
    fs::create_symlink("sub/file.txt", site.root() / "within.txt");
    for (const std::string& target : std::initializer_list<std::string>{
             "/absolute.txt", "/relative.txt", "/folder/secret.txt", "/folder/", "/loop", "/%252e%252e/secret.txt",
             "/..%5c" + name + "%5csecret.txt", "/..\\" + name + "\\secret.txt", "/sub%2Ffile.txt",
             "/sub//file.txt", "//sub/file.txt", "/sub/file.txt/", "/" + std::string(300, 'n'),
             "/" + std::string(5'000, 'n')}) {
        CAPTURE(target);
        const Answer answer = site.get(target);
        CHECK(answer.status == 404);
        CHECK(answer.body == "Not Found");
        CHECK(answer.field("ETag").empty());
    }
    // Refused before any handler is asked.
    for (const std::string& target : std::initializer_list<std::string>{
             "/..%2f", "/..%2F" + name + "%2Fsecret.txt", "/%2e%2e%2f" + name + "%2fsecret.txt",
             "/sub/..%2f..%2f" + name + "/secret.txt", "/..%2F%2e%2E/secret.txt"}) {
        CAPTURE(target);
        CHECK(Site().get(target).status == 400);
    }
    CHECK(site.get("/within.txt").body == "inside");
    CHECK(site.get("/sub/../sub/file.txt").body == "inside");
}

TEST_CASE("hidden names are served only on request") {
    Site site;
    Site open_site({.parameter = "file", .hidden_files = true}, "/files/*file");
    for (const Site* const each : {&site, &open_site}) {
        each->write(".env", "secret");
        each->write(".git/config", "secret");
        each->write("a/.b/c.txt", "secret");
        each->write("a/..b", "secret");
        each->write("a/b.c", "public");
    }
    for (const char* const target :
         {"/.env", "/%2eenv", "/.git/config", "/.git", "/.git/", "/a/.b/c.txt", "/a/..b"}) {
        CAPTURE(target);
        CHECK(site.get(target).status == 404);
    }
    CHECK(site.get("/a/b.c").body == "public");
    for (const char* const target :
         {"/files/.env", "/files/.git/config", "/files/a/.b/c.txt", "/files/a/..b"}) {
        CAPTURE(target);
        CHECK(open_site.get(target).body == "secret");
    }
    CHECK(open_site.get("/files/.git").field("Location") == "/files/.git/");
}

TEST_CASE("only regular files are served, and only those that may be read") {
    Site site;
    REQUIRE(::mkfifo((site.root() / "pipe").c_str(), 0600) == 0);
    fs::create_symlink("/dev/null", site.root() / "null");
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (site.root() / "socket").string();
    REQUIRE(path.size() < sizeof address.sun_path);
    std::copy(path.begin(), path.end(), address.sun_path);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    CHECK(site.get("/pipe").status == 404);
    CHECK(site.get("/null").status == 404);
    CHECK(site.get("/socket").status == 404);
    // One that never ends, where the tests may make it.
    if (::mknod((site.root() / "zero").c_str(), S_IFCHR | 0600, ::makedev(1, 5)) == 0) {
        CHECK(site.get("/zero").status == 404);
    }
    ::close(fd);

    site.write("closed.txt", "secret");
    site.write("shut/file.txt", "secret");
    REQUIRE(::chmod((site.root() / "closed.txt").c_str(), 0) == 0);
    REQUIRE(::chmod((site.root() / "shut").c_str(), 0) == 0);
    REQUIRE(::chmod(site.root().c_str(), 0755) == 0);
    const bool is_root = ::geteuid() == 0;  // who may read everything
    constexpr uid_t kNobody = 65'534;
    REQUIRE((!is_root || ::seteuid(kNobody) == 0));
    const unsigned closed = site.get("/closed.txt").status;
    const unsigned shut = site.get("/shut/file.txt").status;
    REQUIRE((!is_root || ::seteuid(0) == 0));
    CHECK(closed == 403);
    CHECK(shut == 403);
    REQUIRE(::chmod((site.root() / "shut").c_str(), 0700) == 0);
}

TEST_CASE("no request leaves a descriptor behind, and a want of them is told and passes") {
    Site site({.cache = {.entries = 0}});
    site.write("index.html", "top");
    site.write("large.bin", pattern_of(100'000));
    REQUIRE(::mkfifo((site.root() / "pipe").c_str(), 0600) == 0);
    site.get("/");
    const auto before = open_descriptors();
    for (const char* const target : {"/", "/index.html", "/large.bin", "/pipe", "/none", "/index.html/x"}) {
        site.get(target);
        site.head(target);
    }
    site.head("/large.bin");  // the answer before it has been sent to its end now
    CHECK(open_descriptors() == before);

    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    rlimit former{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &former) == 0);
    const rlimit none_left{static_cast<rlim_t>(lowest_free), former.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none_left) == 0);
    const Answer answer = site.get("/index.html");
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &former) == 0);
    CHECK(answer.status == 503);
    CHECK(answer.field("Retry-After") == "1");
    CHECK(site.get("/index.html").body == "top");
}

TEST_CASE("the handler holds its directory open as long as it lives") {
    const auto before = open_descriptors();
    {
        TemporaryDirectory directory;
        Result<PlainHandler> handler = static_files(directory.path().string());
        REQUIRE(handler.ok());
        const PlainHandler copy = handler.value();
        CHECK(open_descriptors() == before + 1);
    }
    CHECK(open_descriptors() == before);
}

TEST_CASE("a directory that cannot be served is named, with what to do") {
    TemporaryDirectory directory;
    std::ofstream(directory.path() / "file") << "x";
    const auto missing = static_files((directory.path() / "none").string());
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().message.find((directory.path() / "none").string()) != std::string::npos);
    CHECK(missing.error().message.find("create it") != std::string::npos);
    const auto file = static_files((directory.path() / "file").string());
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().message.find("name the directory") != std::string::npos);
    CHECK_FALSE(static_files("").ok());
}
