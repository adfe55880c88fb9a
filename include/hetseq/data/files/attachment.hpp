#pragma once

#include <optional>
#include <string>

namespace hetseq {

/// The bytes of attachment `name` of the first shard that `spec` names. It opens the file serially;
/// no other thread may use HDF5 meanwhile. Throws MissingInput, BadData or IoError.
std::string read_attachment(const std::string& spec, const std::string& name);

/// The same as `read_attachment` of a text attribute of the file; nothing where it has none, or
/// where it cannot be opened as HDF5, which opening the corpus reports.
std::optional<std::string> read_attached_text(const std::string& spec, const std::string& name);
/// The same for a text that must be there. Throws as `read_attachment`.
std::string read_required_text(const std::string& spec, const std::string& name);

}  // namespace hetseq
