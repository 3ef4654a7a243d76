#include "penstock/engine/config.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "penstock/engine/timer_wheel.h"

namespace penstock {

namespace {

// The sentence that `validate` answers to the defaults changed by `change`; "" when it accepts them.
std::string complaint(const std::function<void(Config&)>& change) {
    Config config;
    change(config);
    const Result<void> result = validate(config);
    if (result.ok()) {
        return "";
    }
    CHECK(result.error().code == 0);
    return result.error().message;
}

bool names(const std::string& sentence, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (sentence.find(word) == std::string::npos) {
            MESSAGE("\"" << sentence << "\" lacks \"" << word << "\"");
            return false;
        }
    }
    return true;
}

constexpr std::uint32_t kMaxNumber = std::numeric_limits<std::uint32_t>::max();

}  // namespace

TEST_CASE("Config: the defaults are valid") {
    CHECK(complaint([](Config&) {}).empty());
}

TEST_CASE("Config: the least that each option may be") {
    CHECK(complaint([](Config& config) {
              config.connection_limit = 1;
              config.refusal_limit = 0;
              config.io_block_limit = 3;
              config.io_block_reserve = 1;
              config.page_limit = 1;
              config.free_block_limit = 0;
              config.body_memory_limit_bytes = 0;
              config.body_limit_bytes = 0;
              config.output_high_water_bytes = 1;
              config.idle_timeout_ms = 1;
              config.head_timeout_ms = 1;
              config.body_timeout_ms = 1;
              config.write_timeout_ms = 1;
              config.linger_timeout_ms = 0;
              config.linger_limit_bytes = 0;
              config.linger_limit = 0;
              config.header_count_limit = 1;
              config.target_limit_bytes = 1;
              config.mailbox_limit = 1;
              config.offload_threads = 0;
              config.offload_limit = 0;
              config.backlog = 1;
              config.drain_timeout_ms = 0;
          }).empty());
}

TEST_CASE("Config: the most that each option may be") {
    CHECK(complaint([](Config& config) {
              config.reactors = 1024;
              config.connection_limit = 1 << 24;
              config.refusal_limit = 1 << 24;
              config.io_block_limit = kMaxNumber;
              config.io_block_reserve = kMaxNumber - 2;
              config.page_limit = kMaxNumber;
              config.free_block_limit = kMaxNumber;
              config.body_memory_limit_bytes = std::numeric_limits<std::uint64_t>::max();
              config.body_limit_bytes = std::numeric_limits<std::uint64_t>::max();
              config.output_high_water_bytes = kMaxNumber;
              config.idle_timeout_ms = TimerWheel::kMaxDelayMs;
              config.linger_limit = 1 << 24;
              config.header_count_limit = 4096;
              config.target_limit_bytes = kIoBlockBytes - 17;
              config.mailbox_limit = 1 << 20;
              config.offload_limit = 1 << 20;
              config.offload_threads = 1024;
              config.backlog = std::numeric_limits<int>::max();
          }).empty());
}

TEST_CASE("Config: 0 where something is needed is named with its value and the way out") {
    const std::vector<std::pair<std::string, std::function<void(Config&)>>> zeros = {
        {"connection_limit",
         [](Config& config) {
             config.connection_limit = 0;
         }},
        {"io_block_limit",
         [](Config& config) {
             config.io_block_limit = 0;
         }},
        {"io_block_reserve",
         [](Config& config) {
             config.io_block_reserve = 0;
         }},
        {"page_limit",
         [](Config& config) {
             config.page_limit = 0;
         }},
        {"output_high_water_bytes",
         [](Config& config) {
             config.output_high_water_bytes = 0;
         }},
        {"idle_timeout_ms",
         [](Config& config) {
             config.idle_timeout_ms = 0;
         }},
        {"head_timeout_ms",
         [](Config& config) {
             config.head_timeout_ms = 0;
         }},
        {"body_timeout_ms",
         [](Config& config) {
             config.body_timeout_ms = 0;
         }},
        {"write_timeout_ms",
         [](Config& config) {
             config.write_timeout_ms = 0;
         }},
        {"header_count_limit",
         [](Config& config) {
             config.header_count_limit = 0;
         }},
        {"target_limit_bytes",
         [](Config& config) {
             config.target_limit_bytes = 0;
         }},
        {"mailbox_limit",
         [](Config& config) {
             config.mailbox_limit = 0;
         }},
        {"backlog",
         [](Config& config) {
             config.backlog = 0;
         }},
    };
    for (const auto& [option, change] : zeros) {
        CHECK(names(complaint(change), {option + " is 0: set it to ", "; "}));
    }
    CHECK(names(complaint([](Config& config) { config.backlog = -5; }), {"backlog is -5"}));
}

TEST_CASE("Config: one too much is named likewise") {
    struct Excess {
        const char* option;
        std::uint32_t Config::*member;
        std::uint32_t value;
    };
    const std::uint32_t too_late = TimerWheel::kMaxDelayMs + 1;
    const std::vector<Excess> excesses = {
        {"reactors", &Config::reactors, 1025},
        {"connection_limit", &Config::connection_limit, (1 << 24) + 1},
        {"refusal_limit", &Config::refusal_limit, (1 << 24) + 1},
        {"linger_limit", &Config::linger_limit, (1 << 24) + 1},
        {"header_count_limit", &Config::header_count_limit, 4097},
        {"target_limit_bytes", &Config::target_limit_bytes, 16368},
        {"mailbox_limit", &Config::mailbox_limit, (1 << 20) + 1},
        {"offload_threads", &Config::offload_threads, 1025},
        {"idle_timeout_ms", &Config::idle_timeout_ms, too_late},
        {"head_timeout_ms", &Config::head_timeout_ms, too_late},
        {"body_timeout_ms", &Config::body_timeout_ms, too_late},
        {"write_timeout_ms", &Config::write_timeout_ms, too_late},
        {"linger_timeout_ms", &Config::linger_timeout_ms, too_late},
        {"drain_timeout_ms", &Config::drain_timeout_ms, too_late},
    };
    for (const Excess& excess : excesses) {
        const std::string sentence = complaint([&](Config& config) { config.*excess.member = excess.value; });
        const std::string value = std::to_string(excess.value);
        CHECK(names(sentence, {std::string(excess.option) + " is " + value + ": set it to ", " to ", "; "}));
    }
}

TEST_CASE("Config: contradictions name both options, their values and the way out") {
    CHECK(names(complaint([](Config& config) { config.steering = Steering::receiving_cpu; }),
                {"steering is receiving_cpu", "pin_reactors is false", "set pin_reactors to true"}));
    CHECK(complaint([](Config& config) {
              config.steering = Steering::receiving_cpu;
              config.pin_reactors = true;
          }).empty());
    CHECK(names(complaint([](Config& config) { config.io_block_reserve = 4095; }),
                {"io_block_reserve is 4095", "io_block_limit is 4096", "4097 or more"}));
    CHECK(complaint([](Config& config) { config.io_block_reserve = 4094; }).empty());
    CHECK(names(complaint([](Config& config) {
                    config.io_block_limit = 4;
                    config.io_block_reserve = 1;
                    config.output_high_water_bytes = (64 << 10) + 1;
                }),
                {"output_high_water_bytes is 65537", "io_block_limit is 4", "65536 or less"}));
    CHECK(names(complaint([](Config& config) { config.body_limit_bytes = (256u << 20) + 1; }),
                {"body_limit_bytes is 268435457", "body_memory_limit_bytes is 268435456", "set "}));
    CHECK(names(complaint([](Config& config) { config.offload_threads = 0; }),
                {"offload_threads is 0", "offload_limit is 256", "set offload_threads to 1 or more"}));
}

}  // namespace penstock
