// Internal.
// What an exchange needs to decode its request's body (RouteOptions::decode_body). In the exchange's arena, which destroys it.
// Its memory counts as body memory: what the client's window takes is only known as the body comes, so it is charged then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "penstock/protocols/http/content_coding.h"
#include "penstock/protocols/http/content_decoder.h"

namespace penstock {

struct BodyDecoding {
    ContentCoding coding;
    std::unique_ptr<ContentDecoder> decoder{};  // made with the first bytes
    std::uint64_t charged_bytes = 0;            // of body memory

    // For handlers that take it piece by piece.
    static constexpr std::size_t kPieceBytes = 16 << 10;
    std::unique_ptr<char[]> piece{};
    std::string_view sent{};       // of what has arrived, in the input: still to be decoded
    bool has_more = false;         // the decoder may give more without further bytes
    bool waits_for_turn = false;   // enough has been decoded in this one
    bool over = false;             // nothing more is decoded
    std::uint64_t turn = 0;        // of the reactor's
    std::size_t turn_bytes = 0;    // decoded in it
};

}  // namespace penstock
