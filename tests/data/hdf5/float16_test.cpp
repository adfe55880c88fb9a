#include "hetseq/data/hdf5/float16.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// IEEE 754-2019, table 3.5: binary16 has a bias of 15 and 11 bits of precision.
TEST(Float16Test, KnownValues) {
    EXPECT_EQ(float16_value(0x3c00), 1.0);
    EXPECT_EQ(float16_value(0xc000), -2.0);
    EXPECT_EQ(float16_value(0x7bff), 65504.0);
    EXPECT_EQ(float16_value(0x0400), std::ldexp(1, -14));  // the smallest normal one
    EXPECT_EQ(float16_value(0x0001), std::ldexp(1, -24));  // the smallest of all
    EXPECT_EQ(float16_value(0x3555), 0.333251953125);
    EXPECT_EQ(float16_value(0xfc00), -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(float16_value(0x7e00)));
    EXPECT_TRUE(std::signbit(float16_value(0x8000)));
}

TEST(Float16Test, EveryValueIsItsOwnNearest) {
    for (unsigned bits = 0; bits <= 0xffff; ++bits) {
        const double value = float16_value(static_cast<std::uint16_t>(bits));
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(float16_value(float16_bits(value))));
        } else {
            EXPECT_EQ(float16_bits(value), bits);
        }
    }
}

TEST(Float16Test, RoundsToTheNearestAndTiesToEven) {
    for (unsigned bits = 0; bits < 0x7bff; ++bits) {  // each positive one and the next
        const double low = float16_value(static_cast<std::uint16_t>(bits));
        const double high = float16_value(static_cast<std::uint16_t>(bits + 1));
        const double middle = (low + high) / 2;  // exact
        EXPECT_EQ(float16_bits(middle), bits % 2 == 0 ? bits : bits + 1);
        EXPECT_EQ(float16_bits(std::nextafter(middle, 0)), bits);
        EXPECT_EQ(float16_bits(std::nextafter(middle, 1e9)), bits + 1);
    }
    EXPECT_EQ(float16_bits(65519.99), 0x7bff);
    EXPECT_EQ(float16_bits(65520), 0x7c00);
    EXPECT_EQ(float16_bits(-1e300), 0xfc00);
}

}  // namespace
}  // namespace hetseq
