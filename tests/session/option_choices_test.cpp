#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/precision.hpp"
#include "hetseq/command_line/command_description.hpp"
#include "hetseq/session/options/part_option_table.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

TEST(OptionChoicesTest, EachIsAcceptedAndAnythingElseRefused) {
    for (const OptionSpec& spec : option_table()) {
        for (const std::string& choice : spec.choices)
            EXPECT_NO_THROW(spec.check(choice.ends_with(':') ? choice + "x" : choice))
                << "--" << spec.name << ' ' << choice;
        if (!spec.choices.empty()) {
            EXPECT_THROW(spec.check("no such choice"), BadConfig) << "--" << spec.name;
        }
    }
}

TEST(OptionChoicesTest, ComeFromTheOptionOrTheParts) {
    const Parts parts = builtin_parts();
    const OptionTable table = option_table(parts);
    const auto choices_of = [&](const std::string& name) {
        return find_option(table, name)->choices;
    };

    std::vector<std::string> precisions{"auto"};
    for (const std::string& word : precision_words())
        precisions.push_back(word);
    EXPECT_EQ(choices_of("precision"), precisions);
    EXPECT_THAT(choices_of("device"), ElementsAre("auto", "cpu", "cuda"));
    EXPECT_EQ(choices_of("task"), parts.tasks.names());
    EXPECT_EQ(choices_of("lr-scheduler"), parts.schedules.names());
    EXPECT_TRUE(choices_of("lr").empty());
}

TEST(OptionChoicesTest, HelpNamesThemAllInTheEnd) {
    for (const OptionSpec& spec : option_table(builtin_parts()))
        for (const std::string& choice : spec.choices)
            EXPECT_THAT(explained(spec), testing::HasSubstr(choice)) << "--" << spec.name;
}

}  // namespace
}  // namespace hetseq
