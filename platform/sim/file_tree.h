// Internal.
// Directories and files in memory. Owned by the Kernel; the World's thread alone. Nodes are shared with
// the descriptors that opened them, so a file that is removed or replaced lives on for those.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/platform/file.h"
#include "penstock/platform/sim/description.h"
#include "penstock/platform/sim/world.h"

namespace penstock::sim {

class Listener;

enum class NodeKind : std::uint8_t { regular, directory, link, special, socket };

struct FileNode {
    NodeKind kind = NodeKind::regular;
    bool permitted = true;
    std::uint64_t size = 0;
    std::uint64_t inode = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changes = 0;  // stands for the time of the last one
    bool name_cold = false;  // what leads to it is on disk only
    std::uint64_t cold_from = ~std::uint64_t{0};  // and so are its bytes from here on
    std::string bytes;  // regular: unless `content` makes them; link: its target
    World::Content content;
    std::map<std::string, std::shared_ptr<FileNode>, std::less<>> children;
    std::weak_ptr<Listener> listener;  // socket: who listens, if anyone still does

    // Copies what is there from `offset`; returns how many bytes.
    [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<char> buffer) const;
    [[nodiscard]] std::uint64_t size_from(std::uint64_t offset) const {
        return offset < size ? size - offset : 0;
    }
    // Brings bytes up to `end` into memory; whether that takes a wait for the disk.
    bool warm(std::uint64_t end);
    void resize(std::uint64_t bytes_now);
    // Only where no Content makes the bytes.
    void write(std::uint64_t offset, std::span<const char> from);
    [[nodiscard]] platform::FileInfo info() const;
};

// A descriptor of a file or directory.
class OpenFile : public Description {
public:
    explicit OpenFile(std::shared_ptr<FileNode> node, bool is_writable = false)
        : Description(DescriptionKind::file), node_(std::move(node)), is_writable_(is_writable) {}

    [[nodiscard]] const std::shared_ptr<FileNode>& node() const { return node_; }
    [[nodiscard]] bool is_writable() const { return is_writable_; }

private:
    const std::shared_ptr<FileNode> node_;
    const bool is_writable_;
};

class FileTree {
public:
    // `node` unless `error`.
    struct Found {
        std::shared_ptr<FileNode> node;
        int error = 0;
    };

    FileTree();

    [[nodiscard]] Found find(std::string_view path) const { return walk(root_, path, false, platform::LinkPolicy::inside); }
    // Never leaves `root`, as RESOLVE_BENEATH (man 2 openat2). Links may climb below it, the path may not.
    [[nodiscard]] Found find_beneath(const std::shared_ptr<FileNode>& root, std::string_view path,
                                     platform::LinkPolicy links) const;
    // The name itself, a link included.
    [[nodiscard]] Found find_entry(std::string_view path);
    [[nodiscard]] bool has_directory_of(std::string_view path) { return parent_of(path, false) != nullptr; }
    // Makes a fresh node at the path, and the directories above it; replaces what was there.
    FileNode& make(std::string_view path, NodeKind kind);
    // Unlike make, leaves a directory that is there.
    void make_directory(std::string_view path);
    [[nodiscard]] bool remove(std::string_view path);

    // ---- Temporary files
    // A fresh regular file that is in no directory.
    [[nodiscard]] std::shared_ptr<FileNode> make_nameless() { return new_node(NodeKind::regular); }
    void forbid_nameless() { nameless_forbidden_ = true; }
    [[nodiscard]] bool nameless_forbidden() const { return nameless_forbidden_; }
    [[nodiscard]] std::string next_temporary_name() { return ".penstock-" + std::to_string(next_temporary_++); }
    // Gives a node a name, unless the name is taken. 0 or errno.
    [[nodiscard]] int link(const std::shared_ptr<FileNode>& node, std::string_view path);

private:
    [[nodiscard]] Found walk(std::shared_ptr<FileNode> root, std::string_view path, bool beneath,
                             platform::LinkPolicy links) const;
    [[nodiscard]] std::shared_ptr<FileNode> new_node(NodeKind kind);
    // The directory above the path's last name, made if `making`; null if it is not there.
    [[nodiscard]] std::shared_ptr<FileNode> parent_of(std::string_view path, bool making);

    std::uint64_t next_inode_ = 1;
    std::uint64_t next_temporary_ = 100'000;
    bool nameless_forbidden_ = false;
    std::shared_ptr<FileNode> root_;
};

}  // namespace penstock::sim
