#pragma once

#include <string>

namespace hetseq {

/// The bytes of attachment `name` of the first shard that `spec` names. It opens the file serially;
/// no other thread may use HDF5 meanwhile. Throws MissingInput, BadData or IoError.
std::string read_attachment(const std::string& spec, const std::string& name);

}  // namespace hetseq
