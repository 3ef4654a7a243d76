#include "penstock/protocols/http/accept_encoding.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace penstock {

namespace {

constexpr int kFullWeight = 1'000;  // weights are thousandths: three digits are all there can be (RFC 9110 §12.4.2)
constexpr int kUnsaid = -1;

// What the field says of each coding.
class Weights {
public:
    Weights() { named_.fill(kUnsaid); }
    void add_element(std::string_view element);
    // 0 when the coding must not be used.
    [[nodiscard]] int of(ContentCoding coding) const;
    // Whether identity is acceptable only because nothing is said of it.
    [[nodiscard]] bool identity_is_unsaid() const { return named_[0] == kUnsaid && any_ == kUnsaid; }

private:
    static void lower(int& weight, int value) { weight = weight == kUnsaid ? value : std::min(weight, value); }

    std::array<int, kContentCodings> named_;
    int any_ = kUnsaid;  // of "*"
};

std::string_view trim(std::string_view text);
int parse_weight(std::string_view parameter);
int parse_quality(std::string_view text);

}  // namespace

std::optional<ContentCoding> choose_content_coding(std::string_view accept_encoding,
                                                   std::span<const ContentCoding> offered) {
    if (accept_encoding.data() == nullptr) {
        return ContentCoding::identity;
    }
    Weights weights;
    for (std::size_t begin = 0; begin < accept_encoding.size();) {
        const std::size_t end = std::min(accept_encoding.find(',', begin), accept_encoding.size());
        weights.add_element(trim(accept_encoding.substr(begin, end - begin)));
        begin = end + 1;
    }
    std::optional<ContentCoding> best;
    int best_weight = 0;
    for (const ContentCoding coding : offered) {
        if (coding == ContentCoding::identity && weights.identity_is_unsaid()) {
            continue;  // it comes last, wherever it stands
        }
        if (const int weight = weights.of(coding); weight > best_weight) {
            best = coding;
            best_weight = weight;
        }
    }
    if (weights.identity_is_unsaid()) {
        return best ? best : ContentCoding::identity;
    }
    // Here it counts only where `offered` does not name it.
    return weights.of(ContentCoding::identity) > best_weight ? ContentCoding::identity : best;
}

namespace {

// codings [ weight ], weight = OWS ";" OWS "q=" qvalue (RFC 9110 §12.4.2, §12.5.3)
void Weights::add_element(std::string_view element) {
    const std::size_t semicolon = std::min(element.find(';'), element.size());
    const std::string_view name = trim(element.substr(0, semicolon));
    const int weight = semicolon == element.size() ? kFullWeight : parse_weight(trim(element.substr(semicolon + 1)));
    if (weight == kUnsaid) {
        return;
    }
    if (name == "*") {
        lower(any_, weight);
    } else if (const std::optional<ContentCoding> coding = find_content_coding(name)) {
        lower(named_[static_cast<std::size_t>(*coding)], weight);
    }
}

int Weights::of(ContentCoding coding) const {
    const int named = named_[static_cast<std::size_t>(coding)];
    return named != kUnsaid ? named : std::max(any_, 0);
}

// Without the OWS around it (RFC 9110 §5.6.3).
std::string_view trim(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    const std::size_t end = text.find_last_not_of(" \t") + 1;
    return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// Thousandths, or kUnsaid when it is no weight.
int parse_weight(std::string_view parameter) {
    const bool is_weight = parameter.size() > 2 && (parameter[0] | 0x20) == 'q' && parameter[1] == '=';
    return is_weight ? parse_quality(parameter.substr(2)) : kUnsaid;
}

// qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ); `text` is not empty.
int parse_quality(std::string_view text) {
    if (text[0] != '0' && text[0] != '1') {
        return kUnsaid;
    }
    if (text.size() > 5 || (text.size() > 1 && text[1] != '.')) {
        return kUnsaid;
    }
    int value = text[0] == '1' ? kFullWeight : 0;
    int unit = kFullWeight / 10;
    for (std::size_t i = 2; i < text.size(); ++i, unit /= 10) {
        if (text[i] < '0' || text[i] > '9') {
            return kUnsaid;
        }
        value += (text[i] - '0') * unit;
    }
    return value <= kFullWeight ? value : kUnsaid;
}

}  // namespace

}  // namespace penstock
