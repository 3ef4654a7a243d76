// Internal.
// A case of tests/http/ against a server that runs already, for tests that make one of their own. The test's thread alone.
#pragma once

#include "http/http_cases.h"
#include "loop/loop_client.h"

namespace penstock::test {

// Its router has "/letters", as case_router has.
void run_case(Server& server, const Case& expected);

// Every connection has gone, none was broken by a client of ours, and nothing is leased. Stops the server.
void check_all_ended(Server& server);

}  // namespace penstock::test
