#include "hetseq/app/command_usage.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "hetseq/app/command_table.hpp"

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> described(const CommandUsage& usage) {
    std::vector<std::string> result;
    for (const auto& option : usage.options)
        result.push_back(option.name + "=" + option.value);
    return result;
}

TEST(CommandUsageTest, WordsArgumentsAndOptionsAreToldApart) {
    const CommandUsage usage = read_usage("prepare images|text IDX... --output DIR [--shards N]");

    EXPECT_THAT(usage.words, ElementsAre("images", "text"));
    EXPECT_THAT(usage.arguments, ElementsAre("IDX"));
    EXPECT_THAT(described(usage), ElementsAre("--output=DIR", "--shards=N"));
}

TEST(CommandUsageTest, SwitchInBracketsTakesNoValue) {
    const CommandUsage usage = read_usage("plan [--json] CLUSTER.cfg [--from RUN[,RUN...]]");

    EXPECT_THAT(usage.arguments, ElementsAre("CLUSTER.cfg"));
    EXPECT_THAT(described(usage), ElementsAre("--json=", "--from=RUN"));
}

TEST(CommandUsageTest, AlternativesAndCommasSeparate) {
    const CommandUsage usage = read_usage("evaluate RUN | --task NAME, --data PATH [--json]");

    EXPECT_THAT(usage.words, IsEmpty());
    EXPECT_THAT(usage.arguments, ElementsAre("RUN"));
    EXPECT_THAT(described(usage), ElementsAre("--task=NAME", "--data=PATH", "--json="));
}

TEST(CommandUsageTest, OptionsOfTheTableAreNotItsOwn) {
    const CommandUsage usage = read_usage("bench data|step [--OPTION VALUE ...]");

    EXPECT_THAT(usage.words, ElementsAre("data", "step"));
    EXPECT_THAT(usage.arguments, IsEmpty());
    EXPECT_THAT(usage.options, IsEmpty());
}

TEST(CommandUsageTest, NameOfAValueSaysWhetherItIsAPath) {
    EXPECT_EQ(value_kind("PATH"), ValueKind::file);
    EXPECT_EQ(value_kind("NAME|FILE"), ValueKind::file);
    EXPECT_EQ(value_kind("CONFIG.cfg"), ValueKind::configuration);
    EXPECT_EQ(value_kind("RUN"), ValueKind::folder);
    EXPECT_EQ(value_kind("N|LIST"), ValueKind::any);
}

TEST(CommandUsageTest, EachUsageBeginsWithItsCommand) {
    for (const CommandEntry& command : command_table())
        EXPECT_EQ((command.usage + " ").substr(0, command.name.size() + 1), command.name + " ");
}

}  // namespace
}  // namespace hetseq
