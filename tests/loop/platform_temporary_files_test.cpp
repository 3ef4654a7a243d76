// Files that get a name later, or never: platform/file.h. Its twin on the simulated kernel is
// tests/sim/world_temporary_files_test.cpp.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "loop/platform_fixture.h"
#include "penstock/platform/file.h"

namespace penstock {

namespace {

using platform::FileInfo;
using platform::FileKind;

using Names = std::vector<std::string>;

struct Tree {
    TemporaryDirectory directory;
    std::string files = directory / "files";
    std::string spool = directory / "spool";
    std::string there = directory / "files/there.txt";

    Tree() {
        std::filesystem::create_directory(files);
        std::filesystem::create_directory(spool);
        std::ofstream(there) << "there";
    }
};

struct Temporary {
    Fd fd;
    std::string name;

    explicit Temporary(const std::string& directory) {
        const IoResult created = platform::create_temporary_file(directory, &name);
        REQUIRE_MESSAGE(created.ok(), "errno ", created.error);
        fd = Fd(static_cast<int>(created.count));
    }
};

Names names_in(const std::string& directory) {
    Names names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

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

std::string text_at(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

int create_error(const std::string& directory) {
    std::string name = "stale";
    const IoResult created = platform::create_temporary_file(directory, &name);
    CHECK(name.empty());
    return created.error;
}

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr std::uint32_t offset_of_argument(std::size_t index) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));  // its low half
}

// From now on the kernel refuses this thread files without a name, and, unless it `can_rename`, to rename without
// replacing: what it is to live on NFS (man 2 seccomp). False where filters are not to be had.
bool live_without_nameless_files(bool can_rename) {
    constexpr std::uint32_t kRefuseTemporary = SECCOMP_RET_ERRNO | EOPNOTSUPP;
    constexpr std::uint32_t kTemporary = O_TMPFILE & ~O_DIRECTORY;
    const std::uint32_t on_rename = can_rename ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EINVAL;
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(2)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kTemporary, 2, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, on_rename),
        BPF_STMT(BPF_RET | BPF_K, kRefuseTemporary),
    };
    const sock_fprog filter = {sizeof program / sizeof program[0], program};
    return kArchitecture != 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum class FileSystem { with_nameless_files, without, without_and_without_exclusive_rename };

// The filter lasts as long as its thread.
void on(FileSystem file_system, const std::function<void(bool nameless)>& test) {
    if (file_system == FileSystem::with_nameless_files) {
        test(true);
        return;
    }
    std::thread([&] {
        if (live_without_nameless_files(file_system == FileSystem::without)) {
            test(false);
        } else {
            MESSAGE("not tested: there are no seccomp filters here");
        }
    }).join();
}

constexpr FileSystem kFileSystems[] = {FileSystem::with_nameless_files, FileSystem::without,
                                       FileSystem::without_and_without_exclusive_rename};

}  // namespace

TEST_CASE("create_temporary_file: an empty file, which is gone when it is closed without a name") {
    for (const FileSystem file_system : kFileSystems) {
        on(file_system, [](bool nameless) {
            CAPTURE(nameless);
            const Tree tree;
            Temporary file(tree.spool);
            Temporary other(tree.spool);
            CHECK(file.name.empty() == nameless);
            CHECK(names_in(tree.spool).size() == (nameless ? 0 : 2));
            if (!nameless) {
                CHECK(file.name.starts_with(tree.spool + "/.penstock-"));
                CHECK(file.name != other.name);
                CHECK(std::filesystem::exists(file.name));
            }
            FileInfo info;
            REQUIRE(platform::file_info(file.fd.get(), &info) == 0);
            CHECK(info.kind == FileKind::regular);
            CHECK(info.size == 0);
            struct stat status {};
            REQUIRE(::fstat(file.fd.get(), &status) == 0);
            CHECK((status.st_mode & 0777U) == 0600U);
            CHECK((::fcntl(file.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
            for (Temporary* each : {&file, &other}) {
                each->fd.close();
                if (!nameless) {
                    platform::remove_file(each->name);
                }
            }
            CHECK(names_in(tree.spool).empty());
        });
    }
}

TEST_CASE("create_temporary_file refuses what is no directory, and what may not be written") {
    const Tree tree;
    CHECK(create_error(tree.directory / "none") == ENOENT);
    CHECK(create_error("") == ENOENT);
    CHECK(create_error(tree.there) == ENOTDIR);
    if (::geteuid() != 0) {  // who may write everywhere
        REQUIRE(::chmod(tree.spool.c_str(), 0500) == 0);
        CHECK(create_error(tree.spool) == EACCES);
    }
}

TEST_CASE("write_file: at any offset, with zeros where nothing was written") {
    const Tree tree;
    const Temporary file(tree.spool);
    const int fd = file.fd.get();
    CHECK(write_text(fd, 0, "0123").count == 4);
    CHECK(write_text(fd, 4, "4567").count == 4);
    CHECK(write_text(fd, 2, "xx").count == 2);
    CHECK(text_of(fd) == "01xx4567");
    CHECK(write_text(fd, 10, "y").count == 1);
    CHECK(text_of(fd) == std::string("01xx4567\0\0y", 11));
    CHECK(::lseek(fd, 0, SEEK_CUR) == 0);
    CHECK(write_text(fd, 0, "").count == 0);
    CHECK(write_text(-1, 0, "x").error == EBADF);
    const Fd reading(::open(tree.there.c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(write_text(reading.get(), 0, "x").error == EBADF);
    CHECK(text_at(tree.there) == "there");
}

TEST_CASE("name_file: the file stays under its name, and no other file is replaced") {
    for (const FileSystem file_system : kFileSystems) {
        on(file_system, [](bool nameless) {
            CAPTURE(nameless);
            const Tree tree;
            Temporary file(tree.spool);
            const int fd = file.fd.get();
            const auto name_it = [&](const std::string& path) { return platform::name_file(fd, file.name, path); };
            CHECK(write_text(fd, 0, "before").count == 6);
            CHECK(name_it(tree.there) == EEXIST);
            CHECK(name_it(tree.files) == EEXIST);
            CHECK(name_it(tree.files + "/.") == EEXIST);
            CHECK(name_it(tree.directory / "none/new.txt") == ENOENT);
            CHECK(name_it(tree.there + "/new.txt") == ENOTDIR);
            CHECK(name_it(tree.files + "/" + std::string(256, 'x')) == ENAMETOOLONG);
            CHECK(name_it(tree.files + "/" + std::string(4096, 'x')) == ENAMETOOLONG);
            CHECK(name_it("") == ENOENT);
            CHECK(text_at(tree.there) == "there");

            CHECK(name_it(tree.files + "/new.txt") == 0);
            CHECK(names_in(tree.files) == Names{"new.txt", "there.txt"});
            CHECK(names_in(tree.spool).empty());
            CHECK(write_text(fd, 6, ", after").count == 7);
            file.fd.close();
            CHECK(text_at(tree.files + "/new.txt") == "before, after");
        });
    }
    const Tree tree;
    CHECK(platform::name_file(-1, "", tree.files + "/none") != 0);
}

}  // namespace penstock
