#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// A sentence of a file of columns.
struct TaggedSentence {
    std::vector<std::string> words;
    std::vector<std::string> tags;  // one a word, in IOB2
};

/// Columns are counted from 1; `tag_column` 0 is the last one.
struct TaggedColumns {
    std::int64_t word_column = 1;
    std::int64_t tag_column = 0;
};

/// The sentences of a file, plain or gzip. A line has its columns between tabs, or between blanks
/// where it has no tab; blank lines divide sentences. Lines that begin with -DOCSTART- are left
/// out. Throws MissingInput, IoError, or BadData that names file and line.
std::vector<TaggedSentence> read_tagged_text(const std::string& path, const TaggedColumns& columns);

}  // namespace hetseq
