#include "hetseq/app/command_line/option_choices.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

OptionSpec option_named(const std::string& name) {
    for (const OptionSpec& spec : option_table())
        if (spec.name == name)
            return spec;
    throw InternalError("no option --" + name);
}

TEST(OptionChoicesTest, EachIsAcceptedAndAnythingElseRefused) {
    for (const OptionSpec& spec : option_table()) {
        const std::vector<std::string>& choices = spec.set.choices();
        Options options;
        for (const std::string& choice : choices)
            EXPECT_NO_THROW(spec.set(options, choice.ends_with(':') ? choice + "x" : choice))
                << "--" << spec.name << ' ' << choice;
        if (!choices.empty()) {
            EXPECT_THROW(spec.set(options, "no such choice"), BadConfig) << "--" << spec.name;
        }
    }
}

TEST(OptionChoicesTest, ComeFromTheSetterOrTheParts) {
    const Parts parts = builtin_parts();

    EXPECT_THAT(option_choices(option_named("precision"), parts), ElementsAre("fp32", "fp64"));
    EXPECT_THAT(option_choices(option_named("device"), parts), ElementsAre("auto", "cpu", "cuda"));
    EXPECT_EQ(option_choices(option_named("task"), parts), parts.tasks.names());
    EXPECT_EQ(option_choices(option_named("lr-scheduler"), parts), parts.schedules.names());
    EXPECT_TRUE(option_choices(option_named("lr"), parts).empty());
}

TEST(OptionChoicesTest, HelpNamesThemAllInTheEnd) {
    const Parts parts = builtin_parts();

    for (const OptionSpec& spec : option_table())
        for (const std::string& choice : option_choices(spec, parts))
            EXPECT_THAT(explained(spec, parts), testing::HasSubstr(choice)) << "--" << spec.name;
}

}  // namespace
}  // namespace hetseq
