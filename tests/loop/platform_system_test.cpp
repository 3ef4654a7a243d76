// The rest of the platform: files, threads, stop signals, clocks, and how errors and addresses read.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <climits>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loop/platform_fixture.h"
#include "penstock/platform/clock.h"
#include "penstock/platform/file.h"
#include "penstock/platform/thread.h"

namespace penstock {

namespace {

using platform::FileInfo;
using platform::FileKind;
using platform::StopSignals;

// root/{inside.txt, a..b, dir/up -> ../inside.txt, out -> ../secret.txt, above -> .., fifo} beside
// secret.txt.
struct FileTree {
    TemporaryDirectory directory;
    Fd root;

    FileTree() {
        namespace fs = std::filesystem;
        fs::create_directories(directory / "root/dir");
        std::ofstream(directory / "secret.txt") << "secret";
        std::ofstream(directory / "root/inside.txt") << "0123456789";
        std::ofstream(directory / "root/a..b") << "dots";
        fs::create_symlink("../inside.txt", directory / "root/dir/up");
        fs::create_symlink("../secret.txt", directory / "root/out");
        fs::create_symlink("..", directory / "root/above");
        fs::create_symlink(directory / "root/inside.txt", directory / "root/absolute");
        REQUIRE(::mkfifo((directory / "root/fifo").c_str(), 0600) == 0);
        Result<int> opened = platform::open_directory(directory / "root");
        REQUIRE(opened.ok());
        root = Fd(opened.value());
    }

    [[nodiscard]] IoResult open(const char* path) const { return platform::open_beneath(root.get(), path); }
    [[nodiscard]] Fd open_or_fail(const char* path) const {
        const IoResult result = open(path);
        REQUIRE_MESSAGE(result.ok(), path, ": errno ", result.error);
        return Fd(static_cast<int>(result.count));
    }
};

std::atomic<int> former_handler_calls{0};

void former_handler(int) {
    former_handler_calls.fetch_add(1);
}

// An embedder's handlers, which no signal of these tests gets past.
struct FormerHandlers {
    struct sigaction terminate {};
    struct sigaction interrupt {};

    FormerHandlers() {
        former_handler_calls = 0;
        struct sigaction action {};
        action.sa_handler = former_handler;
        ::sigaction(SIGTERM, &action, &terminate);
        ::sigaction(SIGINT, &action, &interrupt);
    }
    FormerHandlers(const FormerHandlers&) = delete;
    FormerHandlers& operator=(const FormerHandlers&) = delete;
    ~FormerHandlers() {
        ::sigaction(SIGTERM, &terminate, nullptr);
        ::sigaction(SIGINT, &interrupt, nullptr);
    }
};

}  // namespace

TEST_CASE("open_beneath: files below the root are opened, and links that stay below are followed") {
    const FileTree tree;
    for (const char* path : {"inside.txt", "./inside.txt", "dir/up", "a..b"}) {
        CAPTURE(path);
        const Fd file = tree.open_or_fail(path);
        CHECK((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
    CHECK(tree.open("missing").error == ENOENT);
    CHECK(tree.open("").error == ENOENT);
    CHECK(tree.open("inside.txt/x").error == ENOTDIR);
}

TEST_CASE("open_beneath: what leads outside is refused at every step") {
    const FileTree tree;
    const std::string absolute = tree.directory / "root/inside.txt";
    for (const char* path :
         {"..", "../secret.txt", "dir/../../secret.txt", "dir/../inside.txt", "dir/..", "out",
          "above/secret.txt", "above/root/inside.txt", "absolute", "/etc/passwd", absolute.c_str()}) {
        CAPTURE(path);
        CHECK(tree.open(path).error == EXDEV);
    }
    CHECK(tree.open("above").error == EXDEV);
}

TEST_CASE("open_beneath: no link is followed where none may be, wherever it leads") {
    const FileTree tree;
    std::filesystem::create_symlink("dir", tree.directory / "root/folder");
    for (const char* path : {"dir/up", "out", "above", "absolute", "folder", "folder/up"}) {
        CAPTURE(path);
        CHECK(platform::open_beneath(tree.root.get(), path, platform::LinkPolicy::never).error == ELOOP);
    }
    for (const char* path : {"inside.txt", "dir", "."}) {
        CAPTURE(path);
        const IoResult opened = platform::open_beneath(tree.root.get(), path, platform::LinkPolicy::never);
        CHECK(opened.ok());
        const Fd file(static_cast<int>(opened.count));
    }
    CHECK(platform::open_beneath(tree.root.get(), "..", platform::LinkPolicy::never).error == EXDEV);
}

TEST_CASE("list_directory: every entry as itself, again and again, and no more than the limit") {
    const FileTree tree;
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
    };
    const auto open = descriptors();
    std::vector<platform::DirectoryEntry> entries;
    bool complete = false;
    for (int times = 0; times < 2; ++times) {
        REQUIRE(platform::list_directory(tree.root.get(), 100, &entries, &complete) == 0);
        CHECK(complete);
        std::map<std::string, platform::DirectoryEntry> found;
        for (const platform::DirectoryEntry& entry : entries) {
            found[entry.name] = entry;
        }
        CHECK(found.size() == entries.size());
        REQUIRE(found.size() == 7);
        CHECK(found["inside.txt"].info.kind == FileKind::regular);
        CHECK(found["inside.txt"].info.size == 10);
        CHECK(found["inside.txt"].info.modified_ns > 0);
        CHECK_FALSE(found["inside.txt"].is_link);
        CHECK(found["dir"].info.kind == FileKind::directory);
        CHECK(found["fifo"].info.kind == FileKind::other);
        CHECK_FALSE(found["fifo"].is_link);
        for (const char* const link : {"out", "above", "absolute"}) {
            CAPTURE(link);
            CHECK(found[link].is_link);
            CHECK(found[link].info.kind == FileKind::other);
        }
    }
    REQUIRE(platform::list_directory(tree.root.get(), 7, &entries, &complete) == 0);
    CHECK(complete);
    REQUIRE(platform::list_directory(tree.root.get(), 6, &entries, &complete) == 0);
    CHECK_FALSE(complete);
    CHECK(entries.size() == 6);
    {
        const Fd file = tree.open_or_fail("inside.txt");
        CHECK(platform::list_directory(file.get(), 7, &entries, &complete) == ENOTDIR);
        CHECK(entries.empty());
    }
    CHECK(platform::list_directory(-1, 7, &entries, &complete) == EBADF);
    CHECK(descriptors() == open);
}

TEST_CASE("open_beneath: a FIFO that nobody writes to does not hold the caller") {
    const FileTree tree;
    std::future<IoResult> opening = std::async(std::launch::async, [&] { return tree.open("fifo"); });
    const bool returned = opening.wait_for(std::chrono::milliseconds(kWaitMs)) == std::future_status::ready;
    CHECK(returned);
    // Lets the opener go if it is held after all.
    const Fd writer(::open((tree.directory / "root/fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const IoResult result = opening.get();
    REQUIRE(result.ok());
    const Fd fifo(static_cast<int>(result.count));
    FileInfo info;
    CHECK(platform::file_info(fifo.get(), &info) == 0);
    CHECK(info.kind == FileKind::other);
}

TEST_CASE("file_info and read_file tell what a file is and holds") {
    const FileTree tree;
    const Fd file = tree.open_or_fail("inside.txt");
    const timespec changed = {1'234'567'890, 123'456'789};
    const std::array<timespec, 2> times = {changed, changed};
    REQUIRE(::futimens(file.get(), times.data()) == 0);
    struct stat status {};
    REQUIRE(::fstat(file.get(), &status) == 0);
    FileInfo info;
    REQUIRE(platform::file_info(file.get(), &info) == 0);
    CHECK(info.kind == FileKind::regular);
    CHECK(info.size == 10);
    CHECK(info.inode == status.st_ino);
    CHECK(info.modified_ns == 1'234'567'890'123'456'789);
    const timespec year_3000 = {32'503'680'000, 0};  // more nanoseconds than fit; where the file system knows no such year, its last
    const std::array<timespec, 2> far_times = {year_3000, year_3000};
    REQUIRE(::futimens(file.get(), far_times.data()) == 0);
    REQUIRE(platform::file_info(file.get(), &info) == 0);
    CHECK(info.modified_ns > 1'234'567'890'123'456'789);
    REQUIRE(platform::file_info(tree.root.get(), &info) == 0);
    CHECK(info.kind == FileKind::directory);
    CHECK(platform::file_info(-1, &info) == EBADF);

    std::array<char, 6> buffer{};
    const auto bytes = std::as_writable_bytes(std::span(buffer));
    CHECK(platform::read_file(file.get(), 2, bytes).count == 6);
    CHECK(std::string(buffer.data(), 6) == "234567");
    CHECK(platform::read_file(file.get(), 8, bytes).count == 2);
    CHECK(platform::read_file(file.get(), 2, bytes).count == 6);  // nothing was moved
    const IoResult end = platform::read_file(file.get(), 10, bytes);
    CHECK(end.ok());
    CHECK(end.count == 0);
    CHECK(platform::read_file(tree.root.get(), 0, bytes).error == EISDIR);
}

TEST_CASE("open_beneath and read_file that may not wait give what is in memory, or say that they would have to") {
    const FileTree tree;
    const auto open_at_once = [&](const char* path) {
        return platform::open_beneath(tree.root.get(), path, platform::LinkPolicy::inside, platform::DiskWait::never);
    };
    Fd file = tree.open_or_fail("inside.txt");
    const IoResult opened = open_at_once("inside.txt");
    if (opened.ok()) {
        file = Fd(static_cast<int>(opened.count));
    } else {
        CHECK(opened.error == EAGAIN);  // a kernel before 5.12
    }
    CHECK(open_at_once("out").error != 0);
    CHECK(open_at_once("../secret.txt").error == EXDEV);
    std::array<char, 20> buffer{};
    const auto bytes = std::as_writable_bytes(std::span(buffer));
    REQUIRE(platform::read_file(file.get(), 0, bytes).count == 10);
    const IoResult read = platform::read_file(file.get(), 2, bytes, platform::DiskWait::never);
    if (read.ok()) {
        CHECK(read.count == 8);
        CHECK(std::string(buffer.data(), 8) == "23456789");
    } else {
        CHECK(read.error == EAGAIN);  // tmpfs
    }
    CHECK(platform::read_file(-1, 0, bytes, platform::DiskWait::never).error == EBADF);
}

TEST_CASE("open_directory refuses what is none, and names it") {
    const FileTree tree;
    for (const char* name : {"root/inside.txt", "none"}) {
        const std::string path = tree.directory / name;
        Result<int> opened = platform::open_directory(path);
        REQUIRE(!opened.ok());
        CHECK(opened.error().message.find(path) != std::string::npos);
        CHECK(opened.error().code == (name[0] == 'r' ? ENOTDIR : ENOENT));
    }
}

TEST_CASE("thread: pinned to the n-th usable core, counted round; named within the kernel's limit") {
    const unsigned cores = platform::usable_core_count();
    REQUIRE(cores >= 1);
    std::vector<int> cpus;
    for (unsigned index = 0; index < cores + 1; ++index) {
        std::thread([&] {
            CHECK(platform::pin_current_thread(index) == 0);
            CHECK(platform::usable_core_count() == 1);
            cpus.push_back(::sched_getcpu());
            platform::name_current_thread("a name that is too long");
            std::array<char, 64> name{};
            CHECK(::pthread_getname_np(::pthread_self(), name.data(), name.size()) == 0);
            CHECK(std::string(name.data()) == "a name that is ");
        }).join();
    }
    for (unsigned index = 1; index < cores; ++index) {
        CHECK(cpus[index] > cpus[index - 1]);
    }
    CHECK(cpus[cores] == cpus[0]);
    CHECK(platform::usable_core_count() == cores);
}

TEST_CASE("thread: every signal is blocked but those that a fault raises") {
    std::thread([] {
        platform::block_signals_in_current_thread();
        sigset_t blocked;
        CHECK(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
        for (const int signal :
             {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGCHLD, SIGALRM, SIGRTMIN, SIGRTMAX}) {
            CAPTURE(signal);
            CHECK(::sigismember(&blocked, signal) == 1);
        }
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
            CAPTURE(signal);
            CHECK(::sigismember(&blocked, signal) == 0);
        }
    }).join();
}

TEST_CASE("StopSignals: a signal, a notice from another thread, or the limit ends the wait") {
    const FormerHandlers former;
    StopSignals stop;
    REQUIRE(stop.error() == 0);
    CHECK(stop.wait(0) == -1);
    CHECK(stop.wait(10) == -1);
    for (const int signal : {SIGTERM, SIGINT}) {
        REQUIRE(::kill(::getpid(), signal) == 0);
        CHECK(stop.wait(kWaitMs) == signal);
    }
    std::thread notifier([&] { stop.notify(); });
    CHECK(stop.wait(kWaitMs) == 0);
    notifier.join();
    std::thread killer([] { ::kill(::getpid(), SIGTERM); });
    CHECK(stop.wait(kWaitMs) == SIGTERM);
    killer.join();
    CHECK(stop.wait(0) == -1);
    CHECK(former_handler_calls.load() == 0);
}

TEST_CASE("StopSignals: each of two watchers sees a signal; the former handlers come back after the last") {
    const FormerHandlers former;
    auto first = std::make_unique<StopSignals>();
    auto second = std::make_unique<StopSignals>();
    ::raise(SIGTERM);
    CHECK(first->wait(kWaitMs) == SIGTERM);
    CHECK(second->wait(kWaitMs) == SIGTERM);
    first->notify();
    CHECK(second->wait(0) == -1);
    CHECK(first->wait(kWaitMs) == 0);
    first.reset();
    ::raise(SIGINT);
    CHECK(second->wait(kWaitMs) == SIGINT);
    CHECK(former_handler_calls.load() == 0);
    second.reset();
    ::raise(SIGINT);
    ::raise(SIGTERM);
    CHECK(former_handler_calls.load() == 2);
}

TEST_CASE("StopSignals: a handler that was installed after it stays") {
    const FormerHandlers former;
    {
        const StopSignals stop;
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        ::sigaction(SIGTERM, &ignore, nullptr);
    }
    ::raise(SIGTERM);
    CHECK(former_handler_calls.load() == 0);
    ::raise(SIGINT);
    CHECK(former_handler_calls.load() == 1);
}

TEST_CASE("StopSignals: one watcher too many is refused, and a place is free again afterwards") {
    const FormerHandlers former;
    std::vector<std::unique_ptr<StopSignals>> watchers;
    for (int i = 0; i < StopSignals::kMaxWatchers; ++i) {
        watchers.push_back(std::make_unique<StopSignals>());
        REQUIRE(watchers.back()->error() == 0);
    }
    CHECK(StopSignals().error() == ENOSPC);
    watchers.pop_back();
    CHECK(StopSignals().error() == 0);
}

TEST_CASE("StopSignals: notices that nobody reads hold nobody up") {
    constexpr int kNotices = 100'000;  // more than a pipe holds (man 7 pipe)
    StopSignals stop;
    std::atomic<bool> done{false};
    std::thread notifier([&] {
        for (int i = 0; i < kNotices; ++i) {
            stop.notify();
        }
        done = true;
    });
    const auto limit = wait_limit();
    while (!done.load() && within(limit)) {
        std::this_thread::yield();
    }
    CHECK(done.load());
    // Lets the notifier go if it is held after all.
    int result = 0;
    while (!done.load() || result == 0) {
        result = stop.wait(0);
    }
    notifier.join();
    CHECK(result == -1);
}

TEST_CASE("StopSignals: signals that come while watchers come and go reach the one that stays") {
    const FormerHandlers former;
    StopSignals stays;
    std::atomic<bool> done{false};
    std::thread killer([&] {
        while (!done.load()) {
            ::kill(::getpid(), SIGINT);
            std::this_thread::yield();
        }
    });
    for (int i = 0; i < 300; ++i) {
        const StopSignals passing;
        REQUIRE(passing.error() == 0);
    }
    CHECK(stays.wait(kWaitMs) == SIGINT);
    done = true;
    killer.join();
    CHECK(former_handler_calls.load() == 0);
}

TEST_CASE("clocks: one never goes back, the other is the time of day") {
    std::uint64_t last = platform::monotonic_ms();
    const std::uint64_t start = last;
    const auto limit = wait_limit();
    bool went_back = false;
    while (last < start + 20 && within(limit)) {
        const std::uint64_t now = platform::monotonic_ms();
        went_back |= now < last;
        last = now;
    }
    CHECK(!went_back);
    CHECK(last >= start + 20);
    const std::int64_t before = ::time(nullptr);
    const std::int64_t wall = platform::wall_ms() / 1000;
    CHECK(wall >= before - 1);
    CHECK(wall <= before + 2);
}

TEST_CASE("errors and addresses read well") {
    const Error error = system_error("open \"x\"", ENOENT);
    CHECK(error.message == "open \"x\": No such file or directory");
    CHECK(error.code == ENOENT);

    PeerAddress address;
    CHECK(address.to_string() == "unknown");
    address.family = AddressFamily::unix_socket;
    CHECK(address.to_string() == "unix");
    address.family = AddressFamily::ipv4;
    address.bytes = {192, 0, 2, 7};
    address.port = 65535;
    CHECK(address.to_string() == "192.0.2.7:65535");
    address.family = AddressFamily::ipv6;
    address.bytes = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    address.port = 80;
    CHECK(address.to_string() == "[2001:db8::1]:80");
}

}  // namespace penstock
