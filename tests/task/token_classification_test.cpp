#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/task/parts.hpp"

#include "data/error_text.hpp"
#include "task/scorers/entity_scorer.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

MicroBatch labelled_words(const std::vector<std::int64_t>& labels,
                          const std::vector<std::int64_t>& counts) {
    MicroBatch batch;
    batch.tensors["labels"] = at::tensor(labels, at::kLong);
    batch.tensors["word_counts"] = at::tensor(counts, at::kLong);
    return batch;
}

TEST(EntityScorerTest, SumsOverSentencesAndBatches) {
    const TagSet tags{{"O", "B-A", "I-A"}, "tags"};
    const auto scorer = make_entity_scorer(tags);
    std::vector<double> sums(scorer->sums());
    ForwardResult first, second;
    first.output = at::tensor({1, 2, 1}, at::kLong);
    second.output = at::tensor({2, 0}, at::kLong);

    scorer->add(labelled_words({1, 2, 2}, {2, 1}), first, sums);  // "B-A I-A", "I-A"
    scorer->add(labelled_words({1, 1}, {2}), second, sums);       // "B-A B-A"

    // seqeval 1.2.2 on [[B-A I-A], [I-A], [B-A B-A]] and [[B-A I-A], [B-A], [I-A O]].
    EXPECT_THAT(
        entity_score_names(),
        ElementsAre("precision", "recall", "f1", "strict_precision", "strict_recall", "strict_f1"));
    EXPECT_THAT(scorer->values(sums, {}),
                ElementsAre(DoubleNear(1, 1e-12),
                            DoubleNear(3.0 / 4, 1e-12),
                            DoubleNear(6.0 / 7, 1e-12),
                            DoubleNear(1.0 / 2, 1e-12),
                            DoubleNear(1.0 / 3, 1e-12),
                            DoubleNear(2.0 / 5, 1e-12)));
}

TEST(TokenClassificationTest, BatchesTellWhereWordsBegin) {
    const auto collator = builtin_parts().batchings.get("token-classification")({});

    const MicroBatch batch =
        collator->collate({{"input_ids", at::tensor({2, 5, 3, 2, 7, 8, 9, 3}, at::kInt)},
                           {"input_ids_offsets", at::tensor({0, 3, 8}, at::kLong)},
                           {"words", at::tensor({1, 1, 3}, at::kInt)},
                           {"words_offsets", at::tensor({0, 1, 3}, at::kLong)},
                           {"labels", at::tensor({4, 0, 1}, at::kInt)},
                           {"labels_offsets", at::tensor({0, 1, 3}, at::kLong)}},
                          at::tensor({0, 1}, at::kLong));

    EXPECT_TRUE(batch.tensors.at("input_ids")
                    .equal(at::tensor({2, 5, 3, 0, 0, 2, 7, 8, 9, 3}, at::kLong).view({2, 5})));
    EXPECT_TRUE(batch.tensors.at("attention_mask")
                    .equal(at::tensor({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, at::kLong).view({2, 5})));
    EXPECT_TRUE(batch.tensors.at("word_positions").equal(at::tensor({1, 6, 8}, at::kLong)));
    EXPECT_TRUE(batch.tensors.at("word_counts").equal(at::tensor({1, 2}, at::kLong)));
    EXPECT_TRUE(batch.tensors.at("labels").equal(at::tensor({4, 0, 1}, at::kLong)));
    EXPECT_EQ(batch.weights, std::vector<double>{3});
}

class TaggedDataTest : public testing::Test {
protected:
    PartOptions options() {
        RaggedShardWriter writer{folder_ / "data.h5",
                                 {{"input_ids", 6}, {"words", 8}, {"labels", 3}},
                                 ShardFormat::large_attributes};
        writer.append(0, std::vector<std::int32_t>{2, 5, 3});
        writer.append(1, std::vector<std::int32_t>{1});
        writer.append(2, std::vector<std::int32_t>{1});
        writer.attach_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n");
        writer.attach_text("tokenizer_config.json", "{}");
        writer.attach_text("labels.txt", "O\nB-A\nI-A\n");
        writer.finish();
        writer.commit();
        return {.model_config = "tiny", .data = folder_ / "data.h5"};
    }

    static std::shared_ptr<Model> model(const PartOptions& options) {
        return builtin_parts().models.get("bert-token-classifier")(options);
    }

    test::TemporaryFolder folder_;
};

TEST_F(TaggedDataTest, LabelsOfTheDataMakeTheHead) {
    const PartOptions given = options();

    const CorpusSchema schema = builtin_parts().datasets.get("token-classification")(given);
    const auto classifier = model(given);

    EXPECT_EQ(classifier->named_parameters()["classifier.weight"].size(0), 3);
    ASSERT_EQ(schema.fields.size(), 3U);
    EXPECT_EQ(schema.fields[2].maximum, 2);
    EXPECT_TRUE(schema.fields[2].is_target);
    EXPECT_EQ(schema.attachments.size(), 3U);
    const std::vector<CompanionFile> files = classifier->companion_files();
    EXPECT_EQ(files.back().name, "labels.txt");
    EXPECT_EQ(files.back().content, "O\nB-A\nI-A\n");
}

TEST_F(TaggedDataTest, LabelsThatContradictEachOtherAreRefused) {
    PartOptions given = options();
    given.init_model = folder_.path().string();
    folder_.write("labels.txt", "O\nB-B\n");

    EXPECT_THAT(test::thrown_by([&] { model(given); }).text,
                HasSubstr("are not those of the data"));
    EXPECT_THAT(test::thrown_by([] { model({.model_config = "tiny"}); }).text,
                HasSubstr("--data is missing"));
}

TEST_F(TaggedDataTest, LabelsOfTransformersMustBeThoseOfTheDataInTheirOrder) {
    PartOptions given = options();
    given.init_model = folder_.path().string();
    const auto has_new_head = [&](const std::string& architecture, const std::string& labels) {
        folder_.write(
            "config.json",
            R"({"architectures": [")" + architecture + R"("], "id2label": )" + labels + "}");
        return model(given)->is_new_head("classifier.weight");
    };
    const std::string token = "BertForTokenClassification";
    const std::string fitting = R"({"0": "O", "1": "B-A", "2": "I-A"})";
    const std::string permuted = R"({"0": "B-A", "1": "I-A", "2": "O"})";

    EXPECT_FALSE(has_new_head(token, fitting));
    EXPECT_FALSE(has_new_head(token, R"({"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})"));
    EXPECT_TRUE(has_new_head("BertForSequenceClassification", fitting));
    for (const std::string& labels : {permuted, std::string("null")})
        EXPECT_THAT(test::thrown_by([&] { has_new_head(token, labels); }).text,
                    HasSubstr("are not those of the data"));
    EXPECT_THAT(test::thrown_by([&] { has_new_head(token, R"({"0": "O", "2": "I-A"})"); }).text,
                HasSubstr("it has no text of number 1"));
    given.own = {{"new-labels", "true"}};
    EXPECT_TRUE(has_new_head(token, permuted));
    EXPECT_TRUE(has_new_head(token, "null"));
    EXPECT_FALSE(has_new_head(token, fitting));
}

TEST_F(TaggedDataTest, AModelOfManyLabelsForEachTextIsRefused) {
    PartOptions given = options();
    given.init_model = folder_.path().string();
    folder_.write("config.json", R"({"problem_type": "multi_label_classification"})");

    EXPECT_THAT(test::thrown_by([&] { model(given); }).text,
                HasSubstr("gives a text any number of labels"));
}

TEST_F(TaggedDataTest, AModelWithCaseIsNotTrainedOnTextWithoutIt) {
    PartOptions given = options();
    given.init_model = folder_.path().string();
    folder_.write("tokenizer_config.json", R"({"do_lower_case": true})");
    EXPECT_NO_THROW(model(given));
    folder_.write("tokenizer_config.json", R"({"do_lower_case": false})");

    EXPECT_THAT(test::thrown_by([&] { model(given); }).text,
                HasSubstr("the model: case is kept, accents are kept; the data: lower case, no "
                          "accents"));
}

TEST_F(TaggedDataTest, WithoutDataLabelsAreTheModels) {
    folder_.write("config.json",
                  R"({"architectures": ["BertForTokenClassification"],
                      "id2label": {"0": "O", "1": "B-C"}})");
    const auto classifier = model({.model_config = "tiny", .init_model = folder_.path().string()});

    EXPECT_EQ(classifier->companion_files().back().content, "O\nB-C\n");
}

TEST_F(TaggedDataTest, DropoutBeforeTheHeadIsTheOptionsOrElseTheConfigurations) {
    PartOptions given = options();
    folder_.write("config.json",
                  R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
                      "classifier_dropout": 0.25})");
    given.model_config = folder_ / "config.json";

    EXPECT_THAT(model(given)->config_json(), HasSubstr("\"classifier_dropout\": 0.25"));
    given.dropout = 0.1;
    EXPECT_THAT(model(given)->config_json(), Not(HasSubstr("classifier_dropout")));
    given.own = {{"classifier-dropout", "0.5"}};
    EXPECT_THAT(model(given)->config_json(), HasSubstr("\"classifier_dropout\": 0.5"));
}

TEST_F(TaggedDataTest, ClassWeightsNameLabels) {
    PartOptions given = options();
    given.own = {{"class-weights", "O=0.5,C=2"}};

    EXPECT_THAT(test::thrown_by([&] { model(given); }).text, HasSubstr("the label 'C'"));
    given.own = {{"class-weights", "O"}};
    EXPECT_EQ(test::thrown_by([&] { model(given); }).code, ExitCode::config);
}

}  // namespace
}  // namespace hetseq
