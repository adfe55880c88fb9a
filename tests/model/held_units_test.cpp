// What a stage of a model has of its parameters.
#include <algorithm>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/files/model_file.hpp"

#include "model/chain_models.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::cuts_of, test::ModelCase, test::TemporaryFolder, test::text_of;

bool has_memory(const at::Tensor& tensor) {
    return tensor.storage().nbytes() >= static_cast<std::size_t>(tensor.nbytes());
}

// One element stands for all.
void expect_no_memory_but_for(const std::set<std::string>& held, const Model& model) {
    for (const auto& [name, parameter] : model.named_parameters()) {
        EXPECT_EQ(model.is_held(name), held.count(name) != 0) << name;
        EXPECT_TRUE(parameter.requires_grad()) << name;
        if (held.count(name) != 0)
            EXPECT_TRUE(has_memory(parameter)) << name;
        else
            EXPECT_EQ(parameter.storage().nbytes(), parameter.element_size()) << name;
    }
}

std::set<std::string> names_of(const Model& model, UnitRange units) {
    std::set<std::string> names;
    const std::vector<ChainUnit> chain = model.chain();
    for (std::size_t unit = units.begin; unit < units.end; ++unit)
        names.insert(chain[unit].parameters.begin(), chain[unit].parameters.end());
    return names;
}

class HeldUnitsTest : public testing::TestWithParam<ModelCase> {
protected:
    HeldUnitsTest() : whole_{GetParam().make()} { initialise_parameters(*whole_, 3); }

    // The stored tensors that `stage` holds are those of the whole model.
    void expect_equal_values(const Model& stage) const {
        const NamedTensors expected{whole_->stored_tensors()};
        const std::vector<NamedTensor> held = stage.held_tensors();
        EXPECT_FALSE(held.empty());
        for (const auto& [name, tensor] : held)
            EXPECT_TRUE(tensor.equal(expected[name])) << name;
    }

    std::vector<UnitRange> ranges() const {
        std::vector<UnitRange> all;
        for (const auto& cut : cuts_of(whole_->chain().size()))
            all.insert(all.end(), cut.begin(), cut.end());
        return all;
    }

    std::shared_ptr<Model> whole_;
};

TEST_P(HeldUnitsTest, TheRestHasShapesButNoMemory) {
    for (const UnitRange& units : ranges()) {
        SCOPED_TRACE(text_of({units}));
        const auto stage = GetParam().make();
        stage->hold(units);
        initialise_parameters(*stage, 3);
        const std::set<std::string> held = names_of(*stage, units);

        EXPECT_EQ(stage->held_units(), units);
        expect_no_memory_but_for(held, *stage);
        stage->to(at::kDouble);
        expect_no_memory_but_for(held, *stage);
        const auto expected = whole_->named_parameters();
        for (const auto& [name, parameter] : stage->named_parameters()) {
            EXPECT_EQ(parameter.sizes(), expected[name].sizes()) << name;
            EXPECT_EQ(parameter.scalar_type(), at::kDouble) << name;
        }
    }
}

TEST_P(HeldUnitsTest, ValuesAreDrawnAsInTheWholeModel) {
    for (const UnitRange& units : ranges()) {
        const auto stage = GetParam().make();
        stage->hold(units);

        initialise_parameters(*stage, 3);

        expect_equal_values(*stage);
    }
}

TEST_P(HeldUnitsTest, AFileOfTheWholeModelIsReadInPart) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "model.safetensors";
    save_model(path, *whole_);
    for (const UnitRange& units : ranges()) {
        const auto stage = GetParam().make();
        stage->hold(units);
        const std::set<std::string> held = names_of(*stage, units);

        load_model(path, *stage);

        expect_equal_values(*stage);
        expect_no_memory_but_for(held, *stage);
        EXPECT_TRUE(load_pretrained(path, *stage, 4).drawn.empty());
        expect_equal_values(*stage);
        expect_no_memory_but_for(held, *stage);
    }
}

TEST_P(HeldUnitsTest, AllIsHeldWhereNothingWasCut) {
    const std::size_t units = whole_->chain().size();

    EXPECT_EQ(whole_->held_units(), (UnitRange{0, units}));
    EXPECT_EQ(whole_->held_tensors().size(), whole_->stored_tensors().size());
    for (const NamedTensor& parameter : whole_->named_parameters())
        EXPECT_TRUE(whole_->is_held(parameter.name));
}

INSTANTIATE_TEST_SUITE_P(Models,
                         HeldUnitsTest,
                         testing::ValuesIn(test::chain_models()),
                         test::name_of);

// All ranks refuse a file alike.
TEST(HeldUnitsFileTest, AFileThatDoesNotFitIsRefusedByAStageThatDoesNotReadThePart) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "model.safetensors";
    BertConfig config = test::chain_bert_config();
    config.max_position_embeddings = 40;
    config.ties_decoder = false;
    const auto other = make_bert(config);
    initialise_parameters(*other, 1);
    save_model(path, *other);
    const auto head = test::untied_bert();
    head->hold({4, 5});

    EXPECT_THROW(load_model(path, *head), BadData);
}

TEST(HeldUnitsFileTest, AHeadThatTheFileLacksIsDrawnByItsStageAlone) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "model.safetensors";
    const auto pretrained = test::tied_bert();
    initialise_parameters(*pretrained, 1);
    save_model(path, *pretrained);
    const BertClassifierSetup setup{.labels = {"A", "B", "C"}};
    const auto make = [&] {
        return make_bert_sequence_classifier(test::chain_bert_config(), setup);
    };
    const auto whole = make(), head = make(), embeddings = make();
    head->hold({4, 5});
    embeddings->hold({0, 1});

    const OtherHeads expected = load_pretrained(path, *whole, 7);
    const OtherHeads of_head = load_pretrained(path, *head, 7);
    load_pretrained(path, *embeddings, 7);

    EXPECT_THAT(expected.drawn, testing::ElementsAre("classifier.weight", "classifier.bias"));
    EXPECT_EQ(of_head.drawn, expected.drawn);
    EXPECT_TRUE(head->find_parameter("classifier.weight")
                    .equal(whole->find_parameter("classifier.weight")));
    expect_no_memory_but_for(names_of(*embeddings, {0, 1}), *embeddings);
}

}  // namespace
}  // namespace hetseq
