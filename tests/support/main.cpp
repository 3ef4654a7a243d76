// The main of every test executable.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "support/seed.h"

#include <cinttypes>
#include <cstdio>

int main(int argc, char** argv) {
    doctest::Context context(argc, argv);
    std::printf("seed %" PRIu64 " (PENSTOCK_SEED=n chooses another)\n", penstock::test_seed());
    return context.run();
}
