#include "hetseq/train/validation/kept_memory.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(KeptMemoryTest, AQuarterOfTheMemoryIsAllowedAndNoMore) {
    constexpr std::int64_t mib = 1 << 20;

    EXPECT_NO_THROW(check_room_for_kept(256 * mib, 1024));
    try {
        check_room_for_kept(257 * mib, 1024);
        ADD_FAILURE() << "it is not refused";
    } catch (const BadConfig& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("257 MiB"));
        EXPECT_THAT(error.what(), testing::HasSubstr("256 MiB are a quarter"));
    }
}

}  // namespace
}  // namespace hetseq
