#include "penstock/platform/sim/file_tree.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "penstock/platform/clock.h"
#include "penstock/platform/sim/abort.h"

namespace penstock::sim {

namespace {

// Linux's limits (man 7 path_resolution).
constexpr std::size_t kNameLimit = 255;
constexpr std::size_t kPathLimit = 4096;
constexpr int kLinkLimit = 40;

std::int64_t now_ns();
std::vector<std::string> names_reversed(std::string_view path);
std::string_view last_name(std::string_view path);
FileTree::Found step_from(std::vector<std::shared_ptr<FileNode>>& way, const std::string& name);

}  // namespace

std::size_t FileNode::read(std::uint64_t offset, std::span<char> buffer) const {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size_from(offset)));
    if (count == 0) {
        return 0;
    }
    if (content) {
        content(offset, buffer.first(count));
    } else {
        std::memcpy(buffer.data(), bytes.data() + offset, count);
    }
    return count;
}

bool FileNode::warm(std::uint64_t end) {
    const bool waits = end > cold_from;
    cold_from = waits ? end : cold_from;
    return waits;
}

void FileNode::resize(std::uint64_t bytes_now) {
    size = bytes_now;
    if (!content) {
        bytes.resize(static_cast<std::size_t>(bytes_now));
    }
}

void FileNode::write(std::uint64_t offset, std::span<const char> from) {
    require(content == nullptr, "a file whose bytes a test makes up is written");
    resize(std::max<std::uint64_t>(size, offset + from.size()));
    std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    modified_ns = now_ns();
    ++changes;
}

platform::FileInfo FileNode::info() const {
    platform::FileInfo info;
    info.size = size;
    info.modified_ns = modified_ns;
    info.changed_ns = changes;
    info.inode = inode;
    if (kind == NodeKind::regular) {
        info.kind = platform::FileKind::regular;
    }
    if (kind == NodeKind::directory) {
        info.kind = platform::FileKind::directory;
    }
    return info;
}

FileTree::FileTree() : root_(new_node(NodeKind::directory)) {}

FileTree::Found FileTree::find_beneath(const std::shared_ptr<FileNode>& root, std::string_view path,
                                       platform::LinkPolicy links) const {
    const std::vector<std::string> names = names_reversed(path);
    if (std::find(names.begin(), names.end(), "..") != names.end()) {
        return {nullptr, EXDEV};
    }
    return walk(root, path, true, links);
}

FileTree::Found FileTree::walk(std::shared_ptr<FileNode> root, std::string_view path, bool beneath,
                               platform::LinkPolicy links) const {
    if (path.empty()) {
        return {nullptr, ENOENT};
    }
    if (path.size() >= kPathLimit) {
        return {nullptr, ENAMETOOLONG};
    }
    if (beneath && path.front() == '/') {
        return {nullptr, EXDEV};
    }
    std::vector<std::string> todo = names_reversed(path);
    std::vector<std::shared_ptr<FileNode>> way{std::move(root)};
    int followed = 0;
    while (!todo.empty()) {
        const std::string name = std::move(todo.back());
        todo.pop_back();
        if (name == ".." && way.size() == 1 && beneath) {
            return {nullptr, EXDEV};
        }
        const Found step = step_from(way, name);
        if (step.error != 0) {
            return step;
        }
        if (step.node == nullptr) {
            continue;
        }
        if (step.node->kind != NodeKind::link) {
            way.push_back(step.node);
            continue;
        }
        if (links == platform::LinkPolicy::never || ++followed > kLinkLimit) {
            return {nullptr, ELOOP};
        }
        const std::string& target = step.node->bytes;
        if (target.starts_with('/')) {
            if (beneath) {
                return {nullptr, EXDEV};
            }
            way.resize(1);
        }
        for (std::string& part : names_reversed(target)) {
            todo.push_back(std::move(part));
        }
    }
    return {way.back(), 0};
}

std::shared_ptr<FileNode> FileTree::new_node(NodeKind kind) {
    auto node = std::make_shared<FileNode>();
    node->kind = kind;
    node->inode = next_inode_++;
    node->modified_ns = now_ns();
    return node;
}

std::shared_ptr<FileNode> FileTree::parent_of(std::string_view path, bool making) {
    std::vector<std::string> names = names_reversed(path);
    std::shared_ptr<FileNode> node = root_;
    while (names.size() > 1) {
        const std::string name = std::move(names.back());
        names.pop_back();
        auto child = node->children.find(name);
        if (child == node->children.end()) {
            if (!making) {
                return nullptr;
            }
            child = node->children.emplace(name, new_node(NodeKind::directory)).first;
        }
        if (child->second->kind != NodeKind::directory) {
            return nullptr;
        }
        node = child->second;
    }
    return node;
}

FileNode& FileTree::make(std::string_view path, NodeKind kind) {
    const std::string_view name = last_name(path);
    require(!name.empty(), "a file in the simulated tree needs a name");
    const std::shared_ptr<FileNode> parent = parent_of(path, true);
    require(parent != nullptr, "a file in the simulated tree cannot lie below another file");
    std::shared_ptr<FileNode>& node = parent->children[std::string(name)];
    node = new_node(kind);
    return *node;
}

void FileTree::make_directory(std::string_view path) {
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    if (path.empty()) {
        return;
    }
    const Found there = find(path);
    if (there.error == 0 && there.node->kind == NodeKind::directory) {
        return;
    }
    make(path, NodeKind::directory);
}

FileTree::Found FileTree::find_entry(std::string_view path) {
    const std::shared_ptr<FileNode> parent = parent_of(path, false);
    if (parent == nullptr) {
        return {nullptr, ENOENT};
    }
    const auto child = parent->children.find(last_name(path));
    if (child == parent->children.end()) {
        return {nullptr, ENOENT};
    }
    return {child->second, 0};
}

bool FileTree::remove(std::string_view path) {
    const std::shared_ptr<FileNode> parent = parent_of(path, false);
    if (parent == nullptr) {
        return false;
    }
    const auto child = parent->children.find(last_name(path));
    if (child == parent->children.end()) {
        return false;
    }
    parent->children.erase(child);
    return true;
}

int FileTree::link(const std::shared_ptr<FileNode>& node, std::string_view path) {
    const std::string_view name = last_name(path);
    const std::string_view above = path.substr(0, path.size() - name.size());
    if (path.size() >= kPathLimit) {
        return ENAMETOOLONG;
    }
    const Found parent = find(above);  // paths of a World are absolute
    if (parent.error != 0) {
        return parent.error;
    }
    if (name == "." || name == "..") {
        return EEXIST;
    }
    std::vector<std::shared_ptr<FileNode>> way{parent.node};
    const Found there = name.empty() ? Found{nullptr, ENOENT} : step_from(way, std::string(name));
    if (there.error != ENOENT || name.empty()) {
        return there.error != 0 ? there.error : EEXIST;
    }
    parent.node->children.emplace(name, node);
    return 0;
}

namespace {

// In whole seconds, as file systems of few bits for it have it.
std::int64_t now_ns() {
    constexpr std::int64_t kSecondMs = 1'000;
    const std::int64_t wall_ms = platform::wall_ms();
    const std::int64_t into_second = (wall_ms % kSecondMs + kSecondMs) % kSecondMs;
    return (wall_ms - into_second) * 1'000'000;
}

// The names of a path, last one first. A '/' at the end asks for a directory, as if "." followed.
std::vector<std::string> names_reversed(std::string_view path) {
    std::vector<std::string> names;
    if (path.ends_with('/')) {
        names.emplace_back(".");
    }
    while (!path.empty()) {
        const std::size_t slash = path.rfind('/');
        const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
        if (!name.empty()) {
            names.emplace_back(name);
        }
        path = slash == path.npos ? std::string_view{} : path.substr(0, slash);
    }
    return names;
}

// The child of that name; no node where the step is carried out already ("." and "..").
FileTree::Found step_from(std::vector<std::shared_ptr<FileNode>>& way, const std::string& name) {
    const FileNode& directory = *way.back();
    if (directory.kind != NodeKind::directory) {
        return {nullptr, ENOTDIR};
    }
    if (!directory.permitted) {
        return {nullptr, EACCES};
    }
    if (name.size() > kNameLimit) {
        return {nullptr, ENAMETOOLONG};
    }
    if (name == ".") {
        return {};
    }
    if (name == "..") {
        if (way.size() > 1) {
            way.pop_back();
        }
        return {};
    }
    const auto child = directory.children.find(name);
    if (child == directory.children.end()) {
        return {nullptr, ENOENT};
    }
    return {child->second, 0};
}

std::string_view last_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? path : path.substr(slash + 1);
}

}  // namespace

}  // namespace penstock::sim
