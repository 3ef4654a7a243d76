#include "penstock/engine/client_hello.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock {

namespace {

constexpr std::uint8_t kHandshakeRecord = 22;  // RFC 8446 §5.1
constexpr std::uint8_t kClientHelloType = 1;   // RFC 8446 §4
constexpr std::size_t kRecordHeadBytes = 5;
constexpr std::size_t kMessageHeadBytes = 4;
constexpr std::size_t kRecordLimitBytes = 1 << 14;
constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kSessionIdLimitBytes = 32;
constexpr std::uint16_t kTls13 = 0x0304;

// IANA, TLS ExtensionType Values.
enum Extension : std::uint16_t {
    kServerName = 0,
    kGroups = 10,
    kSignatureAlgorithms = 13,
    kProtocols = 16,
    kPreSharedKeys = 41,
    kEarlyData = 42,
    kSupportedVersions = 43,
    kKeyShares = 51,
};

// Takes numbers and runs of bytes from the front. What is not there is none, and makes it false for ever.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : left_(bytes) {}

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] bool at_end() const { return left_.empty(); }

    std::size_t number(std::size_t size) {
        std::size_t value = 0;
        for (const std::uint8_t byte : bytes(size)) {
            value = value << 8 | byte;
        }
        return value;
    }
    std::span<const std::uint8_t> bytes(std::size_t size) {
        if (size > left_.size()) {
            ok_ = false;
            left_ = {};
            return {};
        }
        const auto found = left_.first(size);
        left_ = left_.subspan(size);
        return found;
    }
    // A run behind its length, which takes so many bytes.
    std::span<const std::uint8_t> run(std::size_t length_size) { return bytes(number(length_size)); }

private:
    std::span<const std::uint8_t> left_;
    bool ok_ = true;
};

HelloStatus find_message(std::span<const std::byte> input, std::span<std::byte> scratch, std::span<const std::uint8_t>* message);
bool read_message(std::span<const std::uint8_t> message, ClientHello* hello);
bool read_extension(std::size_t type, std::span<const std::uint8_t> content, ClientHello* hello);
bool read_server_name(std::span<const std::uint8_t> content, ClientHello* hello);
bool read_numbers(std::span<const std::uint8_t> content, std::size_t length_size, std::span<const std::uint8_t>* numbers);
bool read_protocols(std::span<const std::uint8_t> content, ClientHello* hello);
bool read_key_shares(std::span<const std::uint8_t> content, ClientHello* hello);
bool read_pre_shared_keys(std::span<const std::uint8_t> content, ClientHello* hello);
std::span<const std::uint8_t> as_numbers(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

bool ClientHello::contains(std::span<const std::uint8_t> numbers, std::uint16_t wanted) {
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
        if ((numbers[i] << 8 | numbers[i + 1]) == wanted) {
            return true;
        }
    }
    return false;
}

bool ClientHello::offers_protocol(std::string_view name) const {
    Reader names(protocols);
    while (!names.at_end()) {
        const auto offered = names.run(1);
        if (std::equal(offered.begin(), offered.end(), name.begin(), name.end())) {
            return true;
        }
    }
    return false;
}

bool ClientHello::has_key_share(std::uint16_t group) const {
    Reader shares(key_shares);
    bool found = false;
    while (!shares.at_end()) {
        found |= shares.number(2) == group;
        shares.run(2);
    }
    return found;
}

bool ClientHello::offers_ecdsa_suite() const {
    // RFC 5289 and RFC 7905: ECDHE_ECDSA with AES-GCM and with ChaCha20-Poly1305.
    static constexpr std::array<std::uint16_t, 3> kSuites = {0xc02b, 0xc02c, 0xcca9};
    return std::any_of(kSuites.begin(), kSuites.end(), [this](std::uint16_t suite) { return offers_suite(suite); });
}

HelloStatus read_client_hello(std::span<const std::byte> input, std::span<std::byte> scratch, ClientHello* hello) {
    std::span<const std::uint8_t> message;
    const HelloStatus status = find_message(input, scratch, &message);
    if (status != HelloStatus::complete) {
        return status;
    }
    *hello = {};
    return read_message(message, hello) ? HelloStatus::complete : HelloStatus::malformed;
}

namespace {

// The message without its head.
HelloStatus find_message(std::span<const std::byte> input, std::span<std::byte> scratch, std::span<const std::uint8_t>* message) {
    std::size_t joined = 0;
    for (std::size_t at = 0; at < input.size();) {
        const auto record = as_numbers(input.subspan(at));
        if (record[0] != kHandshakeRecord) {
            return at == 0 ? HelloStatus::no_tls : HelloStatus::malformed;
        }
        if (record.size() > 1 && record[1] != 3) {  // RFC 8446 §5.1: 3.1 in most, else 3.3
            return HelloStatus::malformed;
        }
        if (record.size() < kRecordHeadBytes) {
            return HelloStatus::incomplete;
        }
        const std::size_t length = static_cast<std::size_t>(record[3]) << 8 | record[4];
        if (length == 0 || length > kRecordLimitBytes) {
            return HelloStatus::malformed;
        }
        const std::size_t present = std::min(length, record.size() - kRecordHeadBytes);
        std::memcpy(scratch.data() + joined, record.data() + kRecordHeadBytes, present);
        joined += present;
        const auto so_far = as_numbers(scratch.first(joined));
        if (!so_far.empty() && so_far[0] != kClientHelloType) {
            return HelloStatus::malformed;
        }
        if (joined >= kMessageHeadBytes) {
            Reader content(so_far.subspan(1));
            *message = content.run(kMessageHeadBytes - 1);
            if (content.ok()) {
                return HelloStatus::complete;
            }
        }
        if (present < length) {
            return HelloStatus::incomplete;
        }
        at += kRecordHeadBytes + length;
    }
    return HelloStatus::incomplete;
}

bool read_message(std::span<const std::uint8_t> message, ClientHello* hello) {
    Reader reader(message);
    reader.bytes(2 + kRandomBytes);  // the version says nothing: what is meant stands in an extension
    const auto session_id = reader.run(1);
    hello->has_session_id = !session_id.empty();
    hello->cipher_suites = reader.run(2);
    const auto compression = reader.run(1);
    if (!reader.ok() || session_id.size() > kSessionIdLimitBytes || hello->cipher_suites.empty() ||
        hello->cipher_suites.size() % 2 != 0 || compression.empty()) {
        return false;
    }
    if (reader.at_end()) {
        return true;  // RFC 5246 §7.4.1.2: there may be no extensions
    }
    Reader extensions(reader.run(2));
    while (!extensions.at_end()) {
        const std::size_t type = extensions.number(2);
        const auto content = extensions.run(2);
        if (!extensions.ok() || !read_extension(type, content, hello)) {
            return false;
        }
    }
    return reader.ok() && reader.at_end();
}

// Of two of a kind the library in front of which this reads refuses the message.
bool read_extension(std::size_t type, std::span<const std::uint8_t> content, ClientHello* hello) {
    switch (type) {
        case kServerName: return read_server_name(content, hello);
        case kGroups: return read_numbers(content, 2, &hello->groups);
        case kSignatureAlgorithms: return read_numbers(content, 2, &hello->signature_schemes);
        case kProtocols: return read_protocols(content, hello);
        case kPreSharedKeys: return read_pre_shared_keys(content, hello);
        case kEarlyData: hello->sends_early_data = true; return content.empty();
        case kKeyShares: return read_key_shares(content, hello);
        case kSupportedVersions: {
            std::span<const std::uint8_t> versions;
            const bool well = read_numbers(content, 1, &versions);
            for (std::size_t i = 0; i + 1 < versions.size(); i += 2) {
                hello->offers_tls13 |= (versions[i] << 8 | versions[i + 1]) == kTls13;
            }
            return well;
        }
        default: return true;
    }
}

bool read_server_name(std::span<const std::uint8_t> content, ClientHello* hello) {
    Reader reader(content);
    Reader list(reader.run(2));
    while (!list.at_end()) {
        const std::size_t kind = list.number(1);
        const auto name = list.run(2);
        if (!list.ok() || name.empty()) {
            return false;
        }
        if (kind == 0) {
            hello->server_name = {reinterpret_cast<const char*>(name.data()), name.size()};
        }
    }
    return reader.ok() && reader.at_end();
}

bool read_numbers(std::span<const std::uint8_t> content, std::size_t length_size, std::span<const std::uint8_t>* numbers) {
    Reader reader(content);
    *numbers = reader.run(length_size);
    return reader.ok() && reader.at_end() && !numbers->empty() && numbers->size() % 2 == 0;
}

bool read_protocols(std::span<const std::uint8_t> content, ClientHello* hello) {
    Reader reader(content);
    hello->protocols = reader.run(2);
    Reader names(hello->protocols);
    while (!names.at_end()) {
        if (names.run(1).empty()) {
            return false;
        }
    }
    return reader.ok() && reader.at_end() && !hello->protocols.empty();
}

// None at all asks to be told a group (RFC 8446 §4.2.8).
bool read_key_shares(std::span<const std::uint8_t> content, ClientHello* hello) {
    Reader reader(content);
    hello->key_shares = reader.run(2);
    Reader shares(hello->key_shares);
    while (!shares.at_end()) {
        shares.number(2);
        if (shares.run(2).empty()) {
            return false;
        }
    }
    return reader.ok() && reader.at_end();
}

bool read_pre_shared_keys(std::span<const std::uint8_t> content, ClientHello* hello) {
    Reader reader(content);
    const auto identities = reader.run(2);
    Reader binders(reader.run(2));
    hello->binder_bytes = binders.run(1).size();
    return reader.ok() && reader.at_end() && !identities.empty() && hello->binder_bytes > 0;
}

}  // namespace

}  // namespace penstock
