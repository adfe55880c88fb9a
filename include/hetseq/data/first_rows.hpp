#pragma once

#include <cstdint>
#include <string>

#include "hetseq/data/loaded_share.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

/// Up to `most` rows of the first shard of `spec` that has any, before a corpus is open, with the
/// ids of its first samples. It opens the file serially; no other thread may use HDF5 meanwhile.
/// Throws as `read_shard_header` and `expand_shard_spec` do, and IoError; BadData where no shard
/// has a sample.
LoadedShare::Rows first_rows(const std::string& spec,
                             const CorpusSchema& schema,
                             std::int64_t most);

}  // namespace hetseq
