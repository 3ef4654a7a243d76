// A form is the same however it is cut: whole, byte by byte, and in pieces of the input's choice. The input is
//
//     byte 0, 1   the limits, and the size of the first piece
//     byte 2      how many sizes of pieces follow, used over and over
//     ...         sizes of pieces
//     ...         the form, with the boundary "b"; it serves as a Content-Type as well
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/protocols/http/multipart.h"

namespace penstock {
namespace {

using Event = MultipartParser::Event;

void require(bool condition, const char* what, std::string_view about = "", std::string_view more = "") {
    if (!condition) {
        std::fprintf(stderr, "multipart_fuzz: %s\n%.*s\n----\n%.*s\n", what, static_cast<int>(about.size()), about.data(),
                     static_cast<int>(more.size()), more.data());
        std::abort();
    }
}

void check_head(const MultipartPart& part) {
    require(part.name.data() != nullptr, "a part has no name");
    for (const std::string_view text : {part.name, part.filename}) {
        for (const char c : text) {
            require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a control in a name", text);
        }
    }
}

// Takes all events that there are; the data of a part is one, however it comes.
Event drain(MultipartParser& parser, bool* in_part, std::string* log) {
    for (;;) {
        const Event event = parser.next();
        switch (event) {
            case Event::part_begin: {
                require(!*in_part, "a part begins in another", *log);
                const MultipartPart& part = parser.part();
                check_head(part);
                *in_part = true;
                log->append("[").append(part.name).append("|").append(part.filename).append("|");
                log->append(part.content_type).append("]");
                break;
            }
            case Event::data:
                require(*in_part && !parser.data().empty(), "data outside a part, or none", *log);
                log->append(parser.data());
                break;
            case Event::part_end:
                require(*in_part, "a part ends that did not begin", *log);
                *in_part = false;
                log->append("[end]");
                break;
            default: return event;
        }
    }
}

// Each piece is a copy of its own, so that reading beyond it, or behind its life, is noticed.
template <class NextSize>
std::string run(std::string_view form, const MultipartLimits& limits, NextSize next_size) {
    MultipartParser parser("b", limits);
    std::string log;
    bool in_part = false;
    while (!form.empty()) {
        const std::size_t size = std::min<std::size_t>(next_size(), form.size());
        const std::unique_ptr<char[]> piece = std::make_unique<char[]>(size);
        std::copy_n(form.data(), size, piece.get());
        form.remove_prefix(size);
        parser.feed({piece.get(), size});
        if (drain(parser, &in_part, &log) == Event::failed) {
            break;
        }
    }
    const Event last = parser.finish();
    require(last == Event::form_end || last == Event::failed, "a form neither ends nor fails", log);
    require(parser.next() == last, "the last event does not stay", log);
    require(last == Event::failed || !in_part, "a form ends within a part", log);
    return log.append("[").append(parser.error()).append("]");
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    if (size < 3) {
        return 0;
    }
    const std::span<const std::uint8_t> rest(data + 3, size - 3);
    const std::span<const std::uint8_t> sizes = rest.first(std::min<std::size_t>(data[2], rest.size()));
    const auto bytes = rest.subspan(sizes.size());
    const std::string_view form(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    MultipartLimits limits;
    if ((data[0] & 1) != 0) {
        limits = {.part_limit = 2, .field_limit = 2, .head_limit_bytes = 64, .part_limit_bytes = 20, .outside_limit_bytes = 8};
    }
    const std::string whole = run(form, limits, [&form] { return form.size(); });
    const std::string bytewise = run(form, limits, [] { return std::size_t{1}; });
    require(bytewise == whole, "byte by byte it is another form", whole, bytewise);
    std::size_t at = 0;
    const std::string cut = run(form, limits, [&]() -> std::size_t {
        const std::size_t i = at++;
        return 1u + (i == 0 || sizes.empty() ? data[1] : sizes[(i - 1) % sizes.size()]);
    });
    require(cut == whole, "cut, it is another form", whole, cut);
    const Result<std::string> boundary = multipart_boundary(form);
    require(!boundary.ok() || (!boundary.value().empty() && boundary.value().size() <= 70), "a boundary that is none", form);
    return 0;
}
