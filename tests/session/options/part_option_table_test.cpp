#include "hetseq/session/options/part_option_table.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/session/options/merged_values.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Option<double> sharpness = number_option("sharpness", "0.5", "of lion and tiger", 0, 1);

std::unique_ptr<Optimizer> no_optimizer(FlatParameters&, const PartOptions&) {
    return nullptr;
}

Parts parts_with_own_options() {
    Parts parts = builtin_parts();
    parts.optimizers.add("lion", no_optimizer, {sharpness});
    parts.optimizers.add("tiger", no_optimizer, {sharpness});
    parts.models.add("wide",
                     [](const PartOptions&) { return std::shared_ptr<Model>(); },
                     {whole_number_option("width", "64", "units of the layer", 1, 512),
                      switch_option("biased", "with a bias")});
    return parts;
}

OptionValues given(const OptionValues& more) {
    OptionValues values{{"task", "mnist"}};
    values.insert(more.begin(), more.end());
    return values;
}

std::string error_of(const GivenOptions& options, const Parts& parts = parts_with_own_options()) {
    try {
        const OptionValues values = merged_values(options, parts);
        typed_options(values, options_in_use(parts, values));
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "no error";
}

const OptionSpec& spec_of(const OptionTable& table, const std::string& name) {
    for (const OptionSpec& spec : table)
        if (spec.name == name)
            return spec;
    throw InternalError("no --" + name);
}

TEST(PartOptionTableTest, SaysWhoseAnOptionIsAndWhatFixesIt) {
    const OptionTable table = option_table(parts_with_own_options());

    EXPECT_EQ(spec_of(table, "sharpness").owners,
              (std::vector<OptionOwner>{{"optimizer", "lion"}, {"optimizer", "tiger"}}));
    EXPECT_EQ(spec_of(table, "sharpness").fixed_with, FixedWith::optimizer);
    EXPECT_EQ(spec_of(table, "sharpness").group, "Options of --optimizer lion, --optimizer tiger");
    EXPECT_EQ(spec_of(table, "width").fixed_with, FixedWith::run);
    EXPECT_TRUE(spec_of(table, "lr").owners.empty());
}

TEST(PartOptionTableTest, ValuesAreTypedForTheirPart) {
    const Parts parts = parts_with_own_options();
    const OptionValues values = merged_values(
        {given({{"model", "wide"}, {"width", "128"}, {"biased", "true"}}), {}}, parts);

    const Options options = typed_options(values, options_in_use(parts, values));

    EXPECT_EQ(options.parts.get(whole_number_option("width", "64", "")), 128);
    EXPECT_TRUE(options.parts.get(switch_option("biased", "")));
}

TEST(PartOptionTableTest, LineWinsOverFileOverTaskOverDefault) {
    Parts parts = parts_with_own_options();
    TaskPart task = parts.tasks.get("mnist");
    task.defaults = {{"optimizer", "lion"}, {"sharpness", "0.1"}};
    parts.tasks.add("zoo", task);
    const OptionValues zoo{{"task", "zoo"}};

    EXPECT_EQ(merged_values({zoo, {}}, parts).at("sharpness"), "0.1");
    EXPECT_EQ(merged_values({zoo, {{"sharpness", "0.2"}}}, parts).at("sharpness"), "0.2");
    EXPECT_EQ(
        merged_values({{{"task", "zoo"}, {"sharpness", "0.3"}}, {{"sharpness", "0.2"}}}, parts)
            .at("sharpness"),
        "0.3");
    EXPECT_EQ(merged_values({given({{"optimizer", "tiger"}}), {}}, parts).at("sharpness"), "0.5");
}

TEST(PartOptionTableTest, BadValueNamesTheOption) {
    EXPECT_THAT(error_of({given({{"optimizer", "lion"}, {"sharpness", "2"}}), {}}),
                AllOf(HasSubstr("--sharpness"), HasSubstr("'2' is not a number from 0 to 1")));
}

TEST(PartOptionTableTest, IsUnknownWhereAnotherPartIsChosen) {
    EXPECT_THAT(error_of({given({{"sharpness", "0.7"}}), {}}),
                AllOf(HasSubstr("--sharpness is not known here"),
                      HasSubstr("--optimizer lion, --optimizer tiger"),
                      HasSubstr("--optimizer is 'adadelta'")));
    EXPECT_THAT(error_of({given({}), {{"sharpness", "0.7"}}}), HasSubstr("--sharpness"));
    EXPECT_EQ(merged_values({given({}), {}}, parts_with_own_options()).count("sharpness"), 0U);
}

TEST(PartOptionTableTest, ConfigurationMayKeepItWhenTheLineChoosesAnotherPart) {
    const OptionValues file{{"task", "mnist"}, {"optimizer", "lion"}, {"sharpness", "0.7"}};

    EXPECT_EQ(error_of({{{"optimizer", "sgd"}}, file}), "no error");
    EXPECT_EQ(error_of({{}, {{"task", "mnist"}, {"sharpness", "0.5"}}}), "no error");
}

// As configurations have it that were written for another optimizer, by earlier versions too.
TEST(PartOptionTableTest, WhatMayBeIgnoredIsNoErrorWhereAnotherPartIsChosen) {
    const Parts parts = builtin_parts();
    const GivenOptions idle{given({{"momentum", "0.5"}}),
                            {{"adam-betas", "0.9,0.98"}, {"power", "2"}}};

    const OptionValues values = merged_values(idle, parts);

    EXPECT_EQ(values.at("optimizer"), "adadelta");
    for (const char* name : {"momentum", "adam-betas", "power"})
        EXPECT_EQ(values.count(name), 0U) << name;
    EXPECT_EQ(values.at("lr-shrink"), "0.7");  // the task's
}

TEST(PartOptionTableTest, WhatIsIgnoredMustBeRightAllTheSame) {
    EXPECT_THAT(error_of({given({{"momentum", "1"}}), {}}),
                AllOf(HasSubstr("--momentum"), HasSubstr("'1' is not a number")));
    EXPECT_THAT(error_of({given({}), {{"adam-betas", "0.9"}}}), HasSubstr("--adam-betas"));
}

TEST(PartOptionTableTest, ChoosesWhatTheBuiltInPartsRead) {
    const Parts parts = builtin_parts();
    const OptionValues values =
        merged_values({given({{"optimizer", "adam"}, {"lr-scheduler", "cosine"}}), {}}, parts);

    EXPECT_EQ(values.at("adam-betas"), "0.9,0.999");
    EXPECT_EQ(values.at("adam-eps"), "1e-8");
    EXPECT_EQ(values.at("end-learning-rate"), "0");
    for (const char* name : {"rho", "adadelta-eps", "momentum", "power", "lr-shrink"})
        EXPECT_EQ(values.count(name), 0U) << name;
}

TEST(PartOptionTableTest, RefusesNamesThatMeanSomethingElse) {
    Parts taken = builtin_parts();
    taken.optimizers.add("lion", no_optimizer, {number_option("lr", "1", "another")});
    Parts different = parts_with_own_options();
    different.optimizers.add("puma", no_optimizer, {number_option("sharpness", "1", "of puma")});

    EXPECT_THROW(option_table(taken), InternalError);
    EXPECT_THROW(option_table(different), InternalError);
}

}  // namespace
}  // namespace hetseq
