#pragma once

#include <string>

#include <hdf5.h>

#include "hetseq/data/schema.hpp"

namespace hetseq {

/// Throws BadData where the open file at `path` lacks the attachment, or has other bytes than
/// `schema` says.
void check_attachment(hid_t file, const std::string& path, const AttachmentSchema& schema);

}  // namespace hetseq
