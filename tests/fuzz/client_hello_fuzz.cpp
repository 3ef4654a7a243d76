// The reader of a client's first TLS message: its views lie in the input or in the scratch, and more bytes never make a complete one
// incomplete.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "penstock/engine/client_hello.h"

namespace {

bool lies_in(const void* begin, std::size_t size, const std::vector<std::byte>& memory) {
    const auto* const at = static_cast<const std::byte*>(begin);
    return size == 0 || (at >= memory.data() && at + size <= memory.data() + memory.size());
}

void check(bool condition) {
    if (!condition) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    const std::vector<std::byte> input(bytes, bytes + size);
    std::vector<std::byte> scratch(size);
    ClientHello hello;
    const HelloStatus status = read_client_hello(input, scratch, &hello);
    if (status != HelloStatus::complete) {
        return 0;
    }
    check(lies_in(hello.server_name.data(), hello.server_name.size(), scratch));
    check(lies_in(hello.cipher_suites.data(), hello.cipher_suites.size(), scratch));
    check(lies_in(hello.signature_schemes.data(), hello.signature_schemes.size(), scratch));
    check(lies_in(hello.protocols.data(), hello.protocols.size(), scratch));
    std::vector<std::byte> longer = input;
    longer.push_back(std::byte{0});
    std::vector<std::byte> more_scratch(longer.size());
    check(read_client_hello(longer, more_scratch, &hello) == HelloStatus::complete);
    return 0;
}
