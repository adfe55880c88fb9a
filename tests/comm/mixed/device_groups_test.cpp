#include "comm/mixed/device_groups.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RankDevice cpu{};

RankDevice gpu(const std::string& name, const std::string& version = "2.28.9") {
    return {name, version};
}

TEST(DeviceGroupsTest, RanksOnCpusMeetOverMpiAlone) {
    const DeviceGroups groups = group_devices({cpu, cpu, cpu});

    EXPECT_THAT(groups.nccl, IsEmpty());
    EXPECT_THAT(groups.meeting(), ElementsAre(0, 1, 2));
    EXPECT_TRUE(groups.uniform());
}

TEST(DeviceGroupsTest, NcclAloneJoinsGpusOfTheirOwn) {
    const DeviceGroups groups = group_devices({gpu("a"), gpu("b"), gpu("c")});

    EXPECT_THAT(groups.nccl, ElementsAre(ElementsAre(0, 1, 2)));
    EXPECT_TRUE(groups.uniform());
}

TEST(DeviceGroupsTest, AGroupsFirstRankMeetsTheCpus) {
    const DeviceGroups groups = group_devices({cpu, gpu("a"), gpu("b"), cpu, gpu("c")});

    EXPECT_THAT(groups.nccl, ElementsAre(ElementsAre(1, 2, 4)));
    EXPECT_THAT(groups.on_cpu, ElementsAre(0, 3));
    EXPECT_THAT(groups.meeting(), ElementsAre(0, 1, 3));
    EXPECT_EQ(groups.speaker_of(4), 1);
    EXPECT_EQ(groups.speaker_of(3), 3);
    EXPECT_EQ(groups.meeting_rank_of(4), 1);
    EXPECT_EQ(groups.meeting_rank_of(3), 2);
    EXPECT_EQ(groups.group_of(0), nullptr);
    EXPECT_FALSE(groups.uniform());
}

TEST(DeviceGroupsTest, EachFurtherRankOfAGpuIsAGroup) {
    const std::vector<RankDevice> devices{gpu("a"), gpu("b"), gpu("a"), gpu("a")};

    const DeviceGroups groups = group_devices(devices);

    EXPECT_THAT(groups.nccl, ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
    EXPECT_THAT(groups.meeting(), ElementsAre(0, 2, 3));
    EXPECT_THAT(reasons_of(groups, devices), ElementsAre("one GPU is shared by ranks 0, 2, 3"));
}

TEST(DeviceGroupsTest, UnlikeVersionsOfNcclAreNotJoined) {
    const std::vector<RankDevice> devices{
        gpu("a", "2.21.5"), gpu("b", "2.28.9"), gpu("c", "2.21.5"), cpu};

    const DeviceGroups groups = group_devices(devices);

    EXPECT_THAT(groups.nccl, ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
    EXPECT_THAT(reasons_of(groups, devices),
                ElementsAre("no GPU is used by rank 3",
                            HasSubstr("2.21.5 by ranks 0, 2, 2.28.9 by rank 1")));
}

}  // namespace
}  // namespace hetseq
