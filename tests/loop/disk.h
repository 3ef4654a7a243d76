// Internal.
// The disk of a case in a temporary directory. Where the test runs as root, for whom nothing is closed, the server is started
// as somebody else. Owned by one test; its thread alone.
#pragma once

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "http/static_cases.h"
#include "loop/platform_fixture.h"

namespace penstock::test {

// Threads that are started meanwhile open files as a user who owns none of ours (man 2 setfsuid).
class AsSomebodyElse {
public:
    AsSomebodyElse() : user_(static_cast<uid_t>(::setfsuid(kNobody))) {}
    ~AsSomebodyElse() { ::setfsuid(user_); }
    AsSomebodyElse(const AsSomebodyElse&) = delete;
    AsSomebodyElse& operator=(const AsSomebodyElse&) = delete;

private:
    static constexpr uid_t kNobody = 65'534;
    const uid_t user_;
};

class RealDisk {
public:
    explicit RealDisk(const Disk& disk) {
        // Files that are open to all must be so whatever the user's mask says.
        const mode_t mask = ::umask(022);
        for (const DiskEntry& entry : disk.entries) {
            make(entry);
        }
        ::umask(mask);
        for (const DiskEntry& entry : disk.entries) {
            if (is_closed(entry)) {
                REQUIRE(::chmod((directory_ / entry.path).c_str(), 0) == 0);
            }
        }
    }
    // What is closed could not be removed by a user who is not root.
    ~RealDisk() {
        for (const std::string& path : closed_directories_) {
            ::chmod(path.c_str(), 0700);
        }
    }
    RealDisk(const RealDisk&) = delete;
    RealDisk& operator=(const RealDisk&) = delete;

    [[nodiscard]] std::string operator/(const std::string& path) const { return directory_ / path; }
    [[nodiscard]] std::string site() const { return directory_ / "site"; }

private:
    using Kind = DiskEntry::Kind;

    static bool is_closed(const DiskEntry& entry) {
        return entry.kind == Kind::closed_file || entry.kind == Kind::closed_directory;
    }

    void make(const DiskEntry& entry) {
        const std::string path = directory_ / entry.path;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        switch (entry.kind) {
            case Kind::closed_file:
            case Kind::file: write(path, entry.content); break;
            case Kind::closed_directory: closed_directories_.push_back(path); [[fallthrough]];
            case Kind::directory: std::filesystem::create_directories(path); break;
            case Kind::link:
                REQUIRE(::symlink(replaced(entry.content, "{disk}", directory_.path()).c_str(), path.c_str()) == 0);
                break;
            case Kind::pipe: REQUIRE(::mkfifo(path.c_str(), 0666) == 0); break;
        }
    }
    static void write(const std::string& path, const std::string& content) {
        std::ofstream file(path, std::ios::binary);
        file << content;
        file.close();
        REQUIRE(file.good());
        const timespec times[2] = {{kFileSeconds, 0}, {kFileSeconds, 0}};
        REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    }

    TemporaryDirectory directory_;
    std::vector<std::string> closed_directories_;
};

}  // namespace penstock::test
