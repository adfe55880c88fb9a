#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/data/files/fixed_shard_writer.hpp"
#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/task/parts.hpp"

#include "data/error_text.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

TensorDict two_rows() {
    return {{"input_ids", at::tensor({101, 7, 103, 102, 101, 103, 9, 102}, at::kInt).view({2, 4})},
            {"input_mask", at::tensor({1, 1, 1, 1, 1, 1, 1, 0}, at::kChar).view({2, 4})},
            {"segment_ids", at::tensor({0, 0, 1, 1, 0, 0, 0, 0}, at::kChar).view({2, 4})},
            {"masked_lm_positions", at::tensor({2, 0, 1, 2}, at::kInt).view({2, 2})},
            {"masked_lm_ids", at::tensor({8, 0, 6, 5}, at::kInt).view({2, 2})},
            {"next_sentence_labels", at::tensor({0, 1}, at::kChar)}};
}

TEST(PretrainingBatchingTest, TakesMaskedEntriesThatAreNotPadding) {
    const auto collator = builtin_parts().batchings.get("bert-pretraining")({});

    const MicroBatch batch = collator->collate(two_rows(), at::tensor({0, 1}, at::kLong));

    // Row 0 masks position 2; row 1 positions 1 and 2: flat indices 2, 4 + 1, 4 + 2.
    EXPECT_TRUE(batch.tensors.at("masked_positions").equal(at::tensor({2, 5, 6}, at::kLong)));
    EXPECT_TRUE(batch.tensors.at("masked_labels").equal(at::tensor({8, 6, 5}, at::kLong)));
    EXPECT_EQ(batch.weights, (std::vector<double>{3, 2}));
    EXPECT_TRUE(batch.tensors.at("next_sentence_labels").equal(at::tensor({0, 1}, at::kLong)));
}

TEST(PretrainingBatchingTest, RowsWithoutMaskedTokensWeighNothing) {
    TensorDict rows = two_rows();
    rows["masked_lm_ids"] = at::zeros({2, 2}, at::kInt);

    const MicroBatch batch = builtin_parts().batchings.get("bert-pretraining")({})->collate(
        rows, at::tensor({0, 1}, at::kLong));

    EXPECT_EQ(batch.weights, (std::vector<double>{0, 2}));
    EXPECT_EQ(batch.tensors.at("masked_positions").numel(), 0);
}

TEST(PretrainingSchemaTest, BoundsFollowTheModelsConfiguration) {
    const CorpusSchema schema =
        builtin_parts().datasets.get("bert-pretraining")({.model_config = "tiny"});

    ASSERT_EQ(schema.fields.size(), 6U);
    EXPECT_EQ(schema.fields[0].name, "input_ids");
    EXPECT_EQ(schema.fields[0].maximum, 30521);
    EXPECT_EQ(schema.fields[0].max_row_length, 512);
}

constexpr const char* pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n";

class PreparedDataTest : public testing::Test {
protected:
    // A shard of one row, masked or not.
    std::string masked_shard() {
        FixedShardWriter writer{folder_ / "masked.h5", 1, {{"input_ids", 4, 5}}};
        const std::vector<std::int32_t> row{2, 5, 3, 5, 3};
        writer.append(0, row);
        return finish(writer, "masked.h5");
    }
    std::string unmasked_shard() {
        RaggedShardWriter writer{
            folder_ / "ragged.h5", {{"input_ids", 6}}, ShardFormat::large_attributes};
        const std::vector<std::int32_t> row{2, 5, 3, 5, 3};
        writer.append(0, row);
        return finish(writer, "ragged.h5");
    }

    template <class Writer>
    std::string finish(Writer& writer, const std::string& name) {
        writer.attach_text("vocab.txt", pieces);
        writer.attach_text("tokenizer_config.json", "{}");
        writer.finish();
        writer.commit();
        return folder_ / name;
    }

    test::TemporaryFolder folder_;
};

std::map<std::string, std::string> companions(const PartOptions& options) {
    std::map<std::string, std::string> files;
    for (const CompanionFile& file : builtin_parts().models.get("bert")(options)->companion_files())
        files[file.name] = file.content;
    return files;
}

TEST_F(PreparedDataTest, TheVocabularyGoesWithTheModel) {
    const auto files = companions({.model_config = "tiny", .data = masked_shard()});

    EXPECT_EQ(files.at("vocab.txt"), pieces);
    EXPECT_EQ(files.at("tokenizer_config.json"), "{}");
    EXPECT_EQ(files.count("config.json"), 1U);
    EXPECT_EQ(companions({.model_config = "tiny"}).size(), 1U);
}

TEST_F(PreparedDataTest, AModelsVocabularyGoesOnWithoutData) {
    folder_.write("vocab.txt", "its own");

    const auto files = companions({.model_config = "tiny", .init_model = folder_.path().string()});

    EXPECT_EQ(files.at("vocab.txt"), "its own");
    EXPECT_EQ(files.count("tokenizer_config.json"), 0U);
}

TEST_F(PreparedDataTest, AVocabularyThatDoesNotFitIsRefused) {
    const std::string data = masked_shard();
    folder_.write("vocab.txt", "[UNK]\nanother\n");
    folder_.write("small.json",
                  R"({"vocab_size": 5, "hidden_size": 4, "num_hidden_layers": 1,
                      "num_attention_heads": 1, "intermediate_size": 4})");
    const auto thrown_for = [](const PartOptions& options) {
        return test::thrown_by([&] { companions(options); });
    };
    const test::Thrown small = thrown_for({.model_config = folder_ / "small.json", .data = data});
    const test::Thrown other =
        thrown_for({.model_config = "tiny", .init_model = folder_.path().string(), .data = data});

    EXPECT_EQ(small.code, ExitCode::config);
    EXPECT_THAT(small.text, testing::HasSubstr("for a vocabulary of 5 pieces"));
    EXPECT_EQ(other.code, ExitCode::config);
    EXPECT_THAT(other.text, testing::HasSubstr("is not that of the data"));
}

TEST_F(PreparedDataTest, TheSchemaHasTheTextsOfTheShards) {
    const CorpusSchema schema = builtin_parts().datasets.get("bert-pretraining")(
        {.model_config = "tiny", .data = masked_shard()});

    ASSERT_EQ(schema.fields.size(), 6U);
    ASSERT_EQ(schema.attachments.size(), 2U);
    EXPECT_EQ(schema.attachments[0].name, "vocab.txt");
    EXPECT_EQ(schema.attachments[0].xxh64, xxh64_of(pieces));
    EXPECT_EQ(schema.attachments[0].place, AttachmentSchema::Place::attribute);
}

TEST_F(PreparedDataTest, UnmaskedPairsHaveASchemaAndABatchingOfTheirOwn) {
    const PartOptions options{.model_config = "tiny", .data = unmasked_shard()};

    const CorpusSchema schema = builtin_parts().datasets.get("bert-pretraining")(options);
    const auto collator = builtin_parts().batchings.get("bert-pretraining")(options);
    const MicroBatch batch =
        collator->collate({{"input_ids", at::tensor({2, 5, 3, 5, 3}, at::kInt)},
                           {"input_ids_offsets", at::tensor({0, 5}, at::kLong)},
                           {"second_segments", at::tensor({3}, at::kInt)},
                           {"next_sentence_labels", at::tensor({1}, at::kInt).to(at::kChar)}},
                          at::tensor({0}, at::kLong));

    ASSERT_EQ(schema.fields.size(), 3U);
    EXPECT_EQ(schema.units_field, "input_ids");
    EXPECT_TRUE(schema.fields[0].is_ragged);
    EXPECT_EQ(batch.weights, (std::vector<double>{1, 1}));
    EXPECT_EQ(batch.tensors.at("masked_labels")[0].item<std::int64_t>(), 5);
}

// Of these counts and half a token for each one that was not seen.
at::Tensor log_shares(std::initializer_list<double> counts) {
    const at::Tensor seen = at::tensor(std::vector<double>(counts), at::kDouble) + 0.5;
    return at::log(seen / seen.sum());
}

class DecoderBiasTest : public PreparedDataTest {
protected:
    // For six pieces.
    std::shared_ptr<Model> model(const std::string& data, const std::string& kind = "unigram") {
        folder_.write("six.json",
                      R"({"vocab_size": 6, "hidden_size": 4, "num_hidden_layers": 1,
                          "num_attention_heads": 1, "intermediate_size": 4})");
        return builtin_parts().models.get("bert")(
            {.model_config = folder_ / "six.json", .data = data, .own = {{"decoder-bias", kind}}});
    }
    // What that model begins with.
    at::Tensor decoder_bias(const std::string& data, const std::string& kind = "unigram") {
        const auto drawn = model(data, kind);
        initialise_parameters(*drawn, 1);
        return bias_of(*drawn);
    }
    static at::Tensor bias_of(const Model& model) {
        return model.named_parameters()["cls.predictions.bias"].detach().to(at::kDouble);
    }
};

TEST_F(DecoderBiasTest, CountsTheTokensToPredict) {
    FixedShardWriter writer{folder_ / "labels.h5", 3, {{"masked_lm_ids", 4, 2}}};
    for (const auto& row : std::vector<std::vector<std::int32_t>>{{5, 0}, {5, 1}, {9, 5}})
        writer.append(0, row);  // 9 is no piece, which opening the corpus reports
    EXPECT_TRUE(
        decoder_bias(finish(writer, "labels.h5")).allclose(log_shares({0, 1, 0, 0, 0, 3}), 1e-6));
}

TEST_F(DecoderBiasTest, CountsTheTokensThatMayBeMasked) {
    EXPECT_TRUE(decoder_bias(unmasked_shard()).allclose(log_shares({0, 0, 0, 0, 0, 2}), 1e-6));
}

TEST_F(DecoderBiasTest, IsZeroUnlessAsked) {
    EXPECT_TRUE(decoder_bias(masked_shard(), "zero").eq(0).all().item<bool>());
    EXPECT_TRUE(decoder_bias("", "zero").eq(0).all().item<bool>());
}

TEST_F(DecoderBiasTest, EveryShardCounts) {
    for (const std::int32_t token : {1, 4}) {
        const std::string name = "part-" + std::to_string(token) + ".h5";
        FixedShardWriter writer{folder_ / name, 1, {{"masked_lm_ids", 4, 2}}};
        writer.append(0, std::vector<std::int32_t>{token, token});
        finish(writer, name);
    }
    EXPECT_TRUE(decoder_bias(folder_ / "part-*.h5").allclose(log_shares({0, 2, 0, 0, 2, 0}), 1e-6));
}

TEST_F(DecoderBiasTest, IsCountedOnlyWhereItIsDrawn) {
    const auto saved = model("", "zero");
    initialise_parameters(*saved, 1);
    save_model(folder_ / "model.safetensors", *saved);

    const auto loaded = model(masked_shard());  // which has nothing to count
    load_pretrained(folder_ / "model.safetensors", *loaded, 1);

    EXPECT_TRUE(bias_of(*loaded).eq(0).all().item<bool>());
}

TEST_F(DecoderBiasTest, NeedsData) {
    EXPECT_EQ(test::thrown_by([&] { decoder_bias(""); }).code, ExitCode::config);
    const test::Thrown missing = test::thrown_by([&] { decoder_bias(masked_shard()); });
    EXPECT_EQ(missing.code, ExitCode::bad_data);
    EXPECT_THAT(missing.text, testing::HasSubstr("dataset 'masked_lm_ids' is missing"));
}

TEST(PretrainingBatchingTest, TargetsMayBeMissingAndPredictionsNeedNone) {
    TensorDict rows = two_rows();
    for (const char* target : {"masked_lm_positions", "masked_lm_ids", "next_sentence_labels"})
        rows.erase(target);
    const Parts parts = builtin_parts();
    PartOptions options;
    options.model_config = "tiny";
    const auto model = parts.models.get("bert")(options);
    at::manual_seed(1);
    for (at::Tensor& parameter : model->parameters())
        parameter.detach().normal_(0, 0.1);

    const MicroBatch batch =
        parts.batchings.get("bert-pretraining")({})->collate(rows, at::tensor({0, 1}, at::kLong));
    const std::vector<Prediction> predictions = model->predict(batch);

    ASSERT_EQ(predictions.size(), 2u);
    EXPECT_EQ(predictions[0].name, "embeddings");
    EXPECT_EQ(predictions[0].values.sizes(), (at::IntArrayRef{2, 128}));
    EXPECT_EQ(predictions[1].name, "next_sentence");
    EXPECT_TRUE(predictions[1].values.sum(1).allclose(at::ones({2}), 1e-6));
    // The last token of the second row is padding: what it is does not matter.
    rows["input_ids"].select(0, 1).select(0, 3).fill_(55);
    const auto same = model->predict(
        parts.batchings.get("bert-pretraining")({})->collate(rows, at::tensor({0, 1}, at::kLong)));
    EXPECT_TRUE(same[0].values.allclose(predictions[0].values, 1e-5, 1e-6));
    rows["input_ids"].select(0, 1).select(0, 1).fill_(55);
    const auto other = model->predict(
        parts.batchings.get("bert-pretraining")({})->collate(rows, at::tensor({0, 1}, at::kLong)));
    EXPECT_FALSE(other[0].values[1].allclose(predictions[0].values[1], 1e-3, 1e-3));
    EXPECT_TRUE(other[0].values[0].allclose(predictions[0].values[0], 1e-5, 1e-6));
}

}  // namespace
}  // namespace hetseq
