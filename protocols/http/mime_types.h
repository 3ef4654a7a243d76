// Public.
// Which Content-Type a file has by its name. Constant data; any thread.
#pragma once

#include <string_view>

namespace penstock {

// By what follows the last dot of the last name in `path`, any letter case; "application/octet-stream" when
// that is unknown or missing. Text comes with charset=utf-8. The view lives for ever.
[[nodiscard]] std::string_view mime_type(std::string_view path);

}  // namespace penstock
