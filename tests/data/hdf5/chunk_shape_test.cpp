#include "hetseq/data/hdf5/chunk_shape.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Shape = std::vector<std::int64_t>;

// The chunks of the two shards that NVIDIA's program wrote through h5py (expected.json).
TEST(ChunkShapeTest, IsThatOfNvidiasShards) {
    EXPECT_EQ(chunk_shape({2344, 128}, 4), (Shape{293, 16}));
    EXPECT_EQ(chunk_shape({2344, 128}, 1), (Shape{293, 32}));
    EXPECT_EQ(chunk_shape({2344, 20}, 4), (Shape{586, 5}));
    EXPECT_EQ(chunk_shape({2344}, 1), (Shape{2344}));
    EXPECT_EQ(chunk_shape({2549, 128}, 4), (Shape{319, 16}));
    EXPECT_EQ(chunk_shape({2549, 128}, 1), (Shape{319, 32}));
    EXPECT_EQ(chunk_shape({2549, 20}, 4), (Shape{638, 5}));
    EXPECT_EQ(chunk_shape({2549}, 1), (Shape{2549}));
}

// What h5py 3.16.0 gave: guess_chunk(shape, None, bytes).
TEST(ChunkShapeTest, IsThatOfH5pyForOtherSizes) {
    EXPECT_EQ(chunk_shape({1, 128}, 4), (Shape{1, 128}));
    EXPECT_EQ(chunk_shape({1}, 1), (Shape{1}));
    EXPECT_EQ(chunk_shape({7, 5}, 4), (Shape{7, 5}));
    EXPECT_EQ(chunk_shape({180000, 128}, 4), (Shape{5625, 4}));
    EXPECT_EQ(chunk_shape({180000, 128}, 1), (Shape{5625, 8}));
    EXPECT_EQ(chunk_shape({180000, 20}, 4), (Shape{5625, 2}));
    EXPECT_EQ(chunk_shape({180000}, 1), (Shape{11250}));
    EXPECT_EQ(chunk_shape({37123, 512}, 4), (Shape{1161, 16}));
    EXPECT_EQ(chunk_shape({37123, 512}, 1), (Shape{1161, 32}));
    EXPECT_EQ(chunk_shape({37123, 80}, 4), (Shape{2321, 5}));
    EXPECT_EQ(chunk_shape({2000001, 512}, 4), (Shape{15626, 4}));
    EXPECT_EQ(chunk_shape({2000001}, 1), (Shape{15626}));
    EXPECT_EQ(chunk_shape({100000000, 512}, 4), (Shape{195313, 1}));
}

}  // namespace
}  // namespace hetseq
