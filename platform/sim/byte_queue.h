// Internal.
// Bytes in order, in at one end and out at the other. Owned by a Connection, one per direction; any
// thread, one at a time. It keeps its memory when it runs empty, so that a warmed connection moves
// bytes without allocating. It knows no limit: its owner does.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace penstock::sim {

class ByteQueue {
public:
    [[nodiscard]] std::size_t size() const { return bytes_.size() - head_; }
    [[nodiscard]] bool empty() const { return size() == 0; }
    // Valid until the next change.
    [[nodiscard]] std::string_view view(std::size_t most) const {
        return {bytes_.data() + head_, most < size() ? most : size()};
    }

    void push(std::string_view bytes) {
        // Moving the rest forward costs no more than what was popped before it.
        if (head_ > 0 && head_ >= size()) {
            bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
            head_ = 0;
        }
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }

    // `count` is at most size().
    void pop(std::size_t count) {
        head_ += count;
        if (empty()) {
            clear();
        }
    }

    void clear() {
        bytes_.clear();
        head_ = 0;
    }

private:
    std::vector<char> bytes_;
    std::size_t head_ = 0;
};

}  // namespace penstock::sim
