// The part of a Reactor that keeps the disk from holding it up: what is not in memory is read on the offload pool before it is
// sent.
#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <utility>

#include "penstock/engine/reactor.h"
#include "penstock/platform/descriptor.h"
#include "penstock/platform/file.h"

namespace penstock {

namespace {

// Reads into nowhere, so that the kernel has the bytes. On the offload pool.
class WarmJob {
public:
    WarmJob(platform::Descriptor file, std::uint64_t offset, std::size_t size)
        : file_(std::move(file)), offset_(offset), size_(size) {}

    void operator()() const {
        std::array<std::byte, 32 << 10> buffer;  // left as it is until read into
        for (std::size_t done = 0; done < size_;) {
            const auto piece = std::span(buffer).first(std::min(buffer.size(), size_ - done));
            const IoResult read = platform::read_file(file_.fd(), offset_ + done, piece);
            if (!read.ok() || read.count == 0) {
                return;  // sendfile will tell why
            }
            done += static_cast<std::size_t>(read.count);
        }
    }

private:
    platform::Descriptor file_;
    std::uint64_t offset_;
    std::size_t size_;
};

}  // namespace

bool Reactor::close_spare_files() {
    bool closed = false;
    for (const Local& local : locals_) {
        closed |= local.close_spare_files != nullptr && local.close_spare_files(local.value.get());
    }
    return closed;
}

bool Reactor::warm_file(Connection& connection, const FileRange& file) {
    if (warming_ == kFilesWarmedAtOnce || !start_warming(connection, file)) {
        if (warming_ == 0) {
            return false;  // no end of another would bring its turn
        }
        // Those that have gone meanwhile are dropped when their turn comes, or here.
        if (cold_.size() >= 2 * std::size_t{config_.connection_limit}) {
            std::erase_if(cold_, [this](ConnectionToken token) { return connections_.find(token) == nullptr; });
        }
        try {
            cold_.push_back(connection.token());
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    connection.edges_ |= Connection::kColdFile;
    return true;
}

bool Reactor::start_warming(Connection& connection, const FileRange& file) {
    // Of its own: the connection may end meanwhile, and its descriptor become something else.
    const IoResult own = platform::duplicate_descriptor(file.fd);
    if (!own.ok()) {
        return false;
    }
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(file.size, kFileWarmBytes));
    const std::uint64_t end = file.offset + size;
    WarmJob job(platform::Descriptor(static_cast<int>(own.count)), file.offset, size);
    try {
        const bool started = try_offload(Message(std::move(job)), Message([this, token = connection.token(), end] {
                                             --warming_;
                                             file_warmed(token, end);
                                         }));
        warming_ += started ? 1 : 0;
        return started;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// Those whose turn has come look for themselves whether their part is still cold. With the last read all of them do: what they
// wait for may have come with it, and then none of them would start another, whose end brings on the next.
void Reactor::file_warmed(ConnectionToken token, std::uint64_t end) {
    const auto go_on = [this](ConnectionToken which, std::uint64_t warm_end) {
        if (Connection* const connection = connections_.find(which)) {
            connection->file_is_warm(warm_end);
        }
    };
    go_on(token, end);
    for (std::uint32_t turns = warming_ == 0 ? ~0u : kFilesWarmedAtOnce - warming_; turns > 0 && !cold_.empty(); --turns) {
        go_on(cold_.front(), 0);
        cold_.pop_front();
    }
}

}  // namespace penstock
