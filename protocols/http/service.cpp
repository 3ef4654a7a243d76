#include "penstock/protocols/http/service.h"

#include <string_view>

#include "penstock/engine/protocol.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/route_table.h"

namespace penstock {

namespace {

constexpr std::string_view kRefusal =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Connection: close\r\n"
    "Retry-After: 1\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 47\r\n"
    "\r\n"
    "The server is at its connection limit; retry.\r\n";
static_assert(kRefusal.size() - kRefusal.find("\r\n\r\n") - 4 == 47);

class HttpFactory final : public ProtocolFactory {
public:
    explicit HttpFactory(const Router& router) : routes_(router.build()) {}

    Result<void> prepare(const Config&) override { return routes_.ok() ? Result<void>() : routes_.error(); }
    std::unique_ptr<Protocol> create(Reactor& reactor) const override {
        return std::make_unique<Http1>(reactor, routes_.value());
    }
    std::string_view refusal() const override { return kRefusal; }

private:
    Result<std::shared_ptr<const RouteTable>> routes_;
};

}  // namespace

std::shared_ptr<ProtocolFactory> make_protocol_factory(const Router& router) {
    return std::make_shared<HttpFactory>(router);
}

}  // namespace penstock
