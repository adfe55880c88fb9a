#include "hetseq/model/files/model_file.hpp"

#include <fstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/model/bert/bert.hpp"
#include "hetseq/model/bert/bert_classifiers.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/model/mnist_cnn.hpp"

#include "model/bert_rows.hpp"
#include "model/mixed_model.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using test::TemporaryFolder;

const std::string pretrained = "tests/reference/pretrained_bert";

std::shared_ptr<Model> pretrained_bert() {
    BertConfig config = bert_config(pretrained + "/config.json");
    config.hidden_dropout = config.attention_dropout = 0;
    return make_bert(config);
}

bool same_parameters(const Model& a, const Model& b) {
    const auto left = a.stored_tensors(), right = b.stored_tensors();
    for (std::size_t i = 0; i < left.size(); ++i)
        if (!left[i].tensor.equal(right[i].tensor))
            return false;
    return left.size() == right.size();
}

TEST(ModelFileTest, WhatIsSavedIsLoaded) {
    const TemporaryFolder folder;
    const auto saved = make_mnist_cnn(), loaded = make_mnist_cnn();
    initialise_parameters(*saved, 1);
    initialise_parameters(*loaded, 2);

    save_model(folder / "model.safetensors", *saved);
    load_model(folder / "model.safetensors", *loaded);

    EXPECT_TRUE(same_parameters(*saved, *loaded));
}

TEST(ModelFileTest, FrozenParametersAndBuffersOfAnyTypeAreSavedAndLoaded) {
    const TemporaryFolder folder;
    const test::MixedModel saved(4);
    test::MixedModel loaded;
    ASSERT_FALSE(test::stored_alike(saved, loaded));

    save_model(folder / "model.safetensors", saved);
    load_model(folder / "model.safetensors", loaded);

    EXPECT_TRUE(test::stored_alike(saved, loaded));
}

TEST(ModelFileTest, IntegersAreReadFromIntegersOfTheirTypeAlone) {
    const TemporaryFolder folder;
    const auto path = folder / "model.safetensors";
    struct Counter : test::MixedModel {
        explicit Counter(at::ScalarType type)
            : count{register_buffer("count", at::ones({2}, type))} {}
        at::Tensor count;
    };
    for (const at::ScalarType type : {at::kInt, at::kFloat, at::kBool}) {
        Counter loaded(at::kLong);
        save_model(path, Counter(type));

        try {
            load_model(path, loaded);
            ADD_FAILURE() << type;
        } catch (const BadData& error) {
            EXPECT_NE(std::string(error.what()).find("'count'"), std::string::npos) << error.what();
        }
    }
    Counter real(at::kDouble);
    save_model(path, Counter(at::kLong));
    EXPECT_THROW(load_model(path, real), BadData);
}

TEST(ModelFileTest, LossesOfAModelOfTransformersAreTransformers) {
    const auto model = pretrained_bert();
    model->to(at::kDouble);
    load_model(pretrained + "/model.safetensors", *model);
    const std::string reference = "tests/reference/bert_losses.json";
    const auto rows = test::BertRows::from_json(
        nlohmann::json::parse(std::ifstream(reference))["generated"]["rows"]);
    const auto expected = nlohmann::json::parse(std::ifstream(pretrained + "/losses.json"));

    const ForwardResult result = model->forward(rows.batch(0, rows.size()), {Mode::evaluate, 1, 0});

    EXPECT_NEAR(
        result.losses[0].item<double>() / rows.weights()[0], expected["mlm"].get<double>(), 1e-10);
    EXPECT_NEAR(
        result.losses[1].item<double>() / rows.weights()[1], expected["nsp"].get<double>(), 1e-10);
}

TEST(ModelFileTest, HasTheTensorsThatTransformersSaves) {
    const TemporaryFolder folder;
    const auto model = pretrained_bert();
    load_model(pretrained + "/model.safetensors", *model);

    save_model(folder / "model.safetensors", *model);

    const SafetensorsReader ours{folder / "model.safetensors"},
        theirs{pretrained + "/model.safetensors"};
    EXPECT_EQ(ours.entries().size(), theirs.entries().size());
    EXPECT_EQ(ours.metadata(), theirs.metadata());
    for (const SafetensorEntry& entry : theirs.entries()) {
        ASSERT_NE(ours.find(entry.name), nullptr) << entry.name;
        EXPECT_EQ(ours.find(entry.name)->shape, entry.shape);
        EXPECT_EQ(ours.find(entry.name)->type, entry.type);
    }
}

TEST(ModelFileTest, EveryPrecisionLoads) {
    const TemporaryFolder folder;
    const auto exact = make_mnist_cnn();
    initialise_parameters(*exact, 1);
    for (const auto& [type, tolerance] :
         {std::pair{at::kDouble, 0.0}, {at::kHalf, 1e-3}, {at::kBFloat16, 1e-2}}) {
        const auto saved = make_mnist_cnn(), loaded = make_mnist_cnn();
        initialise_parameters(*saved, 1);
        saved->to(type);

        save_model(folder / "model.safetensors", *saved);
        load_model(folder / "model.safetensors", *loaded);

        for (const auto& item : loaded->named_parameters()) {
            EXPECT_EQ(item.tensor.scalar_type(), at::kFloat);
            EXPECT_TRUE(item.tensor.allclose(
                exact->named_parameters()[item.name], tolerance, tolerance * 0.01));
        }
    }
}

/// The stored tensors of `model` under other names.
void save_renamed(const std::filesystem::path& path,
                  const Model& model,
                  const std::map<std::string, std::string>& names,
                  const std::vector<std::string>& copies = {}) {
    std::vector<SafetensorData> tensors;
    for (const auto& [name, tensor] : model.stored_tensors()) {
        const auto renamed = names.find(name);
        const std::string stored = renamed == names.end() ? name : renamed->second;
        if (!stored.empty())
            tensors.push_back(
                {stored, SafetensorType::F32, tensor.sizes().vec(), tensor.const_data_ptr()});
        if (name == "bert.embeddings.word_embeddings.weight")
            for (const std::string& copy : copies)
                tensors.push_back(
                    {copy, SafetensorType::F32, tensor.sizes().vec(), tensor.const_data_ptr()});
    }
    write_safetensors(path, tensors);
}

TEST(ModelFileTest, CopiesOfTiedTensorsAndBuffersAreNotRead) {
    const TemporaryFolder folder;
    const auto saved = pretrained_bert(), loaded = pretrained_bert();
    initialise_parameters(*saved, 1);

    save_renamed(folder / "a",
                 *saved,
                 {},
                 {"cls.predictions.decoder.weight", "bert.embeddings.position_ids"});
    load_model(folder / "a", *loaded);

    EXPECT_TRUE(same_parameters(*saved, *loaded));
}

TEST(ModelFileTest, OtherNamesOfTheSameTensorsLoad) {
    const TemporaryFolder folder;
    const auto saved = pretrained_bert(), loaded = pretrained_bert();
    initialise_parameters(*saved, 1);

    save_renamed(folder / "a",
                 *saved,
                 {{"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
                  {"cls.predictions.bias", "cls.predictions.decoder.bias"},
                  {"bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"},
                  {"bert.embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.beta"}});
    load_model(folder / "a", *loaded);

    EXPECT_TRUE(same_parameters(*saved, *loaded));
}

std::string error_of_loading(const std::filesystem::path& path, Model& model) {
    try {
        load_model(path, model);
    } catch (const BadData& error) {
        return error.what();
    }
    return "loaded";
}

TEST(ModelFileTest, AMissingTensorIsNamedAndTheModelStays) {
    const TemporaryFolder folder;
    const auto saved = pretrained_bert(), loaded = pretrained_bert(), before = pretrained_bert();
    initialise_parameters(*saved, 1);
    initialise_parameters(*loaded, 2);
    initialise_parameters(*before, 2);
    save_renamed(folder / "a", *saved, {{"cls.seq_relationship.weight", ""}});

    const std::string message = error_of_loading(folder / "a", *loaded);

    EXPECT_NE(message.find("lacks the model's tensor 'cls.seq_relationship.weight'"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("(2, 8)"), std::string::npos) << message;
    EXPECT_TRUE(same_parameters(*loaded, *before));
}

TEST(ModelFileTest, ASurplusTensorIsNamed) {
    const TemporaryFolder folder;
    const auto model = pretrained_bert();
    initialise_parameters(*model, 1);
    save_renamed(folder / "a", *model, {}, {"bert.encoder.layer.1.output.dense.weight"});

    const std::string message = error_of_loading(folder / "a", *model);

    EXPECT_NE(message.find("'bert.encoder.layer.1.output.dense.weight' (97, 8)"), std::string::npos)
        << message;
}

TEST(ModelFileTest, AMisshapenTensorIsNamedWithBothShapes) {
    const TemporaryFolder folder;
    BertConfig other = bert_config(pretrained + "/config.json");
    other.intermediate_size = 16;
    const auto saved = make_bert(other), loaded = pretrained_bert();
    initialise_parameters(*saved, 1);
    save_model(folder / "a", *saved);

    const std::string message = error_of_loading(folder / "a", *loaded);

    EXPECT_NE(message.find("(16, 8)"), std::string::npos) << message;
    EXPECT_NE(message.find("(12, 8)"), std::string::npos) << message;
    EXPECT_NE(message.find("intermediate.dense.weight"), std::string::npos) << message;
}

/// The stored tensors of a pretrained BERT, without "bert." and the heads: as BertModel saves them.
std::map<std::string, std::string> names_of_bert_model(const Model& model) {
    std::map<std::string, std::string> names;
    for (const NamedTensor& stored : model.stored_tensors())
        names[stored.name] = stored.name.rfind("bert.", 0) == 0 ? stored.name.substr(5) : "";
    return names;
}

TEST(ModelFileTest, HeadsThatAFileLacksAreDrawnFromTheSeed) {
    const TemporaryFolder folder;
    const auto saved = pretrained_bert(), loaded = pretrained_bert(), drawn = pretrained_bert();
    initialise_parameters(*saved, 1);
    initialise_parameters(*drawn, 5);
    save_renamed(folder / "a", *saved, names_of_bert_model(*saved));

    const OtherHeads heads = load_pretrained(folder / "a", *loaded, 5);

    EXPECT_TRUE(heads.unread.empty());
    std::map<std::string, at::Tensor> of_file, of_seed;
    for (const NamedTensor& stored : saved->stored_tensors())
        of_file[stored.name] = stored.tensor;
    for (const NamedTensor& stored : drawn->stored_tensors())
        of_seed[stored.name] = stored.tensor;
    std::vector<std::string> expected;
    for (const auto& [name, tensor] : loaded->stored_tensors()) {
        const bool is_of_body = name.rfind("bert.", 0) == 0;
        EXPECT_TRUE(tensor.equal(is_of_body ? of_file.at(name) : of_seed.at(name))) << name;
        if (!is_of_body)
            expected.push_back(name);
    }
    EXPECT_EQ(heads.drawn, expected);
    EXPECT_FALSE(expected.empty());
    EXPECT_NE(error_of_loading(folder / "a", *loaded).find("lacks the model's tensor 'cls."),
              std::string::npos);
}

TEST(ModelFileTest, HeadsThatTheModelLacksAreNotRead) {
    const TemporaryFolder folder;
    const auto saved = pretrained_bert(), loaded = pretrained_bert();
    initialise_parameters(*saved, 1);
    save_renamed(folder / "a", *saved, {}, {"classifier.weight"});

    const OtherHeads heads = load_pretrained(folder / "a", *loaded, 5);

    EXPECT_TRUE(same_parameters(*saved, *loaded));
    EXPECT_EQ(heads.unread, std::vector<std::string>{"classifier.weight"});
    EXPECT_TRUE(heads.drawn.empty());
}

TEST(ModelFileTest, TheBodyIsNeverDrawn) {
    const TemporaryFolder folder;
    const auto saved = pretrained_bert(), loaded = pretrained_bert();
    initialise_parameters(*saved, 1);
    save_renamed(folder / "a", *saved, {{"bert.embeddings.position_embeddings.weight", ""}});
    EXPECT_THROW(load_pretrained(folder / "a", *loaded, 5), BadData);
    save_renamed(folder / "a", *saved, {}, {"bert.encoder.layer.1.output.dense.weight"});
    EXPECT_THROW(load_pretrained(folder / "a", *loaded, 5), BadData);
    save_renamed(folder / "a", *saved, {}, {"encoder.layer.1.output.dense.weight"});
    EXPECT_THROW(load_pretrained(folder / "a", *loaded, 5), BadData);
}

TEST(ModelFileTest, IntegersAreNoParameters) {
    const TemporaryFolder folder;
    const auto model = make_mnist_cnn();
    std::vector<SafetensorData> tensors;
    for (const auto& [name, tensor] : model->stored_tensors())
        tensors.push_back(
            {name, SafetensorType::I32, tensor.sizes().vec(), tensor.const_data_ptr()});
    write_safetensors(folder / "a", tensors);

    EXPECT_NE(error_of_loading(folder / "a", *model).find("I32"), std::string::npos);
}

TEST(ModelFileTest, AnAbsentFileIsMissingInput) {
    EXPECT_THROW(load_model("/nowhere/model.safetensors", *make_mnist_cnn()), MissingInput);
}

TEST(SharedNetworkTest, OnlyHeadsMayDiffer) {
    BertConfig config = bert_config(pretrained + "/config.json");
    const auto classifier = make_bert_token_classifier(config, {.labels = {"O", "B-A"}});
    initialise_parameters(*classifier, 1);
    const at::Tensor head = classifier->named_parameters()["classifier.weight"];
    const at::Tensor before = head.detach().clone();

    const OtherHeads heads = load_pretrained(pretrained + "/model.safetensors", *classifier, 1);

    EXPECT_THAT(heads.drawn, testing::ElementsAre("classifier.weight", "classifier.bias"));
    EXPECT_THAT(heads.unread,
                testing::IsSupersetOf({"bert.pooler.dense.weight", "cls.predictions.bias"}));
    EXPECT_TRUE(head.equal(before));
    const auto whole = pretrained_bert();
    load_model(pretrained + "/model.safetensors", *whole);
    const std::string embedding = "bert.embeddings.word_embeddings.weight";
    EXPECT_TRUE(
        classifier->named_parameters()[embedding].equal(whole->named_parameters()[embedding]));
}

TEST(SharedNetworkTest, ANewHeadIsDrawnWhateverTheFileHas) {
    const TemporaryFolder folder;
    const BertConfig config = bert_config(pretrained + "/config.json");
    const auto stored = make_bert_token_classifier(config, {.labels = {"O", "B-A"}});
    initialise_parameters(*stored, 1);
    save_model(folder / "a", *stored);
    const auto same = make_bert_token_classifier(config, {.labels = {"O", "B-A"}});
    const auto other =
        make_bert_token_classifier(config, {.labels = {"O", "B-B", "I-B"}, .new_head = true});

    EXPECT_THAT(load_pretrained(folder / "a", *same, 2).drawn, testing::IsEmpty());
    const OtherHeads heads = load_pretrained(folder / "a", *other, 2);

    EXPECT_THAT(heads.drawn, testing::ElementsAre("classifier.weight", "classifier.bias"));
    EXPECT_THAT(heads.unread, testing::ElementsAre("classifier.weight", "classifier.bias"));
    const std::string head = "classifier.weight";
    EXPECT_TRUE(same->named_parameters()[head].equal(stored->named_parameters()[head]));
    const auto drawn =
        make_bert_token_classifier(config, {.labels = {"O", "B-B", "I-B"}, .new_head = true});
    initialise_parameters(*drawn, 2);
    EXPECT_TRUE(other->named_parameters()[head].equal(drawn->named_parameters()[head]));
}

TEST(SharedNetworkTest, WhatTheNetworkLacksIsAnError) {
    BertConfig config = bert_config(pretrained + "/config.json");
    config.layers = 2;
    const auto classifier = make_bert_token_classifier(config, {.labels = {"O"}});

    EXPECT_THROW(load_pretrained(pretrained + "/model.safetensors", *classifier, 1), BadData);
    EXPECT_THROW(load_model(pretrained + "/model.safetensors",
                            *make_bert_token_classifier(bert_config(pretrained + "/config.json"),
                                                        {.labels = {"O"}})),
                 BadData);
}

TEST(SharedNetworkTest, MissingTensorsAreDrawnAsTheyAreWithoutAFile) {
    const BertConfig config = bert_config(pretrained + "/config.json");
    const auto drawn = make_bert_token_classifier(config, {.labels = {"O", "B-A"}});
    const auto head = make_bert_token_classifier(config, {.labels = {"O", "B-A"}});
    const std::vector<std::string> missing{"classifier.weight"};

    initialise_parameters(*drawn, 7);
    initialise_parameters(*head, 7, missing);

    EXPECT_TRUE(head->named_parameters()["classifier.weight"].equal(
        drawn->named_parameters()["classifier.weight"]));
}

}  // namespace
}  // namespace hetseq
