// Public.
// HTTP on a listener: what `Server::listen(options, router)` makes of a Router.
#pragma once

#include <memory>

#include "penstock/protocols/http/router.h"

namespace penstock {

class ProtocolFactory;

// Builds the router's table now; what is wrong with it is told when the server starts.
[[nodiscard]] std::shared_ptr<ProtocolFactory> make_protocol_factory(const Router& router);

}  // namespace penstock
