#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/data/order/keyed_draws.hpp"

#include "token_documents.hpp"

namespace hetseq {

constexpr std::int64_t special_tokens_of_pair = 3;  // [CLS] first [SEP] second [SEP]

/// Two segments of a shard's tokens. Neither is empty.
struct SentencePair {
    IndexRange first{};
    IndexRange second{};
    bool is_random_next = false;  // the second does not follow the first
};

struct SentencePairOptions {
    std::int64_t most_tokens = 125;  // of both segments, at least 2
    double short_pair_prob = 0.1;    // of a document whose pairs have another, smaller target
};

struct SentencePairCounts {
    std::int64_t random_next = 0;
    std::int64_t random_next_of_own_document = 0;  // of these; there was no other one
    std::int64_t cut_pairs = 0;                    // that were too long
    std::int64_t cut_tokens = 0;                   // of these
};

/// Appends the pairs of one document for next-sentence prediction (Devlin et al. 2019, section 3.1
/// and appendix A.2; the algorithm of google-research's create_pretraining_data.py). Sentences fill
/// up to a target length and are divided at random into two segments. In half of the pairs, and
/// where there is a single sentence, the second segment comes from another document instead, and
/// the sentences that it replaces are used again.
void append_sentence_pairs(const TokenDocuments& documents,
                           std::int64_t document,
                           const SentencePairOptions& options,
                           KeyedDraws& draws,
                           std::vector<SentencePair>& pairs,
                           SentencePairCounts& counts);

}  // namespace hetseq
