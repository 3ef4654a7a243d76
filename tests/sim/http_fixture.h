// Internal.
// What the tests of HTTP on the simulated platform share: bytes sent whole, cut in two, and byte by byte, on a
// connection of their own. Owned by one test; its thread alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine_fixture.h"
#include "http/http_cases.h"

namespace penstock::test {

// Between the parts of a file stands a boundary that is another one each time, and has another length. So that answers can
// be compared, it becomes "boundary"; of one answer in `bytes` at most.
inline std::string with_fixed_boundary(std::string bytes) {
    constexpr std::string_view kBegin = "\r\nContent-Type: multipart/byteranges; boundary=";
    constexpr std::string_view kFixed = "boundary";
    const std::size_t at = bytes.find(kBegin);
    if (at == std::string::npos) {
        return bytes;
    }
    const std::size_t begin = at + kBegin.size();
    const std::string boundary = bytes.substr(begin, bytes.find("\r\n", begin) - begin);
    const std::size_t count = count_of(bytes, "--" + boundary);
    const std::string length = replies_in(std::string_view(bytes).substr(bytes.rfind("HTTP/1.1 206", at)))[0].field("Content-Length");
    const std::string shorter = std::to_string(std::stoul(length) + count * kFixed.size() - count * boundary.size());
    bytes.replace(bytes.rfind("Content-Length: " + length, bytes.find("\r\n\r\n", at)) + 16, length.size(), shorter);
    bytes = replaced(std::move(bytes), boundary, kFixed);
    return bytes;
}

// On a connection of its own, with the reactor at rest between the pieces.
inline Answer feed(Engine& engine, std::span<const std::string_view> pieces) {
    sim::Peer peer = engine.world.connect(kPort);
    Answer answer;
    for (const std::string_view piece : pieces) {
        peer.send(piece);
        engine.server.settle_offloads();
        answer.bytes += peer.take_received();
    }
    answer.bytes = with_fixed_boundary(std::move(answer.bytes));
    answer.closed = peer.finished_by_server();
    peer.close();
    engine.server.settle();
    return answer;
}

inline Answer feed_whole(Engine& engine, std::string_view bytes) {
    return feed(engine, std::span{&bytes, 1});
}

inline Answer feed_bytewise(Engine& engine, std::string_view bytes) {
    std::vector<std::string_view> pieces;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        pieces.push_back(bytes.substr(i, 1));
    }
    return feed(engine, pieces);
}

inline Answer feed_cut(Engine& engine, std::string_view bytes, std::size_t at) {
    const std::string_view pieces[] = {bytes.substr(0, at), bytes.substr(at)};
    return feed(engine, pieces);
}

// A case against an engine that is there already; its router has "/letters", as case_router has.
void run_case(Engine& engine, const Case& expected);

}  // namespace penstock::test
