#include "hetseq/util/rank_time.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

TEST(RankTimeTest, EachStandsAtItsPlace) {
    for (std::size_t i = 0; i < rank_time_texts.size(); ++i)
        EXPECT_EQ(static_cast<std::size_t>(rank_time_texts[i].time), i) << rank_time_texts[i].key;
}

TEST(RankTimeTest, TheDocsNameEach) {
    std::ifstream file("docs/outputs.md");
    std::ostringstream text;
    text << file.rdbuf();
    for (const RankTimeText& time : rank_time_texts)
        EXPECT_THAT(
            text.str(),
            HasSubstr("`" + std::string(time.key) + "` (" + std::string(time.meaning) + ")"));
}

TEST(RankTimeTest, ValuesAreFoundByTheirTime) {
    RankTimes times{{RankTime::wait, 3}, {RankTime::data, 1}};
    EXPECT_EQ(times[RankTime::wait], 3);
    EXPECT_EQ(times[RankTime::data], 1);
    EXPECT_FALSE(times[RankTime::compute]);
}

}  // namespace
}  // namespace hetseq
