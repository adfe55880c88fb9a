#pragma once

#include <cstdint>
#include <string>

#include <hdf5.h>

#include "hetseq/data/schema.hpp"

namespace hetseq {

/// The bytes of attachment `name` of the first shard that `spec` names. It opens the file serially;
/// no other thread may use HDF5 meanwhile. Throws MissingInput, BadData or IoError.
std::string read_attachment(const std::string& spec, const std::string& name);

/// Throws BadData where the open file at `path` lacks the attachment, or has other bytes than
/// `schema` says.
void check_attachment(hid_t file, const std::string& path, const AttachmentSchema& schema);

}  // namespace hetseq
