// The snippets of docs/GUIDE.md about TLS, as one program: guide_tls, in a directory with example.org.pem, example.org.key,
// shop.example.pem, shop.example.key and customers.pem. It prints its two ports, and serves until SIGTERM.
#include <penstock/penstock.h>

#include <cstdio>
#include <string>
#include <utility>

using namespace penstock;

namespace {

[[nodiscard]] Result<void> add_routes(Router& router) {
    // [tls_hsts]
    const auto field = hsts({.max_age_s = 31'536'000, .include_subdomains = true});
    if (!field) {
        return field.error();  // preload without what the lists want
    }
    router.use(field.value());
    // [/tls_hsts]
    // [tls_request]
    router.get("/who", [](Request& request, Response& response) {
        const TlsInfo* const tls = request.tls();  // nullptr: the connection has none
        if (tls == nullptr || tls->client_subject.empty()) {
            response.status(403).send("show a certificate\n");
            return;
        }
        response.send(std::string(tls->client_subject).append(" by ").append(tls->version).append("\n"));
    });
    // [/tls_request]
    return {};
}

[[nodiscard]] Result<void> add_plain_routes(Router& plain) {
    // [tls_redirect]
    const auto redirect = redirect_to_https({.port = 443});
    if (!redirect) {
        return redirect.error();
    }
    plain.get("/.well-known/acme-challenge/:token", [](Request& request, Response& response) {
        response.send(std::string(request.parameter("token")) + ".and-the-account's-thumbprint");
    });
    plain.any("/*path", redirect.value(), {.stream_body = true});
    // [/tls_redirect]
    return {};
}

int serve() {
    Router router;
    Router plain;
    for (const Result<void>& added : {add_routes(router), add_plain_routes(plain)}) {
        if (!added) {
            std::fprintf(stderr, "%s\n", added.error().message.c_str());
            return 1;
        }
    }
    Server server;
    // [tls_listen]
    TlsOptions tls;
    tls.certificates = {{.chain_file = "example.org.pem", .key_file = "example.org.key"},
                        {.chain_file = "shop.example.pem", .key_file = "shop.example.key"}};
    tls.client_certificate = ClientCertificate::optional;
    tls.client_ca_file = "customers.pem";
    server.listen({.address = "127.0.0.1", .port = 0, .tls = std::move(tls)}, router);
    server.listen({.address = "127.0.0.1", .port = 0}, plain);  // in earnest 443 and 80
    // [/tls_listen]
    return server.run([&server] {
        std::printf("%u %u\n", unsigned{server.port(0)}, unsigned{server.port(1)});
        std::fflush(stdout);
    });
}

}  // namespace

int main() { return serve(); }
