#include "hetseq/util/files/crc32c.hpp"

#include <string>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms for "123456789".
TEST(Crc32cTest, GivesThePublishedValues) {
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
    EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
    EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
    EXPECT_EQ(crc32c(""), 0U);
}

}  // namespace
}  // namespace hetseq
