// Internal.
// What CompressOptions ask for, checked and in the form that responses use. Made once, then constant; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/content_coding.h"

namespace penstock {

struct CompressOptions;

class CompressPolicy : public std::enable_shared_from_this<CompressPolicy> {
public:
    [[nodiscard]] static Result<CompressPolicy> make(const CompressOptions& options);

    // Of a Content-Type; an empty one is text/plain.
    [[nodiscard]] bool fits(std::string_view content_type) const;
    [[nodiscard]] std::uint64_t min_size_bytes() const { return min_size_bytes_; }
    [[nodiscard]] const std::vector<ContentCoding>& codings() const { return codings_; }
    [[nodiscard]] int level_of(ContentCoding coding) const { return levels_[static_cast<std::size_t>(coding)]; }
    [[nodiscard]] std::size_t cache_bytes() const { return cache_bytes_; }

private:
    [[nodiscard]] Result<void> set_types(const std::vector<std::string>& types);
    [[nodiscard]] Result<void> set_codings(const std::vector<std::string>& names);
    [[nodiscard]] Result<void> set_level(ContentCoding coding, const char* option, int level);

    std::vector<std::string> types_;  // in small letters
    std::vector<ContentCoding> codings_;
    std::array<int, kContentCodings> levels_{};
    std::uint64_t min_size_bytes_ = 0;
    std::size_t cache_bytes_ = 0;
};

}  // namespace penstock
