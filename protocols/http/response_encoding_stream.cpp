// The part of a ResponseEncoding that works piece by piece.
#include <algorithm>
#include <new>
#include <utility>

#include "penstock/engine/reactor.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/response_encoding.h"

namespace penstock {

namespace {

// Stands for "the rest" of a body that is taken from here and not from the handler.
constexpr std::string_view kRest = "rest";

}  // namespace

// ---- A whole body --------------------------------------------------------------------------------------

// It waits for room as a write of a plain handler does, after whose last piece the body is ended.
bool ResponseEncoding::deliver(Response& response, ResponseBody* body) {
    const bool is_head = response.exchange_.request().method() == Method::head;
    const std::size_t copied = body->kind == ResponseBody::Kind::copied ? body->bytes.size() : 0;
    if (!start_encoder(response, copied) || response.failed_) {
        return false;
    }
    if (is_head) {
        body->drop();
    } else if (!keep_body(*body)) {
        response.remove("Content-Encoding");
        release();
        return false;
    }
    use_ = Use::whole;
    response.has_length_ = false;
    response.open_stream();
    if (response.body_dropped_) {
        response.finish_stream();
    } else {
        response.exchange_.call_when_written(kRest, [&response] { response.finish_stream(); });
    }
    return true;
}

// False, with the body as it was, when there is no memory to copy it.
bool ResponseEncoding::keep_body(const ResponseBody& body) {
    switch (body.kind) {
        case ResponseBody::Kind::owned: text_ = std::move(*body.owned); break;
        case ResponseBody::Kind::copied:
            try {
                text_ = body.bytes;
            } catch (const std::bad_alloc&) {
                return false;
            }
            break;
        default: left_ = body; return true;
    }
    left_ = {.kind = ResponseBody::Kind::fixed, .bytes = text_};
    return true;
}

// Of the whole body, or of what the handler writes.
ResponseEncoding::Outcome ResponseEncoding::next_slice(Response& response, std::string_view bytes) {
    if (left_.kind == ResponseBody::Kind::file) {
        return read_slice(response);
    }
    const std::string_view slice = (delivers() ? left_.bytes : bytes).substr(0, kEncodeStepBytes);
    if (delivers()) {
        left_.bytes.remove_prefix(slice.size());
        open_slice(slice, left_.bytes.empty() ? Flush::finish : Flush::none);
    } else {
        open_slice(slice, slice.size() == bytes.size() ? Flush::flush : Flush::none);
    }
    return Outcome::done;
}

// Failed when the file has shrunk or cannot be read: nothing is made up.
ResponseEncoding::Outcome ResponseEncoding::read_slice(Response& response) {
    Connection& connection = *response.exchange_.connection();
    if (connection.waits_for_disk()) {
        return Outcome::wait;
    }
    FileRange& file = left_.file;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(file.size, kEncodeStepBytes));
    const std::span<char> buffer(memory_.get() + kPieceBytes, size);
    const auto bytes = std::as_writable_bytes(buffer);
    IoResult read = platform::read_file(file.fd, file.offset, bytes, platform::DiskWait::never);
    if (!read.ok() && is_would_block(read.error)) {
        if (reactor_.warm_file(connection, file)) {
            return Outcome::wait;
        }
        read = platform::read_file(file.fd, file.offset, bytes);  // nobody else can
    }
    if (!read.ok() || read.count == 0) {
        return Outcome::failed;
    }
    const auto count = static_cast<std::size_t>(read.count);
    file.offset += count;
    file.size -= count;
    open_slice({buffer.data(), count}, file.size == 0 ? Flush::finish : Flush::none);
    return Outcome::done;
}

// ---- Writing -------------------------------------------------------------------------------------------

std::string_view ResponseEncoding::write_some(Response& response, std::string_view bytes) {
    if (encoder_ == nullptr) {
        return {};  // HEAD, or the client has gone
    }
    if (!delivers()) {
        if (!slice_.empty() && bytes.data() != slice_.data()) {
            return bytes;  // another write waits; whoever awaits this one is told
        }
        if (bytes.size() > announced_bytes_ - plain_bytes_) {
            cut(response, "more is written than content_length announced");
            return {};
        }
    }
    if (slice_.empty()) {
        if (delivers() ? is_drawn() : bytes.empty()) {
            return {};
        }
        switch (next_slice(response, bytes)) {
            case Outcome::done: break;
            case Outcome::wait: return bytes;
            case Outcome::failed: cut(response, "the file that is sent has shrunk or cannot be read"); return {};
        }
    }
    switch (run_slice(response)) {
        case Outcome::done: break;
        case Outcome::wait: return bytes;
        case Outcome::failed: cut(response, "there is no memory to encode it"); return {};
    }
    const std::size_t done = std::exchange(slice_, {}).size();
    if (delivers()) {
        return is_drawn() ? std::string_view() : kRest;
    }
    plain_bytes_ += done;
    return bytes.substr(done);
}

void ResponseEncoding::open_slice(std::string_view bytes, Flush flush) {
    slice_ = slice_left_ = bytes;
    slice_flush_ = flush;
    slice_open_ = true;
}

// Done when all of the slice is encoded and all that came of it has found room.
ResponseEncoding::Outcome ResponseEncoding::run_slice(Response& response) {
    for (;;) {
        const std::size_t written = response.exchange_.write_piece(piece_);
        response.body_bytes_ += written;
        piece_.remove_prefix(written);
        if (!piece_.empty()) {
            return Outcome::wait;
        }
        if (!slice_open_) {
            return Outcome::done;
        }
        const CodingStep step = encoder_->step(slice_left_, slice_flush_, memory_.get(), kPieceBytes);
        piece_ = {memory_.get(), step.produced};
        slice_open_ = step.state == CodingStep::State::more;
        if (!slice_open_ && step.state != CodingStep::State::done) {
            return Outcome::failed;
        }
    }
}

// Every write of the handler was flushed, so this is what ends a coding: a few bytes, for which no room is waited.
bool ResponseEncoding::finish(Response& response) {
    if (encoder_ == nullptr) {
        return true;  // HEAD, or the client has gone
    }
    if (delivers()) {
        if (!is_drawn()) {
            cut(response, "it is ended before all of it is encoded");
        }
        return is_drawn();
    }
    if (announced_bytes_ != Codec::kNoLength && plain_bytes_ != announced_bytes_) {
        cut(response, "less is written than content_length announced");
        return false;
    }
    std::string_view nothing;
    for (CodingStep step; step.state == CodingStep::State::more;) {
        step = encoder_->step(nothing, Flush::finish, memory_.get(), kPieceBytes);
        if (step.state != CodingStep::State::more && step.state != CodingStep::State::done) {
            cut(response, "there is no memory to encode it");
            return false;
        }
        response.exchange_.write_last_piece({memory_.get(), step.produced});
        response.body_bytes_ += step.produced;
    }
    return true;
}

void ResponseEncoding::cut(Response& response, const char* reason) {
    response.fail(reason, {});
    response.stream_ = Response::Stream::cut;
    response.exchange_.must_close = true;
}

}  // namespace penstock
