// The cases of files in tests/http/ on the simulated disk, where a stream can be cut at every place.
#include "http/static_cases.h"

#include "http_fixture.h"

namespace penstock::test {
namespace {

constexpr std::string_view kDisk = "/disk";

Router made_on(sim::World& world, const Disk& disk);

}  // namespace

void run_static_cases(const Disk& disk, std::span<const Case> cases) {
    Engine engine([&disk](sim::World& world) { return made_on(world, disk); });
    const std::string tag = tag_in(feed_whole(engine, get("/f.txt")).bytes);
    for (const Case& expected : cases) {
        run_case(engine, with_tag(expected, tag));
    }
    CHECK(engine.world.bad_descriptor_calls() == 0);
}

namespace {

Router made_on(sim::World& world, const Disk& disk) {
    using Kind = DiskEntry::Kind;
    for (const DiskEntry& entry : disk.entries) {
        const std::string path = std::string(kDisk) + "/" + entry.path;
        switch (entry.kind) {
            case Kind::closed_file:
            case Kind::file: world.add_file(path, entry.content); break;
            case Kind::closed_directory:
            case Kind::directory: world.add_directory(path); break;
            case Kind::link: world.add_link(path, replaced(entry.content, "{disk}", kDisk)); break;
            case Kind::pipe: world.add_special(path); break;
        }
        if (entry.kind == Kind::file) {
            world.set_modified_ns(path, kFileSeconds * 1'000'000'000);
        }
    }
    for (const DiskEntry& entry : disk.entries) {
        if (entry.kind == Kind::closed_file || entry.kind == Kind::closed_directory) {
            world.set_permitted(std::string(kDisk) + "/" + entry.path, false);
        }
    }
    return static_router(std::string(kDisk) + "/site", disk);
}

}  // namespace

}  // namespace penstock::test
