// Simulated files that get a name later, or never: platform/file.h. Its twin on the real system is
// tests/loop/platform_temporary_files_test.cpp.
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/platform/file.h"
#include "sim/world_fixture.h"

namespace penstock::world_tests {

namespace {

using platform::FileInfo;
using platform::FileKind;
using sim::Call;
using sim::Outcome;
using sim::World;

using Names = std::vector<std::string>;

// With files that have no name until they are given one, or with files that always have one.
struct Tree {
    World world;
    const bool nameless;

    explicit Tree(bool files_may_be_nameless) : nameless(files_may_be_nameless) {
        world.add_file("/top/files/there.txt", "there");
        world.add_directory("/top/spool");
        if (!nameless) {
            world.forbid_nameless_files();
        }
    }
};

struct Temporary {
    int fd = -1;
    std::string name;

    explicit Temporary(const std::string& directory = "/top/spool") {
        const IoResult created = platform::create_temporary_file(directory, &name);
        REQUIRE_MESSAGE(created.ok(), "errno ", created.error);
        fd = static_cast<int>(created.count);
    }
};

IoResult write_text(int fd, std::uint64_t offset, std::string_view text) {
    return platform::write_file(fd, offset, std::as_bytes(std::span(text)));
}

std::string text_of(int fd) {
    std::string text(100, '\0');
    const IoResult result = platform::read_file(fd, 0, std::as_writable_bytes(std::span(text)));
    REQUIRE(result.ok());
    text.resize(static_cast<std::size_t>(result.count));
    return text;
}

std::string text_at(const char* name) {
    Result<int> root = platform::open_directory("/top");
    REQUIRE(root.ok());
    const IoResult opened = platform::open_beneath(root.value(), name);
    platform::close_descriptor(root.value());
    REQUIRE(opened.ok());
    const int fd = static_cast<int>(opened.count);
    std::string text = text_of(fd);
    platform::close_descriptor(fd);
    return text;
}

int create_error(const std::string& directory) {
    std::string name = "stale";
    const IoResult created = platform::create_temporary_file(directory, &name);
    CHECK(name.empty());
    return created.error;
}

}  // namespace

TEST_CASE("sim create_temporary_file: an empty file, which is gone when it is closed without a name") {
    for (const bool nameless : {true, false}) {
        CAPTURE(nameless);
        Tree tree(nameless);
        const Temporary file;
        const Temporary other;
        CHECK(file.name.empty() == nameless);
        CHECK(tree.world.names_in("/top/spool").size() == (nameless ? 0 : 2));
        if (!nameless) {
            CHECK(file.name.starts_with("/top/spool/.penstock-"));
            CHECK(file.name != other.name);
            CHECK(tree.world.exists(file.name));
        }
        FileInfo info;
        REQUIRE(platform::file_info(file.fd, &info) == 0);
        CHECK(info.kind == FileKind::regular);
        CHECK(info.size == 0);
        for (const Temporary* each : {&file, &other}) {
            platform::close_descriptor(each->fd);
            if (!nameless) {
                platform::remove_file(each->name);
            }
        }
        CHECK(tree.world.names_in("/top/spool").empty());
        CHECK(tree.world.open_descriptors() == 0);
    }
}

TEST_CASE("sim create_temporary_file refuses what is no directory, and what may not be written") {
    Tree tree(true);
    tree.world.add_directory("/top/closed");
    tree.world.set_permitted("/top/closed", false);
    CHECK(create_error("/top/none") == ENOENT);
    CHECK(create_error("") == ENOENT);
    CHECK(create_error("/top/files/there.txt") == ENOTDIR);
    CHECK(create_error("/top/closed") == EACCES);
    tree.world.set_descriptor_limit(0);
    CHECK(create_error("/top/spool") == EMFILE);
    CHECK(tree.world.open_descriptors() == 0);
}

TEST_CASE("sim write_file: at any offset, with zeros where nothing was written") {
    Tree tree(true);
    const Temporary file;
    CHECK(write_text(file.fd, 0, "0123").count == 4);
    CHECK(write_text(file.fd, 4, "4567").count == 4);
    CHECK(write_text(file.fd, 2, "xx").count == 2);
    CHECK(text_of(file.fd) == "01xx4567");
    CHECK(write_text(file.fd, 10, "y").count == 1);
    CHECK(text_of(file.fd) == std::string("01xx4567\0\0y", 11));
    CHECK(write_text(file.fd, 0, "").count == 0);
    CHECK(write_text(-1, 0, "x").error == EBADF);

    Result<int> root = platform::open_directory("/top");
    REQUIRE(root.ok());
    const IoResult reading = platform::open_beneath(root.value(), "files/there.txt");
    REQUIRE(reading.ok());
    CHECK(write_text(static_cast<int>(reading.count), 0, "x").error == EBADF);
    CHECK(text_at("files/there.txt") == "there");

    tree.world.script(Call::write_file, file.fd, 1, Outcome::at_most(1));
    tree.world.script(Call::write_file, file.fd, 2, Outcome::fail(ENOSPC));
    CHECK(write_text(file.fd, 0, "abc").count == 1);
    CHECK(write_text(file.fd, 1, "bc").error == ENOSPC);
    CHECK(text_of(file.fd).starts_with("a1xx"));
}

TEST_CASE("sim name_file: the file stays under its name, and no other file is replaced") {
    for (const bool nameless : {true, false}) {
        CAPTURE(nameless);
        Tree tree(nameless);
        const Temporary file;
        const auto name_it = [&file](const std::string& path) { return platform::name_file(file.fd, file.name, path); };
        CHECK(write_text(file.fd, 0, "before").count == 6);
        CHECK(name_it("/top/files/there.txt") == EEXIST);
        CHECK(name_it("/top/files") == EEXIST);
        CHECK(name_it("/top/files/.") == EEXIST);
        CHECK(name_it("/top/none/new.txt") == ENOENT);
        CHECK(name_it("/top/files/there.txt/new.txt") == ENOTDIR);
        CHECK(name_it("/top/files/" + std::string(256, 'x')) == ENAMETOOLONG);
        CHECK(name_it("/top/files/" + std::string(4096, 'x')) == ENAMETOOLONG);
        CHECK(name_it("") == ENOENT);
        tree.world.set_permitted("/top/files", false);
        CHECK(name_it("/top/files/new.txt") == EACCES);
        tree.world.set_permitted("/top/files", true);
        CHECK(text_at("files/there.txt") == "there");

        CHECK(name_it("/top/files/new.txt") == 0);
        CHECK(tree.world.names_in("/top/files") == Names{"new.txt", "there.txt"});
        CHECK(tree.world.names_in("/top/spool").empty());
        CHECK(write_text(file.fd, 6, ", after").count == 7);
        platform::close_descriptor(file.fd);
        CHECK(text_at("files/new.txt") == "before, after");
        CHECK(platform::name_file(-1, "", "/top/files/none") == EBADF);
    }
}

}  // namespace penstock::world_tests
