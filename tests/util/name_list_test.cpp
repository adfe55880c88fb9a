#include "hetseq/util/name_list.hpp"

#include <set>

#include <gtest/gtest.h>

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using Names = std::vector<std::string>;

Names split_where(const std::string& list, const std::set<std::string>& there) {
    return split_names(list, [&](const std::string& name) { return there.contains(name); });
}

TEST(NameListTest, CommasDivideNames) {
    EXPECT_EQ(split_where("a, b,,c", {"a", "b", "c"}), (Names{"a", "b", "c"}));
    EXPECT_EQ(split_where("a,none,c", {"a", "c"}), (Names{"a", "none", "c"}));
    EXPECT_EQ(split_where(" ", {}), Names{});
}

TEST(NameListTest, ANameThatIsThereKeepsItsCommas) {
    EXPECT_EQ(split_where("lr=0.1,bs=2", {"lr=0.1,bs=2"}), Names{"lr=0.1,bs=2"});
    EXPECT_EQ(split_where("x,r/lr=0.1,bs=2/a.h5,r/lr=0.1,bs=2/b.h5",
                          {"x", "r/lr=0.1,bs=2/a.h5", "r/lr=0.1,bs=2/b.h5"}),
              (Names{"x", "r/lr=0.1,bs=2/a.h5", "r/lr=0.1,bs=2/b.h5"}));
}

// A folder lr=0.1 of another sweep stands beside it.
TEST(NameListTest, TheLongerNameIsMeantWhereTheRestIsNone) {
    EXPECT_EQ(split_where("x,lr=0.1,bs=2", {"x", "lr=0.1", "lr=0.1,bs=2"}),
              (Names{"x", "lr=0.1,bs=2"}));
}

TEST(NameListTest, ABackslashKeepsAComma) {
    EXPECT_EQ(split_where("a\\,b,c", {}), (Names{"a\\,b", "c"}));
    EXPECT_EQ(unescaped_name("a\\,b\\[1\\]\\x"), "a,b[1]\\x");
    EXPECT_EQ(unescaped_name(escaped_name("a,b[1]*?\\")), "a,b[1]*?\\");
    EXPECT_FALSE(is_pattern(escaped_name("a,b[1]*?\\")));
    EXPECT_TRUE(is_pattern("a[1]"));
}

TEST(NameListTest, FilesAreTakenAsTheyAreNamed) {
    const test::TemporaryFolder folder;
    folder.write("a,b", "");
    folder.write("c\\,d", "");
    const std::string at = (folder / "").string();

    EXPECT_EQ(split_file_names(at + "a,b"), Names{at + "a,b"});
    EXPECT_EQ(split_file_names(at + "a\\,b," + at + "new\\,one"),
              (Names{at + "a,b", at + "new,one"}));
    EXPECT_EQ(split_file_names(at + "c\\,d"), Names{at + "c\\,d"});
}

}  // namespace
}  // namespace hetseq
