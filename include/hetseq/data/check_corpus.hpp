#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/hdf5/exact_number.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class HostComm;

/// The contents of a corpus, as found by reading it.
struct CorpusReport {
    struct Shard {
        std::string path;
        std::int64_t samples = 0;
    };
    struct Field {
        std::string name;
        std::string type;                     // as stored: "int32"; several where shards differ
        std::vector<std::int64_t> row_shape;  // {-1} where the field is ragged
        Number sum{};                         // of all values
        Number minimum{};                     // 0 where rows have no values
        Number maximum{};
        // Only ragged fields have these.
        bool is_ragged = false;
        std::int64_t values = 0;
        std::int64_t longest = 0;  // row [values]
    };
    std::vector<Shard> shards;  // in file-name order
    std::int64_t samples = 0;
    std::vector<Field> fields;  // in the schema's order
};

/// Collective over `world`. Reads the whole corpus, each block on one rank. It checks the headers,
/// then the offsets of ragged fields, then the values against `schema`. All ranks throw the first
/// error in file order: BadData, MissingInput or IoError.
CorpusReport check_corpus(const HostComm& world,
                          const std::string& spec,
                          const CorpusSchema& schema);

}  // namespace hetseq
