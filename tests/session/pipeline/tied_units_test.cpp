#include "session/pipeline/tied_units.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/quantity.hpp"
#include "hetseq/model/bert/bert.hpp"
#include "hetseq/model/model.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The vocabulary head predicts with the embeddings of words.
TEST(TiedUnitsTest, ABertTiesItsFirstUnitAndItsLast) {
    const std::shared_ptr<Model> model = make_bert(bert_config("tiny"));
    const std::size_t last = model->chain().size() - 1;
    std::int64_t elements = 0;
    for (const auto& [name, parameter] : model->named_parameters())
        if (name.find("word_embeddings") != std::string::npos)
            elements += parameter.numel();

    std::vector<double> filled(last + 1, 1);
    filled.front() = 0.25;

    const auto tied = tied_units(*model, at::kFloat, filled);

    ASSERT_EQ(tied.size(), 1U);
    EXPECT_THAT(tied[0].units, ElementsAre(0, last));
    EXPECT_DOUBLE_EQ(tied[0].gradients_mb, 4 * static_cast<double>(elements) / bytes_of_mib);
    EXPECT_DOUBLE_EQ(tied_units(*model, at::kDouble, filled)[0].gradients_mb,
                     2 * tied[0].gradients_mb);
    EXPECT_THAT(tied[0].filled, ElementsAre(0.25, 1));
}

TEST(TiedUnitsTest, WhatIsNotTrainedIsNotSummed) {
    const std::shared_ptr<Model> model = make_bert(bert_config("tiny"));
    for (const auto& [name, parameter] : model->named_parameters())
        parameter.set_requires_grad(false);

    EXPECT_THAT(tied_units(*model, at::kFloat, std::vector<double>(model->chain().size(), 1)),
                IsEmpty());
}

}  // namespace
}  // namespace hetseq
