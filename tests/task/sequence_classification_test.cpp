#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/parts.hpp"

#include "data/error_text.hpp"
#include "task/scorers/sequence_scorer.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

MicroBatch labelled(const at::Tensor& labels) {
    MicroBatch batch;
    batch.tensors["labels"] = labels;
    return batch;
}

ForwardResult answered(const at::Tensor& output) {
    ForwardResult result;
    result.output = output;
    return result;
}

at::Tensor numbers(const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong);
}

// scikit-learn 1.9.1: f1_score, f1_score(average="macro"), matthews_corrcoef.
TEST(LabelScorerTest, ScoresAreThoseOfScikitLearn) {
    const auto scorer = make_label_scorer(2);
    std::vector<double> sums(scorer->sums());

    scorer->add(labelled(numbers({0, 1, 1, 0, 1, 0})), answered(numbers({0, 1, 0, 0, 1, 1})), sums);
    scorer->add(labelled(numbers({0, 1, 1, 1})), answered(numbers({0, 1, 0, 1})), sums);

    EXPECT_THAT(label_score_names(2), ElementsAre("f1", "macro_f1", "matthews"));
    EXPECT_THAT(scorer->values(sums, {}),
                ElementsAre(DoubleNear(0.7272727272727273, 1e-12),
                            DoubleNear(0.696969696969697, 1e-12),
                            DoubleNear(0.408248290463863, 1e-12)));
}

TEST(LabelScorerTest, LabelsThatDoNotOccurDoNotCount) {
    const auto scorer = make_label_scorer(5);
    std::vector<double> sums(scorer->sums());

    scorer->add(labelled(numbers({0, 2, 1, 3, 1, 0, 2, 2})),
                answered(numbers({0, 2, 2, 0, 1, 1, 2, 0})),
                sums);

    EXPECT_THAT(label_score_names(5), ElementsAre("macro_f1", "matthews"));
    EXPECT_THAT(scorer->values(sums, {}),
                ElementsAre(DoubleNear(0.39166666666666666, 1e-12),
                            DoubleNear(0.29576024087563857, 1e-12)));
}

TEST(LabelScorerTest, WithoutDenominatorsScoresAreZero) {
    const auto scorer = make_label_scorer(2);
    std::vector<double> sums(scorer->sums());

    scorer->add(labelled(numbers({0, 0})), answered(numbers({0, 0})), sums);

    EXPECT_THAT(scorer->values(sums, {}), ElementsAre(0, 1, 0));
}

// scipy 1.17.1: pearsonr, spearmanr.
TEST(NumberScorerTest, CorrelationsAreThoseOfScipyInAnyOrder) {
    const auto first = make_number_scorer();
    const auto second = make_number_scorer();
    first->add(labelled(at::tensor({1.0, 2.5, 2.5}, at::kDouble)),
               answered(at::tensor({1.25, 2.0, 3.5}, at::kFloat)),
               {});
    second->add(labelled(at::tensor({4.0, 0.5, 3.0}, at::kDouble)),
                answered(at::tensor({3.5, 0.75, 2.0}, at::kFloat)),
                {});
    const std::vector<std::string> kept{second->kept(), first->kept()};

    EXPECT_THAT(number_score_names(), ElementsAre("pearson", "spearman"));
    EXPECT_THAT(
        first->values({}, kept),
        ElementsAre(DoubleNear(0.8328244313549669, 1e-12), DoubleNear(0.8060599359358183, 1e-12)));
}

TEST(NumberScorerTest, ConstantsHaveNoCorrelationAndNansAreSeen) {
    const auto scores = [](double first, double second) {
        const auto scorer = make_number_scorer();
        scorer->add(labelled(at::tensor({1.0, 3.0}, at::kDouble)),
                    answered(at::tensor({first, second}, at::kDouble)),
                    {});
        return scorer->values({}, std::vector<std::string>{scorer->kept()});
    };

    EXPECT_THAT(scores(2, 2), ElementsAre(0, 0));
    EXPECT_TRUE(std::isnan(scores(std::numeric_limits<double>::quiet_NaN(), 2).front()));
}

TEST(SequenceClassificationTest, BatchesHaveSegmentsOfPairs) {
    const auto collator = builtin_parts().batchings.get("sequence-classification")({});
    TensorDict rows{{"input_ids", at::tensor({2, 5, 3, 2, 7, 3, 9, 3}, at::kInt)},
                    {"input_ids_offsets", at::tensor({0, 3, 8}, at::kLong)},
                    {"labels", at::tensor({1, 0}, at::kInt)}};

    const MicroBatch single = collator->collate(rows, at::tensor({0, 1}, at::kLong));
    rows["second_segments"] = at::tensor({3, 3}, at::kInt);
    const MicroBatch pairs = collator->collate(rows, at::tensor({0, 1}, at::kLong));

    EXPECT_TRUE(single.tensors.at("input_ids")
                    .equal(at::tensor({2, 5, 3, 0, 0, 2, 7, 3, 9, 3}, at::kLong).view({2, 5})));
    EXPECT_TRUE(single.tensors.at("attention_mask")
                    .equal(at::tensor({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, at::kLong).view({2, 5})));
    EXPECT_TRUE(
        single.tensors.at("segment_ids").equal(at::zeros({2, 5}, at::TensorOptions(at::kLong))));
    EXPECT_TRUE(pairs.tensors.at("segment_ids")
                    .equal(at::tensor({0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, at::kLong).view({2, 5})));
    EXPECT_TRUE(single.tensors.at("labels").equal(at::tensor({1, 0}, at::kLong)));
    EXPECT_EQ(single.weights, std::vector<double>{2});
}

class ClassifiedDataTest : public testing::Test {
protected:
    PartOptions options(const std::string& labels, bool is_number, bool is_pair) {
        std::vector<RaggedShardWriter::Field> fields{{"input_ids", 6},
                                                     {"labels", is_number ? 0 : 3, false}};
        if (is_pair)
            fields.push_back({"second_segments", 8, false});
        RaggedShardWriter writer{folder_ / "data.h5", fields, ShardFormat::large_attributes};
        writer.append(0, std::vector<std::int32_t>{2, 5, 3, 3});
        if (is_number)
            writer.append_number(1, 2.5);
        else
            writer.append(1, std::vector<std::int32_t>{1});
        if (is_pair)
            writer.append(2, std::vector<std::int32_t>{3});
        writer.attach_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n");
        writer.attach_text("tokenizer_config.json", "{}");
        writer.attach_text("labels.txt", labels);
        writer.finish();
        writer.commit();
        return {.model_config = "tiny", .data = folder_ / "data.h5"};
    }

    static std::shared_ptr<Model> model(const PartOptions& options) {
        return builtin_parts().models.get("bert-sequence-classifier")(options);
    }
    static CorpusSchema schema(const PartOptions& options) {
        return builtin_parts().datasets.get("sequence-classification")(options);
    }

    test::TemporaryFolder folder_;
};

TEST_F(ClassifiedDataTest, LabelsMakeAClassifier) {
    const PartOptions given = options("bad\nfair\ngood\n", false, true);

    const CorpusSchema corpus = schema(given);
    const auto classifier = model(given);

    EXPECT_EQ(classifier->named_parameters()["classifier.weight"].size(0), 3);
    EXPECT_EQ(classifier->loss_terms(), std::vector<std::string>{"nll"});
    EXPECT_THAT(classifier->scores(), ElementsAre("macro_f1", "matthews"));
    ASSERT_EQ(corpus.fields.size(), 3U);
    EXPECT_EQ(corpus.fields[1].maximum, 2);
    EXPECT_TRUE(corpus.fields[1].is_target);
    EXPECT_EQ(corpus.fields[2].name, "second_segments");
    EXPECT_EQ(corpus.attachments.size(), 3U);
}

TEST_F(ClassifiedDataTest, OneLabelIsANumber) {
    const PartOptions given = options("number\n", true, false);

    const CorpusSchema corpus = schema(given);
    const auto regression = model(given);

    EXPECT_EQ(regression->loss_terms(), std::vector<std::string>{"mse"});
    EXPECT_THAT(regression->scores(), ElementsAre("pearson", "spearman"));
    ASSERT_EQ(corpus.fields.size(), 2U);
    EXPECT_EQ(corpus.fields[1].type, ElementType::float64);
}

TEST_F(ClassifiedDataTest, NumbersHaveNoClassWeights) {
    PartOptions given = options("number\n", true, false);
    given.own = {{"class-weights", "number=2"}};

    EXPECT_THAT(test::thrown_by([&] { model(given); }).text,
                HasSubstr("--class-weights for numbers"));
}

}  // namespace
}  // namespace hetseq
