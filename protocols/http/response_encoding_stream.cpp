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
    } else if (!take_source(body)) {
        response.remove("Content-Encoding");
        release();
        return false;
    }
    active_ = true;
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
bool ResponseEncoding::take_source(ResponseBody* body) {
    source_ = Source::memory;
    switch (body->kind) {
        case ResponseBody::Kind::file:
            source_ = Source::file;
            file_ = body->file;
            return true;
        case ResponseBody::Kind::kept:
            owner_ = body->owner;
            release_owner_ = body->release;
            left_ = body->bytes;
            return true;
        case ResponseBody::Kind::fixed: left_ = body->bytes; return true;
        case ResponseBody::Kind::owned:
            text_ = std::move(*body->owned);
            left_ = text_;
            return true;
        default: break;
    }
    try {
        text_ = body->bytes;
    } catch (const std::bad_alloc&) {
        source_ = Source::handler;
        return false;
    }
    left_ = text_;
    return true;
}

ResponseEncoding::Read ResponseEncoding::next_slice(Response& response) {
    if (source_ == Source::file) {
        return read_slice(response);
    }
    const std::string_view slice = left_.substr(0, kEncodeStepBytes);
    left_.remove_prefix(slice.size());
    open_slice(slice, left_.empty() ? Flush::finish : Flush::none);
    return Read::slice;
}

// Failed when the file has shrunk or cannot be read: nothing is made up.
ResponseEncoding::Read ResponseEncoding::read_slice(Response& response) {
    Connection& connection = *response.exchange_.connection();
    if (connection.waits_for_disk()) {
        return Read::wait;
    }
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(file_.size, kEncodeStepBytes));
    const std::span<char> buffer(memory_.get() + kPieceBytes, size);
    const auto bytes = std::as_writable_bytes(buffer);
    IoResult read = platform::read_file(file_.fd, file_.offset, bytes, platform::DiskWait::never);
    if (!read.ok() && is_would_block(read.error)) {
        if (reactor_.warm_file(connection, file_)) {
            return Read::wait;
        }
        read = platform::read_file(file_.fd, file_.offset, bytes);  // nobody else can
    }
    if (!read.ok() || read.count == 0) {
        return Read::failed;
    }
    const auto count = static_cast<std::size_t>(read.count);
    file_.offset += count;
    file_.size -= count;
    open_slice({buffer.data(), count}, file_.size == 0 ? Flush::finish : Flush::none);
    return Read::slice;
}

// ---- Writing -------------------------------------------------------------------------------------------

std::string_view ResponseEncoding::write_some(Response& response, std::string_view bytes) {
    if (response.body_dropped_) {
        plain_bytes_ += bytes.size();
        return {};
    }
    if (slice_bytes_ != 0 && source_ == Source::handler && bytes.data() != slice_begin_) {
        return bytes;  // another write waits; whoever awaits this one is told
    }
    if (source_ == Source::handler && bytes.size() > announced_bytes_ - plain_bytes_) {
        cut(response, "more is written than content_length announced");
        return {};
    }
    if (slice_bytes_ == 0) {
        if (source_ == Source::handler) {
            const std::string_view slice = bytes.substr(0, kEncodeStepBytes);
            if (slice.empty()) {
                return {};
            }
            open_slice(slice, slice.size() == bytes.size() ? Flush::flush : Flush::none);
        } else if (is_drawn()) {
            return {};
        } else if (const Read read = next_slice(response); read != Read::slice) {
            if (read == Read::wait) {
                return bytes;
            }
            cut(response, "the file that is sent has shrunk or cannot be read");
            return {};
        }
    }
    if (!run_slice(response)) {
        if (failed_) {
            cut(response, "there is no memory to encode it");
            return {};
        }
        return bytes;
    }
    const std::size_t done = std::exchange(slice_bytes_, 0);
    if (source_ == Source::handler) {
        plain_bytes_ += done;
        return bytes.substr(done);
    }
    return is_drawn() ? std::string_view() : kRest;
}

void ResponseEncoding::open_slice(std::string_view bytes, Flush flush) {
    slice_begin_ = bytes.data();
    slice_bytes_ = bytes.size();
    slice_left_ = bytes;
    slice_flush_ = flush;
    slice_open_ = true;
}

// True when all of the slice is encoded and all that came of it has found room.
bool ResponseEncoding::run_slice(Response& response) {
    for (;;) {
        if (!drain(response)) {
            return false;
        }
        if (!slice_open_) {
            return true;
        }
        const CodingStep step = encoder_->step(slice_left_, slice_flush_, memory_.get(), kPieceBytes);
        piece_begin_ = 0;
        piece_end_ = step.produced;
        slice_open_ = step.state == CodingStep::State::more;
        failed_ = !slice_open_ && step.state != CodingStep::State::done;
        if (failed_) {
            return false;
        }
    }
}

bool ResponseEncoding::drain(Response& response) {
    if (piece_begin_ == piece_end_) {
        return true;
    }
    const std::string_view piece(memory_.get() + piece_begin_, piece_end_ - piece_begin_);
    const std::size_t written = response.exchange_.write_piece(piece);
    response.body_bytes_ += written;
    piece_begin_ += written;
    return piece_begin_ == piece_end_;
}

// Every write of the handler was flushed, so this is what ends a coding: a few bytes, for which no room is waited.
bool ResponseEncoding::finish(Response& response) {
    if (response.body_dropped_) {
        return true;
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
