#include "penstock/protocols/http/chunk_framing.h"

#include "penstock/engine/config.h"
#include "penstock/protocols/http/characters.h"

namespace penstock {

namespace {

using characters::is_text_character;
using characters::is_token_character;
using characters::is_white;

// Digits of a chunk's size that 64 bits hold, leading zeros included.
constexpr std::uint8_t kSizeDigitLimit = 16;

// 16: no digit.
[[nodiscard]] unsigned hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return static_cast<unsigned>(c - '0');
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? static_cast<unsigned>(lower - 'a' + 10) : 16;
}

}  // namespace

unsigned ChunkFraming::read(std::string_view bytes, const BodyLimits& limits, std::size_t* used) {
    unsigned status = 0;
    std::size_t at = 0;
    while (status == 0 && at < bytes.size() && place_ != Place::data && place_ != Place::end) {
        status = step(bytes[at++], limits);
    }
    *used = at;
    return status;
}

void ChunkFraming::take_data(std::size_t bytes) {
    size_ -= bytes;
    if (size_ == 0) {
        place_ = Place::data_cr;
    }
}

unsigned ChunkFraming::step(char c, const BodyLimits& limits) {
    if (place_ < Place::extension_start) {
        return step_size(c, limits.body_bytes);
    }
    if (place_ >= Place::trailer_start) {
        return step_trailer(c, limits.trailer_count);
    }
    // Nobody reads extensions, so they may not cost more than the body does.
    return step_extension(c) && ++extension_bytes_ <= kIoBlockBytes + body_bytes_ ? 0 : 400;
}

unsigned ChunkFraming::step_size(char c, std::uint64_t body_limit) {
    switch (place_) {
        case Place::size_start:
        case Place::size:
            if (const unsigned digit = hex_digit(c); digit < 16) {
                place_ = Place::size;
                size_ = size_ << 4 | digit;
                return ++digits_ <= kSizeDigitLimit ? 0 : 400;
            }
            return place_ == Place::size && leave_element(c, Place::gap) ? 0 : 400;
        case Place::size_lf:
            if (c != '\n') {
                return 400;
            }
            if (size_ > body_limit - body_bytes_) {
                return 413;
            }
            body_bytes_ += size_;
            digits_ = 0;
            place_ = size_ != 0 ? Place::data : Place::trailer_start;
            return 0;
        case Place::data_cr: return expect(c, '\r', Place::data_lf) ? 0 : 400;
        default: return expect(c, '\n', Place::size_start) ? 0 : 400;
    }
}

// chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )
bool ChunkFraming::step_extension(char c) {
    switch (place_) {
        case Place::quoted:
            place_ = c == '"' ? Place::quoted_end : c == '\\' ? Place::escaped : Place::quoted;
            return is_text_character(c);
        case Place::escaped: place_ = Place::quoted; return is_text_character(c);
        case Place::quoted_end: return leave_element(c, Place::gap);
        case Place::gap: return is_white(c) || expect(c, ';', Place::extension_start);
        case Place::name_gap:
            return is_white(c) || expect(c, ';', Place::extension_start) ||
                   expect(c, '=', Place::value_start);
        case Place::extension_start:
        case Place::value_start:
            if (is_token_character(c)) {
                place_ = place_ == Place::value_start ? Place::value : Place::extension_name;
                return true;
            }
            return is_white(c) || (place_ == Place::value_start && expect(c, '"', Place::quoted));
        case Place::extension_name:
            return is_token_character(c) || expect(c, '=', Place::value_start) ||
                   leave_element(c, Place::name_gap);
        default: return is_token_character(c) || leave_element(c, Place::gap);
    }
}

// Behind a size, a name or a value: the line ends or another extension follows, perhaps behind white space.
bool ChunkFraming::leave_element(char c, Place gap) {
    return expect(c, '\r', Place::size_lf) || expect(c, ';', Place::extension_start) || expect(c, ' ', gap) ||
           expect(c, '\t', gap);
}

// Like the head they must fit a block, and may be as many as its fields.
unsigned ChunkFraming::step_trailer(char c, std::uint32_t count_limit) {
    if (++trailer_bytes_ > kIoBlockBytes) {
        return 431;
    }
    switch (place_) {
        case Place::trailer_start:
            if (is_token_character(c)) {
                place_ = Place::trailer_name;
                return ++trailer_count_ <= count_limit ? 0 : 431;
            }
            return expect(c, '\r', Place::last_lf) ? 0 : 400;
        case Place::trailer_name: return is_token_character(c) || expect(c, ':', Place::trailer_value) ? 0 : 400;
        case Place::trailer_value: return is_text_character(c) || expect(c, '\r', Place::trailer_lf) ? 0 : 400;
        case Place::trailer_lf: return expect(c, '\n', Place::trailer_start) ? 0 : 400;
        default: return expect(c, '\n', Place::end) ? 0 : 400;
    }
}

bool ChunkFraming::expect(char c, char wanted, Place next) {
    if (c == wanted) {
        place_ = next;
    }
    return c == wanted;
}

}  // namespace penstock
