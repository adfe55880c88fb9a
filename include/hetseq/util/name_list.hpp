#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hetseq {

/// Lists of names of files, with commas between them. In a name, a backslash before a comma, a
/// bracket, *, ? or a backslash makes it part of the name.

/// `name` with backslashes before those characters.
std::string escaped_name(const std::string& name);

/// `name` without them.
std::string unescaped_name(const std::string& name);

/// True if `name` has *, ? or [ without a backslash.
bool is_pattern(const std::string& name);

/// The names in `list`, blanks around each removed, escaped as there. A comma without a backslash
/// is part of a name too where `is_there` holds for the whole list, or only for a name with commas:
/// "lr=0.1,bs=2" is a folder if it exists.
std::vector<std::string> split_names(const std::string& list,
                                     const std::function<bool(const std::string&)>& is_there);

/// The same for names of files, none of which is a pattern; not escaped any more.
std::vector<std::string> split_file_names(const std::string& list);

}  // namespace hetseq
