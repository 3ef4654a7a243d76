#include "penstock/protocols/http/service.h"

#include <string_view>

#include "penstock/engine/protocol.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/response_head.h"
#include "penstock/protocols/http/route_table.h"

namespace penstock {

namespace {

class HttpFactory final : public ProtocolFactory {
public:
    explicit HttpFactory(const Router& router) : routes_(router.build()) {}

    Result<void> prepare(const Config&) override { return routes_.ok() ? Result<void>() : routes_.error(); }
    std::unique_ptr<Protocol> create(Reactor& reactor) const override {
        return std::make_unique<Http1>(reactor, routes_.value());
    }
    std::string_view refusal() const override { return refusal_text(); }
    std::string_view plain_text_answer() const override { return plain_text_refusal(); }
    std::string_view application_protocols() const override { return "http/1.1,http/1.0"; }

private:
    Result<std::shared_ptr<const RouteTable>> routes_;
};

}  // namespace

std::shared_ptr<ProtocolFactory> make_protocol_factory(const Router& router) {
    return std::make_shared<HttpFactory>(router);
}

}  // namespace penstock
