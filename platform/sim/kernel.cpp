#include "penstock/platform/sim/kernel.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "penstock/platform/sim/abort.h"
#include "penstock/platform/sim/machine.h"

namespace penstock::sim {

namespace {

constexpr int kFirstDescriptor = 3;  // after the standard streams

Kernel* the_kernel = nullptr;
std::uint64_t kernels_made = 0;
thread_local int inside_depth = 0;

int wrong_kind(const Description& description, int error);

}  // namespace

void abort_with(const char* what) {
    std::fprintf(stderr, "penstock simulation: %s\n", what);
    std::abort();
}

bool inside_world() {
    return inside_depth > 0;
}

InsideMark::InsideMark() {
    ++inside_depth;
}
InsideMark::~InsideMark() {
    --inside_depth;
}

Scope::Scope() : kernel_(&Kernel::current()) {
    ++inside_depth;
}
Scope::~Scope() {
    --inside_depth;
}

Kernel::Kernel() : number_(++kernels_made), thread_(std::this_thread::get_id()) {
    require(the_kernel == nullptr, "a second World while one exists");
    the_kernel = this;
    reset_machine();
}

Kernel::~Kernel() {
    the_kernel = nullptr;
}

Kernel& Kernel::current() {
    require(the_kernel != nullptr,
            "a platform call while there is no World (it must be made first, and go last)");
    require(the_kernel->thread_ == std::this_thread::get_id(),
            "a platform call from a second thread: the World is single-threaded");
    return *the_kernel;
}

// ---- Accounting

Outcome Kernel::begin(Call call, int fd, std::uint64_t bytes) {
    count(call);
    const Description* description = peek(fd);
    const bool is_connection = description != nullptr && description->kind() == DescriptionKind::connection;
    const std::uint64_t id = is_connection ? static_cast<const Connection*>(description)->id() : 0;
    return faults.judge({call, fd, id, bytes});
}

IoResult Kernel::end(Call call, IoResult result) {
    if (is_would_block(result.error)) {
        ++would_blocks_[static_cast<std::size_t>(call)];
    }
    return result;
}

void Kernel::reset_calls() {
    calls_.fill(0);
    would_blocks_.fill(0);
    reset_wake_count();
}

// ---- Descriptors

IoResult Kernel::open(std::shared_ptr<Description> description) {
    if (at_limit()) {
        return IoResult::failure(EMFILE);
    }
    auto free = std::find(table_.begin(), table_.end(), nullptr);
    if (free == table_.end()) {
        free = table_.insert(table_.end(), nullptr);
    }
    description->opened();
    *free = std::move(description);
    ++open_count_;
    return IoResult::success(free - table_.begin() + kFirstDescriptor);
}

void Kernel::close(int fd) {
    int error = 0;
    const std::shared_ptr<Description> description = share(fd, &error);
    if (description == nullptr) {
        return;
    }
    table_[static_cast<std::size_t>(fd - kFirstDescriptor)] = nullptr;
    --open_count_;
    description->closed_one();
}

const Description* Kernel::peek(int fd) const {
    const auto index = static_cast<std::size_t>(fd - kFirstDescriptor);
    return fd < kFirstDescriptor || index >= table_.size() ? nullptr : table_[index].get();
}

std::shared_ptr<Description> Kernel::share(int fd, int* error) {
    if (peek(fd) == nullptr) {
        ++bad_calls_;
        *error = EBADF;
        return nullptr;
    }
    return table_[static_cast<std::size_t>(fd - kFirstDescriptor)];
}

Connection* Kernel::find_connection(int fd, int* error) {
    Description* description = find(fd, error);
    if (description == nullptr) {
        return nullptr;
    }
    if (description->kind() == DescriptionKind::connection) {
        return static_cast<Connection*>(description);
    }
    *error = wrong_kind(*description, ENOTCONN);
    return nullptr;
}

Listener* Kernel::find_listener(int fd, int* error) {
    Description* description = find(fd, error);
    if (description == nullptr) {
        return nullptr;
    }
    if (description->kind() == DescriptionKind::listener) {
        return static_cast<Listener*>(description);
    }
    *error = wrong_kind(*description, EINVAL);
    return nullptr;
}

OpenFile* Kernel::find_file(int fd, int* error) {
    Description* description = find(fd, error);
    if (description == nullptr) {
        return nullptr;
    }
    if (description->kind() == DescriptionKind::file) {
        return static_cast<OpenFile*>(description);
    }
    *error = ESPIPE;
    return nullptr;
}

// ---- Pollers

void Kernel::remove_poller(PollerState* poller) {
    std::erase(pollers_, poller);
    for (const auto& description : table_) {
        if (description != nullptr) {
            description->unwatch_all(*poller);
        }
    }
}

namespace {

int wrong_kind(const Description& description, int error) {
    return description.kind() == DescriptionKind::file ? ENOTSOCK : error;
}

}  // namespace

}  // namespace penstock::sim
