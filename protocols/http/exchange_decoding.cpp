// The part of an Exchange that decodes its request's body before the handler sees it.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "penstock/engine/arena.h"
#include "penstock/engine/connection.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/body_decoding.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"

namespace penstock {

// One coding; "identity" is none (RFC 9110 §8.4.1). 415 for several, and for what this build does not have.
unsigned Exchange::prepare_decoding() {
    if (request_.repeated(HeaderName::content_encoding)) {
        return 415;
    }
    const std::string_view name = request_.header(HeaderName::content_encoding);
    const std::optional<ContentCoding> coding = name.empty() ? ContentCoding::identity : find_content_coding(name);
    if (coding == ContentCoding::identity) {
        return 0;
    }
    if (!coding || !is_available(*coding)) {
        return 415;
    }
    void* const memory = arena_.try_allocate(sizeof(BodyDecoding), alignof(BodyDecoding));
    if (memory == nullptr) {
        return 503;
    }
    decoding_ = ::new (memory) BodyDecoding{.coding = *coding};
    return 0;
}

bool Exchange::make_decoder() {
    if (decoding_->decoder == nullptr) {
        decoding_->decoder = ContentDecoder::create(decoding_->coding, body_limit_bytes());
    }
    return decoding_->decoder != nullptr;
}

// What the decoder has come to take.
bool Exchange::charge_decoder(std::size_t more_bytes) {
    const std::uint64_t bytes = decoding_->decoder->peak_memory_bytes() + more_bytes;
    if (bytes <= decoding_->charged_bytes) {
        return true;
    }
    const std::uint64_t more = bytes - decoding_->charged_bytes;
    if (!http_.reactor().try_take_body_memory(more) && !http_.make_body_memory(*this, more)) {
        return false;
    }
    decoding_->charged_bytes = bytes;
    return true;
}

// A handler may take its time, and a client's window 16 MiB: nothing of it is kept beyond the body's end.
void Exchange::release_decoder() {
    decoding_->decoder.reset();
    decoding_->piece.reset();
    http_.reactor().return_body_memory(std::exchange(decoding_->charged_bytes, 0));
}

void Exchange::release_decoding() {
    if (decoding_ != nullptr) {
        http_.reactor().return_body_memory(decoding_->charged_bytes);
        if (!decoding_->sent.empty() || decoding_->piece != nullptr) {
            request_.body_ = {};
        }
        std::exchange(decoding_, nullptr)->~BodyDecoding();
    }
}

std::uint64_t Exchange::body_memory_bytes() const {
    return heap_capacity_ + (decoding_ != nullptr ? decoding_->charged_bytes : 0);
}

// ---- Whole bodies --------------------------------------------------------------------------------------

bool Exchange::decodes_as_it_comes() const { return decoding_ != nullptr && !decoding_->over && !streams_body(); }

// The route's limit ends it, however little was sent for how much.
unsigned Exchange::decode_arrived(std::string_view bytes) {
    if (!make_decoder()) {
        return 503;
    }
    unsigned status = 0;
    auto sink = [&](std::string_view piece) {
        const std::size_t before = request_.body_.size();
        http_.count_coding(piece.size());
        status = grow_body(before + piece.size());
        if (status != 0) {
            return false;
        }
        std::memcpy(heap_body_ + before, piece.data(), piece.size());
        request_.body_ = {heap_body_, before + piece.size()};
        return true;
    };
    if (!decoding_->decoder->decode(bytes, sink)) {
        return status != 0 ? status : decoding_->decoder->error_status();
    }
    return charge_decoder(0) ? 0 : 503;
}

// A body of no bytes at all is none, and nothing is wrong with it.
unsigned Exchange::finish_decoding() {
    if (!decodes_as_it_comes() || decoding_->decoder == nullptr) {
        return 0;
    }
    const unsigned status = decoding_->decoder->finish() ? 0 : decoding_->decoder->error_status();
    release_decoder();
    return status;
}

// ---- Piece by piece ------------------------------------------------------------------------------------

Exchange::BodyStep Exchange::next_decoded_piece() {
    BodyDecoding& decoding = *decoding_;
    request_.body_ = {};
    while (!decoding.over && connection_ != nullptr && body_error_ == 0) {
        if (decoding.has_more) {
            if (!may_decode_now()) {
                return BodyStep::wait;
            }
            body_error_ = static_cast<std::uint16_t>(decode_piece());
            if (!request_.body_.empty()) {
                return BodyStep::piece;
            }
            continue;
        }
        const BodyStep step = next_sent_piece();
        if (step == BodyStep::wait) {
            return step;
        }
        decoding.sent = std::exchange(request_.body_, {});
        decoding.has_more = step == BodyStep::piece;
        if (step == BodyStep::end) {
            const bool is_whole = decoding.decoder == nullptr || decoding.decoder->finish();
            body_error_ = static_cast<std::uint16_t>(is_whole ? 0 : decoding.decoder->error_status());
            decoding.over = is_whole;
            release_decoder();
        }
    }
    return body_error_ != 0 ? BodyStep::wait : BodyStep::end;
}

// A piece, perhaps of no bytes. 0, or the status to refuse with.
unsigned Exchange::decode_piece() {
    BodyDecoding& decoding = *decoding_;
    if (decoding.piece == nullptr) {
        decoding.piece.reset(new (std::nothrow) char[BodyDecoding::kPieceBytes]);
    }
    if (decoding.piece == nullptr || !make_decoder()) {
        return 503;
    }
    const CodingStep step = decoding.decoder->step(decoding.sent, decoding.piece.get(), BodyDecoding::kPieceBytes);
    decoding.has_more = step.state == CodingStep::State::more;
    if (decoding.decoder->error_status() != 0) {
        return decoding.decoder->error_status();
    }
    if (!charge_decoder(BodyDecoding::kPieceBytes)) {
        return 503;
    }
    decoding.turn_bytes += step.produced;
    http_.count_coding(step.produced);
    request_.body_ = {decoding.piece.get(), step.produced};
    return 0;
}

// A handler that reads on and on must not keep others from their turns, while its client has sent next to nothing.
bool Exchange::may_decode_now() {
    const std::uint64_t turn = http_.reactor().counters().turns.get();
    if (std::exchange(decoding_->turn, turn) != turn) {
        decoding_->turn_bytes = 0;
    }
    decoding_->waits_for_turn = decoding_->turn_bytes >= kDecodedBytesPerTurn;
    return !decoding_->waits_for_turn;
}

bool Exchange::waits_for_turn() const { return decoding_ != nullptr && decoding_->waits_for_turn; }

void Exchange::stop_decoding() {
    if (decoding_ != nullptr) {
        decoding_->over = true;
        decoding_->waits_for_turn = decoding_->has_more = false;
        decoding_->sent = {};
    }
}

}  // namespace penstock
