#include "penstock/engine/ensure.h"

#include <doctest/doctest.h>

#include <string>

#include "support/abort_message.h"

namespace penstock {

TEST_CASE("ensure: what holds goes on") {
    CHECK(abort_message([] { ensure(true, "never said"); }).empty());
    CHECK(abort_message([] { ensure_debug(true, "never said"); }).empty());
}

TEST_CASE("ensure: what does not hold aborts, in every build, with place and sentence") {
    const int line = __LINE__ + 1;
    const std::string message = abort_message([] { ensure(false, "the sky fell"); });
    CHECK(message.find("ensure_test.cpp:" + std::to_string(line) + ": the sky fell\n") != std::string::npos);
}

TEST_CASE("ensure_debug: checks unless NDEBUG is defined") {
    const std::string message = abort_message([] { ensure_debug(false, "a costly check failed"); });
#ifdef NDEBUG
    CHECK(message.empty());
#else
    CHECK(message.find("a costly check failed") != std::string::npos);
#endif
}

}  // namespace penstock
