// Internal.
// What the options of `static_files` say about a file by its name, and what is wrong with them. Plain functions over
// constant options; any thread. They open nothing: whether a page exists `static_files` finds out.
#pragma once

#include <string>
#include <string_view>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock {

// The first option that cannot be meant, named with what to write instead.
[[nodiscard]] Result<void> check_static_file_options(const StaticFileOptions& options);

// Whether every segment is a name that may be served. The last one may be empty: that asks for the index.
[[nodiscard]] bool is_servable(std::string_view name, bool hidden_files);

// The Content-Type of the file with that path. Lives as long as the options and `*room`, in which it may be made.
[[nodiscard]] std::string_view content_type_of(const StaticFileOptions& options, std::string_view path, std::string* room);

// The value of the first rule whose pattern fits; empty when none does.
[[nodiscard]] std::string_view cache_control_of(const StaticFileOptions& options, std::string_view path);

// '*' stands for any run of characters, '/' among them, and '?' for any one; everything else for itself.
[[nodiscard]] bool matches_glob(std::string_view pattern, std::string_view text);

// Whether the fallback of a program with one page answers for a path that has no file: a last name with a dot asks for a
// file, whose absence must not look like a page.
[[nodiscard]] bool wants_spa_fallback(std::string_view path);

}  // namespace penstock
