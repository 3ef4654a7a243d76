// What lies below a served directory and is no file: on a real disk, where opening it could wait for ever or read on and on.
// What the simulated disk has as well is in tests/http/static_paths_test.cpp.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "loop/disk.h"
#include "loop/loop_client.h"

namespace penstock::test {
namespace {

Disk small_site() {
    return {.entries = {
                {DiskEntry::Kind::file, "site/f.txt", std::string(kLetters)},
                {DiskEntry::Kind::file, "secret.txt", std::string(kSecret)},
            }};
}

// A directory that is served, and what is asked of it.
struct Site {
    const RealDisk disk{small_site()};
    Server server{case_config()};

    explicit Site(const std::string& directory = {}) {
        server.listen({.address = "127.0.0.1"}, static_router(directory.empty() ? disk.site() : directory, small_site()));
        start_or_fail(server);
    }
    // Each on a connection of its own, and answered in time or with status 0.
    [[nodiscard]] penstock::Answer ask(std::string_view target) { return LoopClient(server.port()).ask(target); }
    // Everybody else is served meanwhile.
    void check_status(std::string_view target, unsigned status) {
        CAPTURE(target);
        const penstock::Answer answer = ask(target);
        CHECK(answer.status == status);
        CHECK(answer.body.find(kSecret) == std::string::npos);
        CHECK(ask("/f.txt").body == kLetters);
    }
};

Fd bound_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    return listener;
}

}  // namespace

TEST_CASE("a pipe is not there, with a writer or without one, and nothing is read from it") {
    Site site;
    const std::string silent = site.disk / "site/silent";
    const std::string spoken = site.disk / "site/spoken";
    REQUIRE(::mkfifo(silent.c_str(), 0666) == 0);
    REQUIRE(::mkfifo(spoken.c_str(), 0666) == 0);
    // Both ends, so that the open does not wait (man 7 fifo).
    const Fd writer(::open(spoken.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    REQUIRE(writer.get() >= 0);
    REQUIRE(::write(writer.get(), kSecret.data(), kSecret.size()) == static_cast<ssize_t>(kSecret.size()));
    for (const char* const target : {"/silent", "/spoken", "/silent/", "/spoken/", "/silent", "/spoken"}) {
        site.check_status(target, 404);
    }
    std::array<char, 64> rest{};
    CHECK(::read(writer.get(), rest.data(), rest.size()) == static_cast<ssize_t>(kSecret.size()));
    CHECK(stops(site.server));
}

TEST_CASE("a Unix socket is not there, and nobody connects to it") {
    Site site;
    const Fd listener = bound_socket(site.disk / "site/socket");
    site.check_status("/socket", 404);
    site.check_status("/socket/", 404);
    CHECK_FALSE(ready_within(listener.get(), POLLIN, 0));
    CHECK(stops(site.server));
}

TEST_CASE("a device is not there") {
    Site site;
    const std::string zero = site.disk / "site/zero";
    const std::string full = site.disk / "site/full";
    if (::mknod(zero.c_str(), S_IFCHR | 0666, ::makedev(1, 5)) != 0) {
        REQUIRE(errno == EPERM);  // not root, or a sandbox: then a link must do
        REQUIRE(::symlink("/dev/zero", zero.c_str()) == 0);
        REQUIRE(::symlink("/dev/full", full.c_str()) == 0);
    } else {
        REQUIRE(::mknod(full.c_str(), S_IFCHR | 0666, ::makedev(1, 7)) == 0);
    }
    for (const char* const target : {"/zero", "/full", "/zero/", "/zero/x"}) {
        site.check_status(target, 404);
    }
    CHECK(stops(site.server));
}

TEST_CASE("links of the kernel's own lead nowhere") {
    // Behind them stand descriptors and not paths, so that no name says where they lead (man 5 proc).
    const RealDisk disk(small_site());
    Server server(case_config());
    const Fd secret(::open((disk / "secret.txt").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(secret.get() >= 0);
    server.listen({.address = "127.0.0.1"}, static_router("/proc/self", small_site()));
    start_or_fail(server);
    const std::string root = "/root";
    for (const std::string& target : {std::string("/exe"), std::string("/cwd/"), root + "/", root + "/etc/passwd",
                                      root + disk.site() + "/f.txt", "/fd/" + std::to_string(secret.get())}) {
        CAPTURE(target);
        const penstock::Answer answer = LoopClient(server.port()).ask(target);
        CHECK(answer.status == 404);
        CHECK(answer.body == "Not Found");
    }
    CHECK(stops(server));
}

TEST_CASE("what cannot be served keeps no descriptor open") {
    Site site;
    REQUIRE(::mkfifo((site.disk / "site/pipe").c_str(), 0666) == 0);
    REQUIRE(::symlink("../secret.txt", (site.disk / "site/out").c_str()) == 0);
    REQUIRE(::symlink("loop", (site.disk / "site/loop").c_str()) == 0);
    const Fd listener = bound_socket(site.disk / "site/socket");
    CHECK(site.ask("/f.txt").status == 200);  // a file may be kept open for who asks next
    REQUIRE(eventually([&site] { return memory_of(site.server).connections == 0; }));
    const std::size_t before = open_descriptors();
    LoopClient client(site.server.port());
    for (int i = 0; i < 100; ++i) {
        for (const char* const target : {"/pipe", "/out", "/loop", "/socket", "/none", "/../secret.txt/x", "/f.txt/x"}) {
            const penstock::Answer answer = std::string_view(target).starts_with("/..") ? site.ask(target) : client.ask(target);
            REQUIRE((answer.status == 404 || answer.status == 400));
        }
    }
    client.close();
    CHECK(eventually([before] { return open_descriptors() <= before; }));
    CHECK(stops(site.server));
}

}  // namespace penstock::test
