// The simulated files: platform/file.h and send_file.
#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "penstock/platform/file.h"
#include "sim/world_fixture.h"

namespace penstock::world_tests {

namespace {

using platform::FileInfo;
using platform::FileKind;
using sim::World;

// root/{inside.txt, a..b, dir/up -> ../inside.txt, out -> ../secret.txt, above -> .., fifo} beside
// secret.txt.
struct Tree {
    World world;
    int root = -1;

    Tree() {
        world.add_file("/top/secret.txt", "secret");
        world.add_file("/top/base/inside.txt", "0123456789");
        world.add_file("/top/base/a..b", "dots");
        world.add_link("/top/base/dir/up", "../inside.txt");
        world.add_link("/top/base/out", "../secret.txt");
        world.add_link("/top/base/above", "..");
        world.add_link("/top/base/absolute", "/top/base/inside.txt");
        world.add_link("/top/base/loop", "loop");
        world.add_special("/top/base/fifo");
        Result<int> opened = platform::open_directory("/top/base");
        REQUIRE(opened.ok());
        root = opened.value();
    }

    [[nodiscard]] IoResult open(const char* path) const { return platform::open_beneath(root, path); }
    [[nodiscard]] int open_or_fail(const char* path) const {
        const IoResult result = open(path);
        REQUIRE_MESSAGE(result.ok(), path, ": errno ", result.error);
        return static_cast<int>(result.count);
    }
};

std::string read_text(int fd, std::uint64_t offset, std::size_t size) {
    std::string text(size, '\0');
    const IoResult result = platform::read_file(fd, offset, std::as_writable_bytes(std::span(text)));
    REQUIRE(result.ok());
    text.resize(static_cast<std::size_t>(result.count));
    return text;
}

FileInfo info_of(int fd) {
    FileInfo info;
    REQUIRE(platform::file_info(fd, &info) == 0);
    return info;
}

char byte_at(std::uint64_t offset) {
    return static_cast<char>(offset * 31 >> 3 & 0x7F);
}

void fill(std::uint64_t offset, std::span<char> bytes) {
    for (char& byte : bytes) {
        byte = byte_at(offset++);
    }
}

}  // namespace

TEST_CASE("sim open_beneath: files below the root are opened, and links that stay below are followed") {
    Tree tree;
    for (const char* path : {"inside.txt", "./inside.txt", "dir/up", "a..b", "dir", "dir/", "."}) {
        CAPTURE(path);
        CHECK(tree.open(path).ok());
    }
    CHECK(tree.open("missing").error == ENOENT);
    CHECK(tree.open("").error == ENOENT);
    CHECK(tree.open("inside.txt/x").error == ENOTDIR);
    CHECK(tree.open("inside.txt/").error == ENOTDIR);
    CHECK(tree.open("loop").error == ELOOP);
    CHECK(tree.open(std::string(256, 'x').c_str()).error == ENAMETOOLONG);
    CHECK(tree.open(std::string(4096, 'x').c_str()).error == ENAMETOOLONG);
    CHECK(platform::open_beneath(tree.open_or_fail("inside.txt"), "x").error == ENOTDIR);
    CHECK(platform::open_beneath(-1, "x").error == EBADF);
}

TEST_CASE("sim open_beneath: what leads outside is refused at every step") {
    Tree tree;
    for (const char* path :
         {"..", "../secret.txt", "dir/../../secret.txt", "dir/../inside.txt", "dir/..", "out", "above",
          "above/secret.txt", "above/base/inside.txt", "absolute", "/etc/passwd", "/top/base/inside.txt"}) {
        CAPTURE(path);
        CHECK(tree.open(path).error == EXDEV);
    }
}

TEST_CASE("sim open_beneath: no link is followed where none may be, wherever it leads") {
    Tree tree;
    tree.world.add_link("/top/base/folder", "dir");
    for (const char* path : {"dir/up", "out", "above", "absolute", "loop", "folder", "folder/up"}) {
        CAPTURE(path);
        CHECK(platform::open_beneath(tree.root, path, platform::LinkPolicy::never).error == ELOOP);
    }
    for (const char* path : {"inside.txt", "dir", "."}) {
        CAPTURE(path);
        CHECK(platform::open_beneath(tree.root, path, platform::LinkPolicy::never).ok());
    }
    CHECK(platform::open_beneath(tree.root, "..", platform::LinkPolicy::never).error == EXDEV);
}

TEST_CASE("sim list_directory: every entry as itself, again and again, and no more than the limit") {
    Tree tree;
    std::vector<platform::DirectoryEntry> entries;
    bool complete = false;
    for (int times = 0; times < 2; ++times) {
        REQUIRE(platform::list_directory(tree.root, 100, &entries, &complete) == 0);
        CHECK(complete);
        std::map<std::string, platform::DirectoryEntry> found;
        for (const platform::DirectoryEntry& entry : entries) {
            found[entry.name] = entry;
        }
        CHECK(found.size() == entries.size());
        REQUIRE(found.size() == 8);
        CHECK(found["inside.txt"].info.kind == FileKind::regular);
        CHECK(found["inside.txt"].info.size == 10);
        CHECK_FALSE(found["inside.txt"].is_link);
        CHECK(found["dir"].info.kind == FileKind::directory);
        CHECK(found["fifo"].info.kind == FileKind::other);
        CHECK_FALSE(found["fifo"].is_link);
        for (const char* const link : {"out", "above", "absolute", "loop"}) {
            CAPTURE(link);
            CHECK(found[link].is_link);
            CHECK(found[link].info.kind == FileKind::other);
        }
    }
    REQUIRE(platform::list_directory(tree.root, 8, &entries, &complete) == 0);
    CHECK(complete);
    REQUIRE(platform::list_directory(tree.root, 7, &entries, &complete) == 0);
    CHECK_FALSE(complete);
    CHECK(entries.size() == 7);
    CHECK(platform::list_directory(tree.open_or_fail("inside.txt"), 8, &entries, &complete) == ENOTDIR);
    CHECK(entries.empty());
    CHECK(platform::list_directory(-1, 8, &entries, &complete) == EBADF);
    const auto open = tree.world.open_descriptors();
    tree.world.script(sim::Call::list_directory, tree.root, 1, sim::Outcome::fail(EMFILE));
    CHECK(platform::list_directory(tree.root, 8, &entries, &complete) == EMFILE);
    CHECK(platform::list_directory(tree.root, 8, &entries, &complete) == 0);
    CHECK(tree.world.open_descriptors() == open);
}

TEST_CASE("sim: a cold file is had once for a wait each, of its name and of its bytes, and never without one") {
    Tree tree;
    tree.world.chill_file("/top/base/inside.txt");
    const auto open_at_once = [&] {
        return platform::open_beneath(tree.root, "inside.txt", platform::LinkPolicy::inside, platform::DiskWait::never);
    };
    CHECK(open_at_once().error == EAGAIN);
    const int file = tree.open_or_fail("inside.txt");
    CHECK(tree.world.disk_waits() == 1);
    CHECK(open_at_once().ok());
    std::array<std::byte, 4> buffer{};
    const auto read_at_once = [&](std::uint64_t offset) {
        return platform::read_file(file, offset, buffer, platform::DiskWait::never);
    };
    CHECK(read_at_once(0).error == EAGAIN);
    CHECK(platform::read_file(file, 0, buffer).count == 4);
    CHECK(tree.world.disk_waits() == 2);
    CHECK(read_at_once(0).count == 4);
    CHECK(read_at_once(2).count == 2);
    CHECK(read_at_once(4).error == EAGAIN);
    CHECK(tree.world.disk_waits() == 2);
}

TEST_CASE("sim file_info and read_file tell what a file is and holds") {
    Tree tree;
    tree.world.set_modified_ns("/top/base/inside.txt", 1'500'000'000);
    const int file = tree.open_or_fail("inside.txt");
    FileInfo info = info_of(file);
    CHECK(info.kind == FileKind::regular);
    CHECK(info.size == 10);
    CHECK(info.modified_ns == 1'500'000'000);
    CHECK(info.inode == info_of(tree.open_or_fail("dir/up")).inode);
    CHECK(info.inode != info_of(tree.open_or_fail("a..b")).inode);
    info = info_of(tree.root);
    CHECK(info.kind == FileKind::directory);
    CHECK(info.modified_ns == World::kStartWallSeconds * 1'000'000'000);
    const int fifo = tree.open_or_fail("fifo");
    CHECK(info_of(fifo).kind == FileKind::other);
    CHECK(platform::file_info(-1, &info) == EBADF);

    CHECK(read_text(file, 2, 6) == "234567");
    CHECK(read_text(file, 8, 6) == "89");
    CHECK(read_text(file, 2, 6) == "234567");
    CHECK(read_text(file, 10, 6).empty());
    CHECK(read_text(file, 1000, 6).empty());
    std::array<std::byte, 4> buffer{};
    CHECK(platform::read_file(tree.root, 0, buffer).error == EISDIR);
    CHECK(platform::read_file(fifo, 0, buffer).error == ESPIPE);
}

TEST_CASE("sim open_directory refuses what is none, and names it") {
    Tree tree;
    tree.world.add_directory("/top/closed/inner");
    tree.world.set_permitted("/top/closed", false);
    struct Case {
        const char* path;
        int code;
    };
    for (const Case& refused : {Case{"/top/secret.txt", ENOTDIR}, Case{"/none", ENOENT},
                                Case{"/top/closed", EACCES}, Case{"/top/closed/inner", EACCES}}) {
        CAPTURE(refused.path);
        Result<int> opened = platform::open_directory(refused.path);
        REQUIRE(!opened.ok());
        CHECK(opened.error().code == refused.code);
        CHECK(opened.error().message.find(refused.path) != std::string::npos);
    }
    tree.world.set_permitted("/top/base/inside.txt", false);
    CHECK(tree.open("inside.txt").error == EACCES);
}

TEST_CASE("sim: files shrink in place, but are replaced and removed only for those who open them later") {
    Tree tree;
    const int file = tree.open_or_fail("inside.txt");
    tree.world.truncate_file("/top/base/inside.txt", 4);
    CHECK(info_of(file).size == 4);
    CHECK(read_text(file, 2, 6) == "23");
    tree.world.truncate_file("/top/base/inside.txt", 6);
    CHECK(read_text(file, 0, 10) == std::string("0123\0\0", 6));

    tree.world.add_file("/top/base/inside.txt", "new");
    CHECK(info_of(file).size == 6);
    const int fresh = tree.open_or_fail("inside.txt");
    CHECK(read_text(fresh, 0, 10) == "new");
    CHECK(info_of(fresh).inode != info_of(file).inode);
    CHECK(tree.world.exists("/top/base/inside.txt"));
    tree.world.remove_file("/top/base/inside.txt");
    CHECK(!tree.world.exists("/top/base/inside.txt"));
    CHECK(tree.open("inside.txt").error == ENOENT);
    CHECK(read_text(fresh, 0, 10) == "new");
    platform::close_descriptor(fresh);
    CHECK(tree.world.open_descriptors() == 2);
}

TEST_CASE(
    "sim send_file: slices by offset, 0 when the file ended early, would block when the buffer is full") {
    Bench bench;
    bench.world.add_file("/www/file", "0123456789");
    Result<int> root = platform::open_directory("/www");
    REQUIRE(root.ok());
    const int file = static_cast<int>(platform::open_beneath(root.value(), "file").count);
    Link link = bench.link();
    CHECK(platform::send_file(link.fd, file, 6, 100).count == 4);
    CHECK(platform::send_file(link.fd, file, 2, 3).count == 3);
    CHECK(link.peer.received() == "6789234");
    bench.world.truncate_file("/www/file", 5);
    const IoResult ended = platform::send_file(link.fd, file, 5, 5);
    CHECK(ended.ok());
    CHECK(ended.count == 0);

    link.peer.set_receive_window(3);
    CHECK(platform::send_file(link.fd, file, 0, 5).count == 3);
    CHECK(is_would_block(platform::send_file(link.fd, file, 3, 2).error));
    CHECK(link.peer.read(10) == "012");
    CHECK(platform::send_file(link.fd, file, 3, 2).count == 2);
    CHECK(platform::send_file(link.fd, root.value(), 0, 1).error == EINVAL);
    CHECK(platform::send_file(link.fd, -1, 0, 1).error == EBADF);
    CHECK(platform::send_file(-1, file, 0, 1).error == EBADF);
    link.peer.reset();
    CHECK(platform::send_file(link.fd, file, 0, 5).error == ECONNRESET);
    CHECK(platform::send_file(link.fd, file, 0, 5).error == EPIPE);
}

TEST_CASE("sim: a file larger than memory is sent from what its offsets give") {
    constexpr std::uint64_t kSize = 10'000'000'000;
    Bench bench;
    bench.world.add_file("/www/huge", kSize, fill);
    Result<int> root = platform::open_directory("/www");
    REQUIRE(root.ok());
    const int file = static_cast<int>(platform::open_beneath(root.value(), "huge").count);
    CHECK(info_of(file).size == kSize);
    CHECK(read_text(file, 5'000'000'000, 2) == std::string{byte_at(5'000'000'000), byte_at(5'000'000'001)});

    Link link = bench.link();
    std::uint64_t offset = kSize - 3'000'000;
    std::uint64_t wrong = 0;
    link.peer.set_sink([&wrong, at = offset](std::string_view bytes) mutable {
        for (const char byte : bytes) {
            wrong += byte == byte_at(at++) ? 0 : 1;
        }
    });
    const auto send_rest = [&] {
        while (offset < kSize) {
            const IoResult sent = platform::send_file(link.fd, file, offset, std::size_t{1} << 20U);
            REQUIRE(sent.ok());
            REQUIRE(sent.count > 0);
            offset += static_cast<std::uint64_t>(sent.count);
            (void)bench.poller.wait(0);
        }
    };
    send_rest();
    CHECK(link.peer.received_count() == 3'000'000);
    CHECK(wrong == 0);
    link.peer.discard_received();
    offset = 0;
    send_rest();
    CHECK(link.peer.received_count() == kSize + 3'000'000);
}

}  // namespace penstock::world_tests
