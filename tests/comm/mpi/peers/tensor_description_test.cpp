#include "comm/mpi/peers/tensor_description.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

std::vector<TensorDescription> some_tensors() {
    return {{c10::kFloat, true, {3, 0, 7}}, {}, {c10::kBool, false, {}}, {c10::kLong, false, {1}}};
}

TEST(TensorDescriptionTest, WordsTellAll) {
    EXPECT_EQ(from_words(to_words(some_tensors())), some_tensors());
    EXPECT_EQ(from_words(to_words({})), std::vector<TensorDescription>{});
}

TEST(TensorDescriptionTest, FewTensorsFillTheHeaderAndManyNeedMore) {
    const std::vector<TensorDescription> many(100, {c10::kHalf, true, {1, 2, 3, 4, 5}});

    EXPECT_EQ(to_words(some_tensors()).size(), header_words);
    EXPECT_EQ(to_words(many).size(), 2 + 100 * 8U);
    EXPECT_EQ(from_words(to_words(many)), many);
}

TEST(TensorDescriptionTest, TheHeaderTellsHowManyWordsThereAre) {
    const std::vector<std::int64_t> words =
        to_words(std::vector<TensorDescription>(100, {c10::kHalf, true, {1, 2}}));

    EXPECT_EQ(word_count(std::span{words}.first(header_words)), words.size());
}

TEST(TensorDescriptionTest, OtherWordsAreRefused) {
    std::vector<std::int64_t> words = to_words(some_tensors());
    const std::span<const std::int64_t> all = words;

    EXPECT_THROW(from_words(all.first(10)), InternalError);
    EXPECT_THROW(word_count(std::vector<std::int64_t>{3}), InternalError);
    words[2] = 1000;
    EXPECT_THROW(from_words(words), InternalError);
}

}  // namespace
}  // namespace hetseq
