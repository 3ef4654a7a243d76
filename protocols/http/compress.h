// Public.
// Compresses responses while they leave, for clients that take it (RFC 9110 §12.5.3):
//
//     router.use(compress().value());
//
// Text and the like of a kilobyte or more then leave as br, zstd, gzip or deflate, whichever the client prefers, and say that
// they vary with Accept-Encoding. Left as they are: what has a Content-Encoding, a Content-Range or `Cache-Control:
// no-transform`, answers without a body, and what would not get smaller. A strong ETag is made weak, since the bytes are not
// those that it named, and Accept-Ranges goes. Answers of middleware before it are not its business.
//
// Bodies in memory up to 64 KiB and files up to 16 KiB are compressed at once, larger ones bit by bit as the client takes
// them, chunked. What a handler writes piece by piece is flushed with each write, so that events arrive when they are sent.
// When Config::encoder_memory_limit_bytes is spent, responses leave as they are. A body that holds a secret and what others
// can put into it should not be compressed: its length would tell of the secret (CVE-2013-3587, "BREACH").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/middleware.h"

namespace penstock {

// text/*, JSON, JavaScript, XML, SVG, WebAssembly, manifests, and fonts and images that are not compressed already.
[[nodiscard]] std::vector<std::string> default_compressed_types();

struct CompressOptions {
    // Compared with the Content-Type, its parameters left aside, in any letter case. '*' stands for any characters, '/' among
    // them: "text/*", "*+json". A response without a Content-Type is text/plain.
    std::vector<std::string> types = default_compressed_types();
    // Shorter bodies leave as they are: they fit a packet either way. One whose length is not known counts as long.
    std::uint64_t min_size_bytes = 1'000;
    // "br", "zstd", "gzip", "deflate": what is offered, the one to be preferred first where the client has no preference.
    // Empty: all that this build has, in that order.
    std::vector<std::string> codings{};
    // 1 is the fastest, 9 the smallest. At these, 64 KiB take about a millisecond.
    int brotli_level = 5;
    int zstd_level = 3;
    int gzip_level = 6;
    int deflate_level = 6;
    // What each reactor keeps of bodies that it has compressed at once, with their compressed forms: those that are asked for
    // again and again are then compressed once. The least recently used go first. 0: nothing is kept.
    std::size_t cache_bytes = 4 << 20;
};

// The error names the option, its value, and what to write instead.
[[nodiscard]] Result<Middleware> compress(CompressOptions options = {});

}  // namespace penstock
