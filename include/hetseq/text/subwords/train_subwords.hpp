#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

struct SubwordOptions {
    std::string model_type = "bpe";  // or "unigram"
    std::int64_t vocab_size = 0;     // ids, the three special ones included
    /// A rule of SentencePiece: nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity.
    std::string normalization = "nmt_nfkc";
    double character_coverage = 1;            // of the text's characters, rare ones left out
    std::int64_t max_sentence_length = 4192;  // [bytes]: longer lines are left out
};

struct TrainedSubwords {
    std::string model;          // its bytes, for Vocabulary::parse
    std::int64_t lines = 0;     // given, empty ones aside
    std::int64_t too_long = 0;  // of these, left out
    std::int64_t reserved = 0;  // left out for a U+2585, which SentencePiece uses itself
};

/// The names of `SubwordOptions::model_type` and `::normalization`.
const std::vector<std::string>& subword_model_types();
const std::vector<std::string>& subword_normalizations();

/// Trains a SentencePiece model on the lines that `next` gives until it returns false. The same
/// lines and options give the same bytes: the number of threads is fixed and nothing is drawn. The
/// text is kept in memory.
/// Throws BadConfig where the text does not suffice for `vocab_size`, or is too much for it.
TrainedSubwords train_subwords(const SubwordOptions& options,
                               const std::function<bool(std::string& line)>& next);

}  // namespace hetseq
