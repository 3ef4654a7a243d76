// UploadedFile, and the part of MultipartReader that makes them.
#include "penstock/protocols/http/uploaded_file.h"

#include <cerrno>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "penstock/engine/awaitables.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/multipart.h"

namespace penstock {

namespace {

Error not_saved(const std::string& directory, const Error& reason);
Error not_named(const std::string& path, int code);

}  // namespace

// ---- Made ----------------------------------------------------------------------------------------------

Task<Result<UploadedFile>> MultipartReader::save(std::string directory) {
    UploadedFile file;
    const int error = co_await offload([&file, &directory] { return file.create(directory); });
    if (error != 0) {
        co_return not_saved(directory, system_error("create a file", error));
    }
    const Result<std::uint64_t> size = co_await spool([&file](std::string_view piece) { return file.append(piece); });
    if (!size.ok()) {
        co_return failed() ? size.error() : not_saved(directory, size.error());
    }
    co_return std::move(file);
}

int UploadedFile::create(const std::string& directory) {
    const IoResult created = platform::create_temporary_file(directory, &temporary_name_);
    if (created.ok()) {
        fd_ = static_cast<int>(created.count);
    }
    return created.error;
}

int UploadedFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const IoResult written = platform::write_file(fd_, size_bytes_, std::as_bytes(std::span(bytes)));
        if (!written.ok() || written.count <= 0) {
            return written.ok() ? EIO : written.error;  // no file takes nothing, and trying for ever is no answer to it
        }
        size_bytes_ += static_cast<std::uint64_t>(written.count);
        bytes.remove_prefix(static_cast<std::size_t>(written.count));
    }
    return 0;
}

// ---- Named ---------------------------------------------------------------------------------------------

Task<Result<void>> UploadedFile::persist(std::string path) {
    if (fd_ < 0 || is_persistent_) {
        co_return Error{"name an uploaded file \"" + path + "\": it has its name already, or was moved away"};
    }
    if (path.find('\0') != std::string::npos) {
        co_return not_named(path.substr(0, path.find('\0')), EINVAL);  // the kernel would see no more than that
    }
    const int error = co_await offload([this, &path] { return give_name(path); });
    if (error != 0) {
        co_return not_named(path, error);
    }
    co_return Result<void>();
}

// All of it on the pool's thread: the coroutine may be destroyed before it learns how this went.
int UploadedFile::give_name(const std::string& path) {
    const int error = platform::name_file(fd_, temporary_name_, path);
    if (error == 0) {
        is_persistent_ = true;
        temporary_name_.clear();
    }
    return error;
}

// ---- Moved and destroyed -------------------------------------------------------------------------------

UploadedFile::UploadedFile(UploadedFile&& other) noexcept { swap(other); }

UploadedFile& UploadedFile::operator=(UploadedFile&& other) noexcept {
    UploadedFile taken(std::move(other));
    swap(taken);
    return *this;
}

void UploadedFile::swap(UploadedFile& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(is_persistent_, other.is_persistent_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(temporary_name_, other.temporary_name_);
}

UploadedFile::~UploadedFile() { discard(); }

void UploadedFile::discard() {
    if (fd_ >= 0) {
        platform::close_descriptor(fd_);
    }
    if (!temporary_name_.empty()) {
        platform::remove_file(temporary_name_);
    }
}

namespace {

Error not_saved(const std::string& directory, const Error& reason) {
    return {"save a part of the form in the directory \"" + directory + "\": " + reason.message, reason.code};
}

Error not_named(const std::string& path, int code) {
    Error error = system_error("name an uploaded file \"" + path + "\"", code);
    switch (code) {
        case EEXIST: error.message += "; nothing is ever replaced, so choose another name"; break;
        case EXDEV: error.message += "; save it in a directory of the file system where it is to stay"; break;
        default: break;
    }
    return error;
}

}  // namespace

}  // namespace penstock
