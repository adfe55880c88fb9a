#include "prepare/bert/sentence_pairs.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

// Documents of sentences of these lengths; their tokens are 0, 1, 2 and so on.
TokenDocuments documents_of(const std::vector<std::vector<std::int64_t>>& lengths) {
    TokenDocuments documents;
    std::int32_t next = 0;
    for (const auto& document : lengths) {
        for (const std::int64_t length : document) {
            std::vector<std::int32_t> sentence(static_cast<std::size_t>(length));
            std::iota(sentence.begin(), sentence.end(), next);
            next += static_cast<std::int32_t>(length);
            documents.add_sentence(sentence);
        }
        documents.end_document();
    }
    return documents;
}

struct Made {
    std::vector<SentencePair> pairs;
    SentencePairCounts counts;
};

Made make(const TokenDocuments& documents,
          std::int64_t document,
          std::uint64_t key,
          const SentencePairOptions& options) {
    Made made;
    KeyedDraws draws{key};
    append_sentence_pairs(documents, document, options, draws, made.pairs, made.counts);
    return made;
}

IndexRange tokens_of(const TokenDocuments& documents, std::int64_t document) {
    const IndexRange sentences = documents.sentences_of(document);
    return {documents.begin_of(sentences.begin), documents.begin_of(sentences.end)};
}

bool holds(const IndexRange& outer, const IndexRange& inner) {
    return inner.begin >= outer.begin && inner.end <= outer.end;
}

TEST(TokenDocumentsTest, SentencesAndDocumentsWithoutTokensAreLeftOut) {
    TokenDocuments documents;
    documents.add_sentence({});
    const bool empty_one = documents.end_document();
    documents.add_sentence(std::vector<std::int32_t>{7, 8});
    documents.add_sentence({});
    documents.add_sentence(std::vector<std::int32_t>{9});
    const bool full_one = documents.end_document();

    EXPECT_FALSE(empty_one);
    EXPECT_TRUE(full_one);
    ASSERT_EQ(documents.size(), 1);
    EXPECT_EQ(documents.sentences_of(0), (IndexRange{0, 2}));
    EXPECT_EQ(documents.begin_of(1), 2);
    EXPECT_THAT(documents.tokens(), testing::ElementsAre(7, 8, 9));
}

TEST(SentencePairsTest, NoSegmentIsEmptyAndNoPairTooLong) {
    const TokenDocuments documents = documents_of(
        {{3, 1, 9, 40, 2, 2, 2}, {1}, {100}, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, {1, 1}});
    for (std::uint64_t key = 0; key < 300; ++key)
        for (std::int64_t document = 0; document < documents.size(); ++document) {
            const Made made = make(documents, document, key, {.most_tokens = 20});
            ASSERT_FALSE(made.pairs.empty());
            for (const SentencePair& pair : made.pairs) {
                EXPECT_GE(pair.first.size(), 1);
                EXPECT_GE(pair.second.size(), 1);
                EXPECT_LE(pair.first.size() + pair.second.size(), 20);
                EXPECT_TRUE(holds(tokens_of(documents, document), pair.first));
            }
        }
}

TEST(SentencePairsTest, ANextSegmentFollowsAndARandomOneIsOfAnotherDocument) {
    const TokenDocuments documents =
        documents_of({{4, 4, 4, 4, 4, 4, 4, 4, 4}, {4, 4, 4, 4}, {4, 4, 4, 4, 4}});
    int random = 0, next = 0;
    for (std::uint64_t key = 0; key < 300; ++key)
        for (const SentencePair& pair : make(documents, 0, key, {.most_tokens = 12}).pairs)
            if (pair.is_random_next) {
                ++random;
                EXPECT_FALSE(holds(tokens_of(documents, 0), pair.second));
            } else {
                ++next;
                EXPECT_EQ(pair.second.begin, pair.first.end);
            }
    EXPECT_GT(random, 300);
    EXPECT_GT(next, 300);
}

// Without cuts, the sentences of the first segments and of next ones are the document's, each once.
TEST(SentencePairsTest, SentencesThatARandomOneReplacesAreUsedAgain) {
    const TokenDocuments documents =
        documents_of({{2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2}, {1}, {1}, {1}});
    for (std::uint64_t key = 0; key < 100; ++key) {
        const Made made = make(documents, 0, key, {.most_tokens = 12, .short_pair_prob = 0});
        if (made.counts.cut_pairs > 0)
            continue;
        std::int64_t at = 0;
        for (const SentencePair& pair : made.pairs) {
            EXPECT_EQ(pair.first.begin, at);
            at = pair.is_random_next ? pair.first.end : pair.second.end;
        }
        EXPECT_EQ(at, tokens_of(documents, 0).end);
    }
}

TEST(SentencePairsTest, ASingleSentenceGetsARandomNext) {
    const TokenDocuments documents = documents_of({{5}, {6}});

    const Made made = make(documents, 0, 1, {});

    ASSERT_EQ(made.pairs.size(), 1U);
    EXPECT_TRUE(made.pairs[0].is_random_next);
    EXPECT_EQ(made.pairs[0].first, (IndexRange{0, 5}));
    EXPECT_EQ(made.pairs[0].second, (IndexRange{5, 11}));
}

TEST(SentencePairsTest, WithoutAnotherDocumentTheOwnOneIsTaken) {
    const TokenDocuments documents = documents_of({{5}});

    const Made made = make(documents, 0, 1, {});

    ASSERT_EQ(made.pairs.size(), 1U);
    EXPECT_EQ(made.counts.random_next_of_own_document, 1);
    EXPECT_EQ(made.pairs[0].second, (IndexRange{0, 5}));
}

TEST(SentencePairsTest, CutsAreCountedAndTakenFromTheLongerSegment) {
    const TokenDocuments documents = documents_of({{30}, {4}});

    const Made made = make(documents, 0, 3, {.most_tokens = 10, .short_pair_prob = 0});

    ASSERT_EQ(made.pairs.size(), 1U);
    EXPECT_EQ(made.counts.cut_pairs, 1);
    EXPECT_EQ(made.counts.cut_tokens, 24);
    EXPECT_EQ(made.pairs[0].first.size(), 6);
    EXPECT_EQ(made.pairs[0].second, (IndexRange{30, 34}));
}

TEST(SentencePairsTest, AShortTargetMakesMorePairs) {
    std::vector<std::int64_t> sentences(200, 3);
    const TokenDocuments documents = documents_of({sentences, {3, 3}});
    std::size_t full = 0, any = 0;
    for (std::uint64_t key = 0; key < 50; ++key) {
        full += make(documents, 0, key, {.most_tokens = 60, .short_pair_prob = 0}).pairs.size();
        any += make(documents, 0, key, {.most_tokens = 60, .short_pair_prob = 1}).pairs.size();
    }
    EXPECT_GT(any, 3 * full / 2);
}

TEST(SentencePairsTest, TheKeyDecidesAll) {
    const TokenDocuments documents = documents_of({{4, 4, 4, 4, 4, 4, 4}, {3, 3, 3}, {9, 9}});
    const auto same = [](const Made& a, const Made& b) {
        return std::equal(a.pairs.begin(),
                          a.pairs.end(),
                          b.pairs.begin(),
                          b.pairs.end(),
                          [](const SentencePair& x, const SentencePair& y) {
                              return x.first == y.first && x.second == y.second;
                          });
    };
    const SentencePairOptions options{.most_tokens = 12};

    EXPECT_TRUE(same(make(documents, 0, 5, options), make(documents, 0, 5, options)));
    EXPECT_FALSE(same(make(documents, 0, 5, options), make(documents, 0, 6, options)));
}

}  // namespace
}  // namespace hetseq
