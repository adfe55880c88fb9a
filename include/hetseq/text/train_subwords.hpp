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
    double character_coverage = 1;  // of the text's characters, rare ones left out
};

/// The names of `SubwordOptions::model_type` and `::normalization`.
const std::vector<std::string>& subword_model_types();
const std::vector<std::string>& subword_normalizations();

/// Trains a SentencePiece model on the lines that `next` gives until it returns false; gives its
/// bytes, for Vocabulary::parse. The same lines and options give the same bytes: the number of
/// threads is fixed and nothing is drawn. The text is kept in memory.
/// Throws BadConfig where the text does not suffice for `vocab_size`, or is too much for it.
std::string train_subwords(const SubwordOptions& options,
                           const std::function<bool(std::string& line)>& next);

}  // namespace hetseq
