#include "hetseq/task/parts.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(PartTableTest, NamesTheNearestForAnUnknownOne) {
    PartTable<int> table("model", "--model");
    table.add("mnist-cnn", 1);
    table.add("bert", 2);

    EXPECT_EQ(table.get("bert"), 2);
    try {
        table.get("brt");
        FAIL() << "did not throw";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::config);
        EXPECT_THAT(error.what(), testing::HasSubstr("Did you mean bert?"));
    }
}

TEST(PartTableTest, RefusesANameTwice) {
    PartTable<int> table("model", "--model");
    table.add("bert", 1);

    EXPECT_THROW(table.add("bert", 2), Error);
}

TEST(BuiltinPartsTest, EveryTaskNamesPartsThatExist) {
    const Parts parts = builtin_parts();

    for (const std::string& name : parts.tasks.names()) {
        const TaskPart& task = parts.tasks.get(name);
        EXPECT_NO_THROW(parts.models.get(task.model));
        EXPECT_NO_THROW(parts.datasets.get(task.dataset));
        EXPECT_NO_THROW(parts.batchings.get(task.batching));
    }
    EXPECT_THAT(parts.optimizers.names(),
                testing::IsSupersetOf({"adam", "adamw", "adadelta", "sgd"}));
    EXPECT_THAT(
        parts.schedules.names(),
        testing::IsSupersetOf(
            {"fixed", "polynomial_decay", "inverse_sqrt", "step", "exponential", "cosine"}));
}

}  // namespace
}  // namespace hetseq
