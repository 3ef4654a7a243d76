#include "penstock/platform/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "penstock/platform/net.h"

namespace penstock {

std::size_t platform::parse_ip(const std::string& text, std::array<std::uint8_t, 16>* bytes) {
    if (::inet_pton(AF_INET, text.c_str(), bytes->data()) == 1) {
        return 4;
    }
    return ::inet_pton(AF_INET6, text.c_str(), bytes->data()) == 1 ? 16 : 0;
}

// Appended piece by piece: g++ 12 warns of "literal" + std::string at -O2 and above (its bug 105651).
std::string PeerAddress::to_string() const {
    char text[INET6_ADDRSTRLEN] = "";
    std::string result;
    switch (family) {
        case AddressFamily::none: return "unknown";
        case AddressFamily::unix_socket: return "unix";
        case AddressFamily::ipv4:
            ::inet_ntop(AF_INET, bytes.data(), text, sizeof text);
            result.append(text);
            break;
        case AddressFamily::ipv6:
            ::inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
            result.append("[").append(text).append("]");
            break;
    }
    return result.append(":").append(std::to_string(port));
}

}  // namespace penstock
