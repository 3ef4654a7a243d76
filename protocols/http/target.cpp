#include "penstock/protocols/http/target.h"

#include <algorithm>
#include <array>

#include "penstock/protocols/http/tables.h"
#include "penstock/protocols/http/target_scan.h"

namespace penstock {

namespace {

// 16: no hexadecimal digit.
constexpr std::array<std::uint8_t, 256> kHexValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(16);
    for (std::uint8_t digit = 0; digit < 10; ++digit) {
        values[static_cast<std::size_t>('0' + digit)] = digit;
    }
    for (std::uint8_t digit = 10; digit < 16; ++digit) {
        values[static_cast<std::size_t>('A' + digit - 10)] = digit;
        values[static_cast<std::size_t>('a' + digit - 10)] = digit;
    }
    return values;
}();

// Unreserved and sub-delims of RFC 3986 §2.2 and §2.3.
constexpr std::array<bool, 256> kNameCharacters = [] {
    std::array<bool, 256> table{};
    for (const char letter : std::string_view("-._~!$&'()*+,;=0123456789abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
        table[static_cast<unsigned char>(letter)] = true;
    }
    return table;
}();

constexpr unsigned kLargestPort = 65'535;

constexpr std::size_t index_of(char byte) {
    return static_cast<unsigned char>(byte);
}

struct HostAndPort {
    std::string_view host;
    std::string_view port;  // the digits; empty also without a colon
    unsigned port_number = 0;
};

TargetError parse_authority_form(std::string_view target, Target* result);
TargetError parse_path_and_query(std::string_view text, Arena& arena, Target* result);
bool needs_work(std::string_view path);
std::size_t scheme_length(std::string_view target);
bool split_host(std::string_view value, HostAndPort* result);

int decode_escape(std::string_view text, std::size_t position);

}  // namespace

TargetError parse_target(std::string_view target, bool is_connect, bool is_options, Arena& arena,
                         Target* result) {
    *result = {};
    if (is_connect) {
        return parse_authority_form(target, result);
    }
    if (target.starts_with('/')) {
        return parse_path_and_query(target, arena, result);
    }
    if (target == "*" && is_options) {
        result->form = TargetForm::asterisk;
        result->raw_path = target;
        return TargetError::none;
    }
    const std::size_t authority_begin = scheme_length(target);
    if (authority_begin == 0) {
        return TargetError::malformed;
    }
    const std::size_t authority_end = std::min(target.find_first_of("/?", authority_begin), target.size());
    result->form = TargetForm::absolute;
    result->authority = target.substr(authority_begin, authority_end - authority_begin);
    HostAndPort parts;
    // RFC 9110 §4.2.1: an http URI with an empty host is invalid. A Host field may be empty.
    if (!split_host(result->authority, &parts) || parts.host.empty()) {
        return TargetError::malformed;
    }
    return parse_path_and_query(target.substr(authority_end), arena, result);
}

bool is_plain_path(std::string_view target) {
    if (!target.starts_with('/')) {
        return false;
    }
    const unsigned kinds = target_bytes(target);
    return kinds == TargetBytes::kPlain || (kinds == TargetBytes::kDot && !needs_work(target));
}

std::string_view percent_decode(std::string_view text, bool plus_is_space, Arena& arena) {
    const std::size_t first = text.find_first_of(plus_is_space ? "%+" : "%");
    if (first == std::string_view::npos) {
        // A null view would say that decoding failed.
        return text.data() == nullptr ? std::string_view("") : text;
    }
    char* const decoded = static_cast<char*>(arena.try_allocate(text.size(), 1));
    if (decoded == nullptr) {
        return {};
    }
    std::size_t length = text.copy(decoded, first);
    for (std::size_t i = first; i < text.size(); ++i) {
        char byte = text[i];
        if (byte == '%') {
            const int value = decode_escape(text, i);
            if (value < 0) {
                return {};
            }
            byte = static_cast<char>(value);
            i += 2;
        } else if (byte == '+' && plus_is_space) {
            byte = ' ';
        }
        decoded[length++] = byte;
    }
    return {decoded, length};
}

bool is_valid_host(std::string_view value) {
    HostAndPort parts;
    return split_host(value, &parts);
}

bool HostMemo::check(std::string_view value) {
    if (!is_valid_host(value)) {
        return false;
    }
    if (value.size() <= kLongestBytes) {
        size_ = static_cast<std::uint8_t>(value.copy(bytes_.data(), kLongestBytes));
    }
    return true;
}

namespace {

TargetError resolve_path(std::string_view raw, Arena& arena, Target* result);
bool append_decoded(std::string_view segment, char* output, std::size_t* length);

std::size_t literal_length(std::string_view value);
std::size_t name_length(std::string_view value);
bool is_ip_literal(std::string_view text);
bool is_ipv6_address(std::string_view text);
bool is_ipv4_address(std::string_view text);
bool is_future_address(std::string_view text);
bool parse_port(std::string_view digits, unsigned* number);
bool is_hex(char letter);

// RFC 9110 §9.3.6: a server must reject a CONNECT to an empty or invalid port.
TargetError parse_authority_form(std::string_view target, Target* result) {
    HostAndPort parts;
    if (!split_host(target, &parts) || parts.host.empty() || parts.port_number == 0) {
        return TargetError::malformed;
    }
    result->form = TargetForm::authority;
    result->authority = target;
    return TargetError::none;
}

// `text` is empty or begins with '/' or '?'.
TargetError parse_path_and_query(std::string_view text, Arena& arena, Target* result) {
    const unsigned kinds = target_bytes(text);
    if ((kinds & TargetBytes::kForbidden) != 0) {
        return TargetError::malformed;
    }
    std::string_view path = text;
    if ((kinds & TargetBytes::kQuestionMark) != 0) {
        const std::size_t end = text.find('?');
        path = text.substr(0, end);
        // Escapes in the query are left to whoever decodes it: browsers send "?q=100%" as it stands.
        result->query = text.substr(end + 1);
    }
    if (path.empty()) {
        path = "/";
    }
    result->raw_path = path;
    result->path = path;
    // What the query holds brings some paths there that need no work; they come out as they are.
    const bool may_need_work = (kinds & (TargetBytes::kDot | TargetBytes::kPercent)) != 0;
    return may_need_work && needs_work(path) ? resolve_path(path, arena, result) : TargetError::none;
}

// A dot matters where a segment begins with it.
bool needs_work(std::string_view path) {
    return path.find('%') != std::string_view::npos || path.find("/.") != std::string_view::npos;
}

// Segment by segment, each decoded before it is looked at, so that "%2e%2e" climbs as ".." does (RFC 3986
// §5.2.4, §6.2.2). What is written never outgrows what was read, so `raw.size()` bytes are enough.
TargetError resolve_path(std::string_view raw, Arena& arena, Target* result) {
    char* const output = static_cast<char*>(arena.try_allocate(raw.size(), 1));
    if (output == nullptr) {
        return TargetError::no_memory;
    }
    std::size_t length = 0;
    std::size_t position = 0;
    while (position < raw.size()) {
        const std::size_t end = std::min(raw.find('/', position + 1), raw.size());
        const std::size_t slash = length;
        output[length++] = '/';
        if (!append_decoded(raw.substr(position + 1, end - position - 1), output, &length)) {
            return TargetError::malformed;
        }
        position = end;
        const std::string_view segment(output + slash + 1, length - slash - 1);
        if (segment != "." && segment != "..") {
            continue;
        }
        length = slash;
        if (segment == "..") {
            if (slash == 0) {
                return TargetError::malformed;
            }
            length = std::string_view(output, slash).rfind('/');
        }
        if (end == raw.size()) {
            output[length++] = '/';
        }
    }
    result->path = {output, length};
    result->has_encoded_slash = result->path.find('\0') != std::string_view::npos;
    return TargetError::none;
}

// Appends to `output`, an encoded slash as NUL. False on a bad escape and on %00.
bool append_decoded(std::string_view segment, char* output, std::size_t* length) {
    for (std::size_t i = 0; i < segment.size(); ++i) {
        char byte = segment[i];
        if (byte == '%') {
            const int value = decode_escape(segment, i);
            if (value <= 0) {
                return false;
            }
            byte = value == '/' ? '\0' : static_cast<char>(value);
            i += 2;
        }
        output[(*length)++] = byte;
    }
    return true;
}

// Of "%XX" at `position`; negative when it is none.
int decode_escape(std::string_view text, std::size_t position) {
    if (text.size() - position < 3) {
        return -1;
    }
    const unsigned high = kHexValues[index_of(text[position + 1])];
    const unsigned low = kHexValues[index_of(text[position + 2])];
    return high > 15 || low > 15 ? -1 : static_cast<int>(high << 4 | low);
}

// Of "http://" or "https://" in front; 0 when there is neither.
std::size_t scheme_length(std::string_view target) {
    for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
        if (equal_ignoring_case(target.substr(0, scheme.size()), scheme)) {
            return scheme.size();
        }
    }
    return 0;
}

bool split_host(std::string_view value, HostAndPort* result) {
    const std::size_t host_end = value.starts_with('[') ? literal_length(value) : name_length(value);
    if (host_end == std::string_view::npos) {
        return false;
    }
    result->host = value.substr(0, host_end);
    const std::string_view rest = value.substr(host_end);
    if (rest.empty()) {
        return true;
    }
    result->port = rest.substr(1);
    return rest.front() == ':' && parse_port(result->port, &result->port_number);
}

// With its brackets; npos when there is no valid one in front.
std::size_t literal_length(std::string_view value) {
    const std::size_t bracket = value.find(']');
    if (bracket == std::string_view::npos || !is_ip_literal(value.substr(1, bracket - 1))) {
        return std::string_view::npos;
    }
    return bracket + 1;
}

// Up to the first byte that no name holds: *( unreserved / pct-encoded / sub-delims ), which takes IPv4 addresses too. npos on
// a bad escape.
std::size_t name_length(std::string_view value) {
    std::size_t i = 0;
    for (; i < value.size(); ++i) {
        if (kNameCharacters[index_of(value[i])]) {
            continue;
        }
        if (value[i] != '%') {
            break;
        }
        if (decode_escape(value, i) < 0) {
            return std::string_view::npos;
        }
        i += 2;
    }
    return i;
}

bool is_ip_literal(std::string_view text) {
    return is_ipv6_address(text) || is_future_address(text);
}

// RFC 3986 §3.2.2: eight groups, or fewer around one "::" that stands for at least one; the last two may be
// written as an IPv4 address. A zone ("%25eth0") has a meaning on the sender's machine alone and is refused.
bool is_ipv6_address(std::string_view text) {
    std::size_t groups = 0;
    bool is_compressed = text.starts_with("::");
    text.remove_prefix(is_compressed ? 2 : 0);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(':'), text.size());
        const std::string_view group = text.substr(0, end);
        if (end == text.size() && is_ipv4_address(group)) {
            groups += 2;
            break;
        }
        if (group.empty() || group.size() > 4 || !std::all_of(group.begin(), group.end(), is_hex)) {
            return false;
        }
        ++groups;
        text.remove_prefix(end);
        if (text.starts_with("::")) {
            if (is_compressed) {
                return false;
            }
            is_compressed = true;
            text.remove_prefix(2);
        } else if (text.size() == 1) {
            return false;
        } else if (!text.empty()) {
            text.remove_prefix(1);
        }
    }
    return is_compressed ? groups <= 7 : groups == 8;
}

// Four numbers up to 255 without leading zeros.
bool is_ipv4_address(std::string_view text) {
    for (int octets = 1;; ++octets) {
        const std::size_t end = std::min(text.find('.'), text.size());
        const std::string_view octet = text.substr(0, end);
        unsigned value = 0;
        if (octet.empty() || octet.size() > 3 || (octet.front() == '0' && octet.size() > 1) ||
            !parse_port(octet, &value) || value > 255) {
            return false;
        }
        if (end == text.size()) {
            return octets == 4;
        }
        text.remove_prefix(end + 1);
    }
}

// "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
bool is_future_address(std::string_view text) {
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos || dot < 2 || dot + 1 == text.size() ||
        (text[0] != 'v' && text[0] != 'V')) {
        return false;
    }
    const std::string_view version = text.substr(1, dot - 1);
    const std::string_view address = text.substr(dot + 1);
    return std::all_of(version.begin(), version.end(), is_hex) &&
           std::all_of(address.begin(), address.end(),
                       [](char letter) { return letter == ':' || kNameCharacters[index_of(letter)]; });
}

// Digits only, none is 0. False above the largest port.
bool parse_port(std::string_view digits, unsigned* number) {
    *number = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') {
            return false;
        }
        *number = *number * 10 + static_cast<unsigned>(digit - '0');
        if (*number > kLargestPort) {
            return false;
        }
    }
    return true;
}

bool is_hex(char letter) {
    return kHexValues[index_of(letter)] < 16;
}

}  // namespace

std::string encode_path(std::string_view path) {
    static constexpr std::string_view kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        "-._~!$&'()*+,;=:@/";
    static constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string encoded;
    encoded.reserve(path.size());
    for (const char letter : path) {
        if (kPlain.find(letter) != std::string_view::npos) {
            encoded.push_back(letter);
        } else {
            const auto byte = static_cast<unsigned char>(letter);
            encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
        }
    }
    return encoded;
}

}  // namespace penstock
