#include "penstock/protocols/http/https.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/protocols/http/prepared_field.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

namespace {

constexpr std::uint64_t kYear_s = 31'536'000;
constexpr std::uint16_t kHttpsPort = 443;
// Of a name (RFC 1035 §2.3.4).
constexpr std::size_t kLongestHostBytes = 253;

bool is_redirect(unsigned status);
std::string_view host_to_name(std::string_view host);
std::string_view target_behind_host(std::string_view target);

}  // namespace

Result<Middleware> hsts(HstsOptions options) {
    if (options.preload && !options.include_subdomains) {
        return Error{"hsts: HstsOptions::preload is set, and the lists take no host without those below it; set "
                     "include_subdomains too"};
    }
    if (options.preload && options.max_age_s < kYear_s) {
        return Error{"hsts: HstsOptions::preload is set with a max_age_s of " + std::to_string(options.max_age_s) +
                     ", and the lists take no less than a year; set it to " + std::to_string(kYear_s) + " or more"};
    }
    std::string value = "max-age=" + std::to_string(options.max_age_s);
    value.append(options.include_subdomains ? "; includeSubDomains" : "").append(options.preload ? "; preload" : "");
    Middleware middleware;
    // In `head`, so that the server's own 500 in place of a handler's answer has it too. The route table keeps the field for as long
    // as responses may point to it.
    middleware.head = [field = std::make_shared<const PreparedField>("Strict-Transport-Security", value)](
                          const Request& request, Response& response) {
        if (request.tls() != nullptr) {
            response.header_static(*field);
        }
    };
    return middleware;
}

Result<PlainHandler> redirect_to_https(HttpsRedirectOptions options) {
    if (options.port == 0) {
        return Error{"redirect_to_https: HttpsRedirectOptions::port is 0, where nobody can be sent; give the port of the "
                     "listener with TLS, or use send_https_redirect when it is known"};
    }
    if (!is_redirect(options.status)) {
        return Error{"redirect_to_https: HttpsRedirectOptions::status is " + std::to_string(options.status) +
                     ", which sends nobody elsewhere; write 308, 301, 307 or 302"};
    }
    return PlainHandler([options](Request& request, Response& response) { send_https_redirect(request, response, options); });
}

void send_https_redirect(const Request& request, Response& response, const HttpsRedirectOptions& options) {
    if (options.port == 0 || !is_redirect(options.status)) {
        response.status(500).send_static("Internal Server Error");
        return;
    }
    const std::string_view host = host_to_name(request.host());
    if (host.empty()) {
        response.status(400).send_static("This is served at https only, and the request names no host to be sent to.\n");
        return;
    }
    const std::string_view target = target_behind_host(request.target());
    std::string location;
    location.reserve(host.size() + target.size() + sizeof "https://:65535/");
    location.append("https://").append(host);
    if (options.port != kHttpsPort) {
        location.append(":").append(std::to_string(options.port));
    }
    // A query may follow the host at once (RFC 3986 §3.3), but in what a client sends as a path there is a slash.
    location.append(target.starts_with('/') ? "" : "/").append(target);
    response.status(options.status).header("Location", location).send_empty();
}

namespace {

bool is_redirect(unsigned status) { return status == 301 || status == 302 || status == 307 || status == 308; }

// Without its port; empty when there is none to send anybody to. The server has found the host valid by RFC 3986, which takes
// more than any name has: escapes, of which "%2F" or "%40" would become what they stand for in some client, and "&", ";", "'" and
// the like, which are dangerous where a URL is shown.
std::string_view host_to_name(std::string_view host) {
    if (!is_valid_host(host)) {
        return {};
    }
    if (host.starts_with('[')) {
        const bool is_future = host[1] == 'v' || host[1] == 'V';  // an address of a version that there is not (RFC 3986 §3.2.2)
        return is_future ? std::string_view{} : host.substr(0, host.find(']') + 1);
    }
    const std::string_view name = host.substr(0, host.find(':'));
    const bool is_plain = std::all_of(name.begin(), name.end(), [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
               letter == '-' || letter == '.' || letter == '_';
    });
    return is_plain && name.size() <= kLongestHostBytes && !name.starts_with('.') ? name : std::string_view{};
}

// Path and query as they were sent: a target in absolute form (RFC 9112 §3.2.2) begins with scheme and host. "*" is none.
std::string_view target_behind_host(std::string_view target) {
    if (target.starts_with('/')) {
        return target;
    }
    const std::size_t scheme = target.find("://");
    if (scheme == std::string_view::npos) {
        return {};
    }
    const std::size_t end = target.find_first_of("/?", scheme + 3);
    return end == std::string_view::npos ? std::string_view{} : target.substr(end);
}

}  // namespace

}  // namespace penstock
