#include "penstock/platform/sim/world.h"

#include <utility>

#include "penstock/platform/clock.h"
#include "penstock/platform/sim/abort.h"
#include "penstock/platform/sim/kernel.h"
#include "penstock/platform/sim/machine.h"

namespace penstock::sim {

namespace {

FileNode& node_at(FileTree& files, const std::string& path);

}  // namespace

World::World() {
    const InsideMark mark;
    kernel_ = std::make_unique<Kernel>();
}

World::~World() = default;

// ---- Time and the machine

void World::advance_ms(std::uint64_t milliseconds) {
    advance_clock(milliseconds);
}
std::uint64_t World::now_ms() const {
    return platform::monotonic_ms();
}
void World::set_wall_seconds(std::int64_t seconds) {
    set_wall_clock(seconds);
}
void World::set_usable_cores(unsigned count) {
    set_core_count(count);
}
void World::set_descriptor_limit(std::size_t count) {
    kernel_->set_limit(count);
}
void World::raise_signal(int number) {
    deliver_signal(number);
}

// ---- Clients

Peer World::connect(std::uint16_t port) {
    return connect(port, ConnectOptions{});
}

Peer World::connect(std::uint16_t port, std::size_t listener) {
    ConnectOptions options;
    options.listener = listener;
    return connect(port, options);
}

Peer World::connect(std::uint16_t port, const ConnectOptions& options) {
    const Scope kernel;
    return Peer(kernel->connect(port, options));
}

Peer World::connect_unix(const std::string& path) {
    const Scope kernel;
    return Peer(kernel->connect_unix(path));
}

bool World::quiet() const {
    return kernel_->quiet();
}

// ---- Files

void World::add_file(const std::string& path, std::string content) {
    const Scope kernel;
    FileNode& node = kernel->files.make(path, NodeKind::regular);
    node.size = content.size();
    node.bytes = std::move(content);
}

void World::add_file(const std::string& path, std::uint64_t size, Content content) {
    const Scope kernel;
    require(content != nullptr, "add_file: no content");
    FileNode& node = kernel->files.make(path, NodeKind::regular);
    node.size = size;
    node.content = std::move(content);
}

void World::add_directory(const std::string& path) {
    const Scope kernel;
    kernel->files.make_directory(path);
}

void World::add_link(const std::string& path, const std::string& target) {
    const Scope kernel;
    kernel->files.make(path, NodeKind::link).bytes = target;
}

void World::add_special(const std::string& path) {
    const Scope kernel;
    kernel->files.make(path, NodeKind::special);
}

void World::truncate_file(const std::string& path, std::uint64_t size) {
    const Scope kernel;
    FileNode& node = node_at(kernel->files, path);
    require(node.kind == NodeKind::regular, "truncate_file: not a regular file");
    node.resize(size);
}

void World::set_modified_ns(const std::string& path, std::int64_t nanoseconds) {
    const Scope kernel;
    FileNode& node = node_at(kernel->files, path);
    node.modified_ns = nanoseconds;
    ++node.changes;
}

void World::set_permitted(const std::string& path, bool permitted) {
    const Scope kernel;
    node_at(kernel->files, path).permitted = permitted;
}

void World::remove_file(const std::string& path) {
    const Scope kernel;
    require(kernel->files.remove(path), "remove_file: no such file");
}

void World::chill_file(const std::string& path) {
    const Scope kernel;
    FileNode& node = node_at(kernel->files, path);
    node.name_cold = true;
    node.cold_from = 0;
}

std::uint64_t World::disk_waits() const { return kernel_->disk_waits(); }

bool World::exists(const std::string& path) const {
    const Scope kernel;
    return kernel->files.find(path).error == 0;
}

std::vector<std::string> World::names_in(const std::string& path) const {
    const Scope kernel;
    std::vector<std::string> names;
    for (const auto& [name, node] : node_at(kernel->files, path).children) {
        names.push_back(name);
    }
    return names;
}

void World::forbid_nameless_files() { kernel_->files.forbid_nameless(); }

// ---- Accounting

std::uint64_t World::calls(Call call) const {
    return call == Call::wake ? wake_count() : kernel_->calls(call);
}

std::uint64_t World::would_blocks(Call call) const {
    return kernel_->would_blocks(call);
}
void World::reset_calls() {
    kernel_->reset_calls();
}
std::size_t World::open_descriptors() const {
    return kernel_->open_count();
}
std::uint64_t World::bad_descriptor_calls() const {
    return kernel_->bad_descriptor_calls();
}

// ---- Faults

void World::script(Call call, int fd, std::uint64_t nth, Outcome outcome, std::uint64_t times) {
    const Scope kernel;
    kernel->faults.add_rule(call, fd, 0, nth, outcome, times);
}

void World::fail_nth(std::uint64_t nth, int error) {
    kernel_->faults.fail_nth(nth, Outcome::fail(error));
}

bool World::fault_hit() const {
    return kernel_->faults.hit();
}
void World::seed(std::uint64_t seed, const Ratios& ratios) {
    kernel_->faults.seed(seed, ratios);
}

void World::choose_from(std::span<const std::uint8_t> bytes) {
    const Scope kernel;
    kernel->faults.choose_from(bytes);
}

void World::replay(std::span<const Fault> faults) {
    const Scope kernel;
    kernel->faults.replay(faults);
}

std::uint64_t World::choose(std::uint64_t limit) {
    return kernel_->faults.choose(limit);
}
void World::pause_faults() {
    kernel_->faults.set_paused(true);
}
void World::resume_faults() {
    kernel_->faults.set_paused(false);
}
const std::vector<Fault>& World::faults() const {
    return kernel_->faults.injected();
}
std::string World::fault_report() const {
    return kernel_->faults.report();
}

std::uint64_t sweep(const std::function<void(World&)>& scenario) {
    std::uint64_t runs = 0;
    for (std::uint64_t nth = 1;; ++nth) {
        std::size_t variants = 1;
        for (std::size_t variant = 0; variant < variants; ++variant) {
            World world;
            world.kernel_->faults.fail_nth_variant(nth, variant);
            scenario(world);
            ++runs;
            if (!world.fault_hit()) {
                return runs;
            }
            variants = Faults::variant_count(world.kernel_->faults.hit_call());
        }
    }
}

namespace {

FileNode& node_at(FileTree& files, const std::string& path) {
    const FileTree::Found found = files.find(path);
    require(found.error == 0, "no such file in the simulated tree");
    return *found.node;
}

}  // namespace

}  // namespace penstock::sim
