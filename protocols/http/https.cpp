#include "penstock/protocols/http/https.h"

#include <memory>
#include <string>
#include <string_view>

#include "penstock/protocols/http/prepared_field.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"

namespace penstock {

namespace {

// "[::1]:80" and "example.org:80" without the port.
std::string_view without_port(std::string_view host) {
    const std::size_t colon = host.rfind(':');
    const bool is_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
    return is_port ? host.substr(0, colon) : host;
}

// What stands behind the host, path and query: of "http://example.org/a?b" and of "/a?b" the same.
std::string_view origin_form(std::string_view target) {
    if (!target.starts_with('/')) {
        const std::size_t scheme = target.find("://");
        const std::size_t path = scheme != std::string_view::npos ? target.find_first_of("/?", scheme + 3) : std::string_view::npos;
        target = path != std::string_view::npos ? target.substr(path) : std::string_view("/");
    }
    return target;
}

}  // namespace

Middleware hsts(HstsOptions options) {
    std::string value = "max-age=" + std::to_string(options.max_age_s);
    value += options.include_subdomains ? "; includeSubDomains" : "";
    value += options.preload ? "; preload" : "";
    Middleware middleware;
    middleware.head = [field = std::make_shared<const PreparedField>("Strict-Transport-Security", value)](const Request& request,
                                                                                                         Response& response) {
        if (request.tls() != nullptr) {
            response.header_static(*field);
        }
    };
    return middleware;
}

PlainHandler redirect_to_https(std::uint16_t port) {
    const std::string suffix = port == 443 ? std::string() : ":" + std::to_string(port);
    return [suffix](Request& request, Response& response) {
        const std::string_view host = without_port(request.host());
        if (host.empty()) {
            response.status(400).send_static("The request names no host, so there is no telling where it should go by https.\n");
            return;
        }
        const std::string_view place = origin_form(request.target());
        std::string location = "https://";
        location.append(host).append(suffix).append(place.starts_with('?') ? "/" : "").append(place);
        response.status(308).header("Location", location).send_static("");
    };
}

}  // namespace penstock
