#include "sentence_pairs.hpp"

namespace hetseq {

namespace {

constexpr double random_next_prob = 0.5;
constexpr int most_tries = 10;  // to find another document

// Of tokens: sentences [first, last).
IndexRange tokens_of(const TokenDocuments& documents, std::int64_t first, std::int64_t last) {
    return {documents.begin_of(first), documents.begin_of(last)};
}

std::int64_t other_document(const TokenDocuments& documents,
                            std::int64_t document,
                            KeyedDraws& draws) {
    std::int64_t other = document;
    for (int i = 0; i < most_tries && other == document; ++i)
        other = draws.below(documents.size());
    return other;
}

// Sentences of a document from a random one on, until they have `target` tokens.
IndexRange random_segment(const TokenDocuments& documents,
                          std::int64_t document,
                          std::int64_t target,
                          KeyedDraws& draws) {
    const IndexRange sentences = documents.sentences_of(document);
    const std::int64_t first = sentences.begin + draws.below(sentences.size());
    std::int64_t last = first + 1;
    while (last < sentences.end && tokens_of(documents, first, last).size() < target)
        ++last;
    return tokens_of(documents, first, last);
}

// Takes tokens from the longer segment, each from its front or its back.
void cut(SentencePair& pair, std::int64_t most, KeyedDraws& draws, SentencePairCounts& counts) {
    const std::int64_t surplus = pair.first.size() + pair.second.size() - most;
    if (surplus <= 0)
        return;
    ++counts.cut_pairs;
    counts.cut_tokens += surplus;
    for (std::int64_t i = 0; i < surplus; ++i) {
        IndexRange& longer = pair.first.size() > pair.second.size() ? pair.first : pair.second;
        if (draws.fraction() < 0.5)
            ++longer.begin;
        else
            --longer.end;
    }
}

}  // namespace

void append_sentence_pairs(const TokenDocuments& documents,
                           std::int64_t document,
                           const SentencePairOptions& options,
                           KeyedDraws& draws,
                           std::vector<SentencePair>& pairs,
                           SentencePairCounts& counts) {
    const IndexRange sentences = documents.sentences_of(document);
    std::int64_t target = options.most_tokens;
    if (draws.fraction() < options.short_pair_prob)
        target = 2 + draws.below(options.most_tokens - 1);
    std::int64_t begin = sentences.begin;  // of the sentences that wait for a pair
    for (std::int64_t last = begin; last < sentences.end; ++last) {
        const bool is_full = tokens_of(documents, begin, last + 1).size() >= target;
        if (!is_full && last + 1 < sentences.end)
            continue;
        const std::int64_t waiting = last + 1 - begin;
        const std::int64_t middle = begin + 1 + (waiting > 1 ? draws.below(waiting - 1) : 0);
        SentencePair pair{.first = tokens_of(documents, begin, middle)};
        pair.is_random_next = waiting == 1 || draws.fraction() < random_next_prob;
        if (pair.is_random_next) {
            const std::int64_t other = other_document(documents, document, draws);
            pair.second = random_segment(documents, other, target - pair.first.size(), draws);
            last = middle - 1;
            ++counts.random_next;
            counts.random_next_of_own_document += other == document ? 1 : 0;
        } else {
            pair.second = tokens_of(documents, middle, last + 1);
        }
        cut(pair, options.most_tokens, draws, counts);
        pairs.push_back(pair);
        begin = last + 1;
    }
}

}  // namespace hetseq
