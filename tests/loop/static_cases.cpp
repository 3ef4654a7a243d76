// The cases of files in tests/http/ on a real disk and real sockets.
#include "http/static_cases.h"

#include "loop/disk.h"
#include "loop/loop_cases.h"

namespace penstock::test {

void run_static_cases(const Disk& disk, std::span<const Case> cases) {
    const RealDisk real(disk);
    Server server(case_config());
    server.listen({.address = "127.0.0.1"}, static_router(real.site(), disk));
    {
        const AsSomebodyElse user;
        start_or_fail(server);
    }
    const std::string tag = LoopClient(server.port()).ask("/f.txt").field("ETag");
    for (const Case& expected : cases) {
        run_case(server, with_tag(expected, tag));
    }
    check_all_ended(server);
}

}  // namespace penstock::test
