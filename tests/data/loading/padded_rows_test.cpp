#include "hetseq/data/loading/padded_rows.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

at::Tensor places(const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong);
}

// Rows of 4, 1 and 3 tokens.
at::Tensor mask() {
    return at::tensor({1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0}, at::kLong).view({3, 4});
}

TEST(PaddedRowsTest, TheTokensOfRowsAreNoted) {
    MicroBatch batch;

    note_row_lengths(batch, mask(), places({0, 4, 10}));

    EXPECT_THAT(batch.row_lengths, ElementsAre(4, 1, 3));
    EXPECT_TRUE(batch.tensors.at("token_places").equal(places({0, 1, 2, 3, 4, 8, 9, 10})));
}

TEST(PaddedRowsTest, WholeRowsNeedNoPlaces) {
    MicroBatch batch;

    note_row_lengths(batch, at::ones({2, 3}, at::kLong), places({5}));

    EXPECT_THAT(batch.row_lengths, ElementsAre(3, 3));
    EXPECT_THAT(batch.tensors, IsEmpty());
}

TEST(PaddedRowsTest, NothingIsNotedWhereRowsAreNotTokensAndThenPadding) {
    at::Tensor gap = mask(), nothing = mask();
    gap[1][2] = 1;
    nothing[1].zero_();
    MicroBatch batch;

    note_row_lengths(batch, gap, places({}));
    note_row_lengths(batch, nothing, places({}));
    note_row_lengths(batch, mask(), places({0, 5}));  // padding that is needed

    EXPECT_THAT(batch.row_lengths, IsEmpty());
    EXPECT_THAT(batch.tensors, IsEmpty());
}

}  // namespace
}  // namespace hetseq
