// Internal.
// What stands between the bytes of a chunked body (RFC 9112 §7.1): sizes, extensions, trailers. All of it is checked;
// extensions are then dropped. Byte by byte, so the outcome does not depend on how they were cut. Sees no data and keeps
// no bytes.
//
// Part of an Http1Parser. Its reactor's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock {

struct BodyLimits {
    std::uint64_t body_bytes;
    std::uint32_t trailer_count;
};

class ChunkFraming {
public:
    // Reads until data or the end of the body comes, or `bytes` end; `*used` tells how far. 0, or the status
    // to refuse with.
    [[nodiscard]] unsigned read(std::string_view bytes, const BodyLimits& limits, std::size_t* used);
    // So many bytes of the body come next, before any more framing.
    [[nodiscard]] std::uint64_t data_left() const { return place_ == Place::data ? size_ : 0; }
    void take_data(std::size_t bytes);
    [[nodiscard]] bool ended() const { return place_ == Place::end; }
    // Of the trailers so far. Their bytes are the last that were read, line ends and the empty line included.
    [[nodiscard]] std::uint16_t trailer_count() const { return trailer_count_; }
    [[nodiscard]] std::uint16_t trailer_bytes() const { return trailer_bytes_; }

private:
    enum class Place : std::uint8_t {
        size_start,
        size,
        size_lf,
        data,
        data_cr,
        data_lf,
        extension_start,
        extension_name,
        name_gap,
        value_start,
        value,
        quoted,
        escaped,
        quoted_end,
        gap,
        trailer_start,
        trailer_name,
        trailer_value,
        trailer_lf,
        last_lf,
        end,
    };

    [[nodiscard]] unsigned step(char c, const BodyLimits& limits);
    [[nodiscard]] unsigned step_size(char c, std::uint64_t body_limit);
    [[nodiscard]] bool step_extension(char c);
    [[nodiscard]] bool leave_element(char c, Place gap);
    [[nodiscard]] unsigned step_trailer(char c, std::uint32_t count_limit);
    [[nodiscard]] bool expect(char c, char wanted, Place next);

    std::uint64_t size_ = 0;        // of the chunk; of its data, what is left
    std::uint64_t body_bytes_ = 0;  // of all chunks so far
    std::uint64_t extension_bytes_ = 0;
    std::uint16_t trailer_bytes_ = 0;
    std::uint16_t trailer_count_ = 0;
    std::uint8_t digits_ = 0;
    Place place_ = Place::size_start;
};

}  // namespace penstock
