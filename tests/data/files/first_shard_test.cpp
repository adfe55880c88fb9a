#include "hetseq/data/files/first_shard.hpp"

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

#include "data/generated_corpus.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FirstShardTest : public testing::Test {
protected:
    void SetUp() override {
        initialize_hdf5();
        const auto numbered = [](std::int64_t row, std::int64_t column) {
            return 10 * row + column;
        };
        test::write_datasets(shard_,
                             {{{"rows", H5T_STD_I32LE, {3, 2}, {}}, numbered},
                              {{"flat", H5T_STD_I16BE, {4}, {}}, numbered},
                              {{"none", H5T_STD_I32LE, {0, 2}, {}}, numbered},
                              {{"real", H5T_IEEE_F32LE, {4}, {}}, numbered}});
        const Hdf5File file{HETSEQ_HDF5_TRY(H5Fopen(shard_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT))};
        const Hdf5Group group{HETSEQ_HDF5_TRY(
            H5Gcreate2(file.get(), "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))};
        const std::array<hsize_t, 3> sizes{1, 2, 2};
        const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(3, sizes.data(), nullptr))};
        const Hdf5Dataset cube{HETSEQ_HDF5_TRY(H5Dcreate2(file.get(),
                                                          "cube",
                                                          H5T_STD_I32LE,
                                                          space.get(),
                                                          H5P_DEFAULT,
                                                          H5P_DEFAULT,
                                                          H5P_DEFAULT))};
    }

    test::TemporaryFolder folder_;
    std::string shard_ = folder_ / "a.h5";
};

TEST_F(FirstShardTest, WholeRowsAreReadUpToTheNumberOfIntegers) {
    EXPECT_THAT(read_first_integers(shard_, "rows", 100), ElementsAre(0, 1, 10, 11, 20, 21));
    EXPECT_THAT(read_first_integers(shard_, "rows", 5), ElementsAre(0, 1, 10, 11));
    EXPECT_THAT(read_first_integers(shard_, "rows", 1), IsEmpty());
    EXPECT_THAT(read_first_integers(shard_, "flat", 3), ElementsAre(0, 10, 20));
    EXPECT_THAT(read_first_integers(shard_, "none", 3), IsEmpty());
}

TEST_F(FirstShardTest, TheFirstOfSeveralIsMeant) {
    test::write_datasets(folder_ / "b.h5",
                         {{{"flat", H5T_STD_I32LE, {1}, {}}, [](auto, auto) { return 7; }}});
    EXPECT_THAT(read_first_integers(folder_ / "*.h5", "flat", 1), ElementsAre(0));
    EXPECT_TRUE(first_shard_holds(folder_ / "*.h5", "rows"));
    EXPECT_FALSE(first_shard_holds(folder_ / "b.h5", "rows"));
}

TEST_F(FirstShardTest, WhatIsNoDatasetOfIntegersIsRefused) {
    EXPECT_THROW(read_first_integers(shard_, "real", 4), BadData);
    EXPECT_THROW(read_first_integers(shard_, "cube", 4), BadData);
    EXPECT_THROW(read_first_integers(shard_, "group", 4), BadData);
    EXPECT_THROW(read_first_integers(shard_, "other", 4), BadData);
    EXPECT_THROW(read_first_integers(folder_ / "c.h5", "rows", 4), MissingInput);
    folder_.write("text.h5", "no HDF5");
    EXPECT_THROW(read_first_integers(folder_ / "text.h5", "rows", 4), BadData);
    EXPECT_FALSE(first_shard_holds(folder_ / "text.h5", "rows"));
}

}  // namespace
}  // namespace hetseq
