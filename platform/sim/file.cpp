#include "penstock/platform/file.h"

#include <cerrno>
#include <span>

#include "penstock/platform/sim/abort.h"
#include "penstock/platform/sim/kernel.h"

namespace penstock::platform {

using sim::Call;
using sim::NodeKind;
using sim::Outcome;
using sim::Scope;

Result<int> open_directory(const std::string& path) {
    const Scope kernel;
    const std::string what = "open the directory \"" + path + "\"";
    const Outcome outcome = kernel->begin(Call::open_directory, -1);
    if (outcome.error != 0) {
        return system_error(what, outcome.error);
    }
    const sim::FileTree::Found found = kernel->files.find(path);
    if (found.error != 0) {
        return system_error(what, found.error);
    }
    if (found.node->kind != NodeKind::directory) {
        return system_error(what, ENOTDIR);
    }
    if (!found.node->permitted) {
        return system_error(what, EACCES);
    }
    const IoResult opened = kernel->open(std::make_shared<sim::OpenFile>(found.node));
    if (!opened.ok()) {
        return system_error(what, opened.error);
    }
    return static_cast<int>(opened.count);
}

IoResult open_beneath(int root_fd, const char* relative_path, LinkPolicy links, DiskWait wait) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::open_file, root_fd);
    int error = 0;
    const sim::OpenFile* root = kernel->find_file(root_fd, &error);
    if (root == nullptr) {
        return IoResult::failure(error == EBADF ? EBADF : ENOTDIR);
    }
    if (outcome.error != 0) {
        return IoResult::failure(outcome.error);
    }
    const sim::FileTree::Found found = kernel->files.find_beneath(root->node(), relative_path, links);
    if (found.error != 0) {
        return IoResult::failure(found.error);
    }
    if (found.node->name_cold) {
        if (wait == DiskWait::never) {
            return IoResult::failure(EAGAIN);
        }
        found.node->name_cold = false;
        kernel->count_disk_wait();
    }
    if (!found.node->permitted) {
        return IoResult::failure(EACCES);
    }
    if (found.node->kind == NodeKind::socket) {
        return IoResult::failure(ENXIO);
    }
    return kernel->open(std::make_shared<sim::OpenFile>(found.node));
}

int file_info(int fd, FileInfo* info) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::file_info, fd);
    int error = 0;
    const sim::Description* description = kernel->find(fd, &error);
    if (description == nullptr) {
        return error;
    }
    if (outcome.error != 0) {
        return outcome.error;
    }
    *info = {};
    if (description->kind() == sim::DescriptionKind::file) {
        *info = static_cast<const sim::OpenFile*>(description)->node()->info();
    }
    return 0;
}

int list_directory(int fd, std::size_t limit, std::vector<DirectoryEntry>* entries, bool* complete) {
    const Scope kernel;
    entries->clear();
    *complete = true;
    const Outcome outcome = kernel->begin(Call::list_directory, fd);
    int error = 0;
    const sim::OpenFile* const directory = kernel->find_file(fd, &error);
    if (directory == nullptr) {
        return error == EBADF ? EBADF : ENOTDIR;
    }
    if (outcome.error != 0) {
        return outcome.error;
    }
    if (directory->node()->kind != NodeKind::directory) {
        return ENOTDIR;
    }
    // Backwards: file systems have an order of their own, and nobody is to rely on its being sorted.
    const auto& children = directory->node()->children;
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
        if (entries->size() == limit) {
            *complete = false;
            return 0;
        }
        entries->push_back({child->first, child->second->info(), child->second->kind == NodeKind::link});
    }
    return 0;
}

IoResult read_file(int fd, std::uint64_t offset, std::span<std::byte> buffer, DiskWait wait) {
    const Scope kernel;
    int error = 0;
    const sim::OpenFile* file = kernel->find_file(fd, &error);
    const std::uint64_t bytes =
        file == nullptr ? 0 : std::min<std::uint64_t>(buffer.size(), file->node()->size_from(offset));
    const Outcome outcome = kernel->begin(Call::read_file, fd, bytes);
    if (file == nullptr) {
        return IoResult::failure(error);
    }
    if (outcome.error != 0) {
        return IoResult::failure(outcome.error);
    }
    if (file->node()->kind == NodeKind::directory) {
        return IoResult::failure(EISDIR);
    }
    if (file->node()->kind != NodeKind::regular) {
        return IoResult::failure(ESPIPE);
    }
    if (outcome.most < buffer.size()) {
        buffer = buffer.first(static_cast<std::size_t>(outcome.most));
    }
    sim::FileNode& node = *file->node();
    const std::uint64_t end = offset + std::min<std::uint64_t>(buffer.size(), node.size_from(offset));
    if (wait == DiskWait::allowed) {
        kernel->count_disk_wait(node.warm(end));
    } else if (end > node.cold_from) {
        if (offset >= node.cold_from) {
            return IoResult::failure(EAGAIN);
        }
        buffer = buffer.first(static_cast<std::size_t>(node.cold_from - offset));
    }
    // The contract is in bytes; what a test supplies is in char.
    const std::span<char> chars(reinterpret_cast<char*>(buffer.data()), buffer.size());
    return IoResult::success(static_cast<std::int64_t>(file->node()->read(offset, chars)));
}

IoResult write_file(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
    const Scope kernel;
    int error = 0;
    const sim::OpenFile* file = kernel->find_file(fd, &error);
    const Outcome outcome = kernel->begin(Call::write_file, fd, bytes.size());
    if (file == nullptr) {
        return IoResult::failure(error);
    }
    if (!file->is_writable()) {
        return IoResult::failure(EBADF);
    }
    if (outcome.error != 0) {
        return IoResult::failure(outcome.error);
    }
    if (outcome.most < bytes.size()) {
        bytes = bytes.first(static_cast<std::size_t>(outcome.most));
    }
    file->node()->write(offset, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return IoResult::success(static_cast<std::int64_t>(bytes.size()));
}

// ---- Temporary files

IoResult create_temporary_file(const std::string& directory, std::string* name) {
    const Scope kernel;
    name->clear();
    const Outcome outcome = kernel->begin(Call::create_file, -1);
    if (outcome.error != 0) {
        return IoResult::failure(outcome.error);
    }
    const sim::FileTree::Found found = kernel->files.find(directory);
    if (found.error != 0) {
        return IoResult::failure(found.error);
    }
    if (found.node->kind != NodeKind::directory) {
        return IoResult::failure(ENOTDIR);
    }
    if (!found.node->permitted) {
        return IoResult::failure(EACCES);
    }
    const std::shared_ptr<sim::FileNode> node = kernel->files.make_nameless();
    const IoResult opened = kernel->open(std::make_shared<sim::OpenFile>(node, true));
    if (opened.ok() && kernel->files.nameless_forbidden()) {
        *name = directory + "/" + kernel->files.next_temporary_name();
        const int error = kernel->files.link(node, *name);
        sim::require(error == 0, "the name of a temporary file is taken by the test");
    }
    return opened;
}

int name_file(int fd, const std::string& name, const std::string& path) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::name_file, fd);
    int error = 0;
    const sim::OpenFile* file = kernel->find_file(fd, &error);
    if (file == nullptr) {
        return error;
    }
    if (outcome.error != 0) {
        return outcome.error;
    }
    error = kernel->files.link(file->node(), path);
    if (error == 0 && !name.empty()) {
        (void)kernel->files.remove(name);
    }
    return error;
}

void remove_file(const std::string& path) {
    const Scope kernel;
    kernel->count(Call::remove_file);
    (void)kernel->files.remove(path);
}

// The simulated disk has no such files: they are for people who look at a real server.
Result<int> open_to_append(const std::string& path) { return system_error(path + " cannot be written", ENOSYS); }

void append_line(int, std::string_view) {}

}  // namespace penstock::platform
