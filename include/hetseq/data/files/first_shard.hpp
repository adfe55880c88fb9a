#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

// What the first shard of a corpus says before the corpus is open. These open it serially; no other
// thread may use HDF5 meanwhile.

/// The path of the first shard that `spec` names. Throws as `expand_shard_spec` and
/// `stamp_readable_file`, and so do the others.
std::string first_shard(const std::string& spec);

/// True if the first shard holds the dataset `name`; false where it cannot be opened as HDF5, which
/// opening the corpus reports.
bool first_shard_holds(const std::string& spec, const std::string& name);

/// The integers of the first rows of the first shard's dataset `name`, which has one or two
/// dimensions: whole rows, `most` integers together at the most. Throws BadData where it holds no
/// such dataset, and IoError where that cannot be read.
std::vector<std::int64_t> read_first_integers(const std::string& spec,
                                              const std::string& name,
                                              std::int64_t most);

}  // namespace hetseq
