#include "hetseq/session/options/config_file_values.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/name_list.hpp"

namespace hetseq {
namespace {

namespace fs = std::filesystem;

// In a folder of its own.
class ConfigFileValuesTest : public testing::Test {
protected:
    ConfigFileValuesTest() { enter("plain"); }
    ~ConfigFileValuesTest() override {
        fs::current_path(before_);
        fs::remove_all(base_);
    }

    void enter(const std::string& name) {
        fs::create_directories(base_ / name);
        fs::current_path(base_ / name);
    }
    static std::string here(const std::string& path) {
        return (fs::current_path() / path).string();
    }
    static std::string repeatable(const std::string& name, const std::string& value) {
        return config_file_values({{name, value}}).at(name);
    }

    fs::path before_ = fs::current_path();
    fs::path base_ = fs::temp_directory_path() / ("hetseq-values-" + std::to_string(::getpid()));
};

TEST_F(ConfigFileValuesTest, RelativePathsAreMadeAbsolute) {
    EXPECT_EQ(repeatable("data", "a/*.h5,/b/c.h5"), here("a/*.h5") + ",/b/c.h5");
    EXPECT_EQ(repeatable("valid-data", "../v"), here("../v"));
    EXPECT_EQ(repeatable("init-model", "runs/a"), here("runs/a"));
    EXPECT_EQ(repeatable("balance", "file:a.json"), "file:" + here("a.json"));
    EXPECT_EQ(repeatable("cache-dir", "cache"), here("cache"));
}

TEST_F(ConfigFileValuesTest, WhatIsNoRelativePathStays) {
    for (const auto& [name, value] : OptionValues{{"data", ""},
                                                  {"valid-data", "/v"},
                                                  {"init-model", ""},
                                                  {"balance", "auto"},
                                                  {"cache-dir", "none"},
                                                  {"seed", "1"}})
        EXPECT_EQ(repeatable(name, value), value) << name;
}

TEST_F(ConfigFileValuesTest, AModelsConfigurationIsAPathWhereItIsAFile) {
    std::ofstream{"mine.json"} << "{}";
    std::ofstream{"base"} << "{}";

    EXPECT_EQ(repeatable("model-config", "mine.json"), here("mine.json"));
    EXPECT_EQ(repeatable("model-config", "base"), "base");
    EXPECT_EQ(repeatable("model-config", "none.json"), "none.json");
}

// It would be read as a comment.
TEST_F(ConfigFileValuesTest, AFolderThatNoValueCanHoldLeavesPathsRelative) {
    enter("a#b");
    EXPECT_EQ(repeatable("data", "train.h5"), "train.h5");
}

// They would be read as two paths, or as a pattern.
TEST_F(ConfigFileValuesTest, CommasAndBracketsOfNamesAreEscaped) {
    for (const char* name : {"a,b", "a[b]"}) {
        enter(name);
        std::ofstream{"lr=0.1,bs=2.h5"} << "";
        const std::string value = repeatable("data", "lr=0.1,bs=2.h5,none*");

        const std::vector<std::string> names = split_names(value, [](auto&) { return false; });
        ASSERT_EQ(names.size(), 2U) << value;
        EXPECT_EQ(unescaped_name(names[0]), here("lr=0.1,bs=2.h5"));
        EXPECT_EQ(unescaped_name(names[1]), here("none*"));
        EXPECT_EQ(repeatable("data", value), value);
    }
}

TEST_F(ConfigFileValuesTest, OneFileHasManyNames) {
    std::ofstream{"mine.json"} << "{}";

    EXPECT_TRUE(names_same_file("mine.json", here("mine.json")));
    EXPECT_TRUE(names_same_file("base", "base"));
    EXPECT_FALSE(names_same_file("base", "large"));
    EXPECT_FALSE(names_same_file("mine.json", "other.json"));
}

}  // namespace
}  // namespace hetseq
