#include "hetseq/data/first_rows.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

#include "data/generated_corpus.hpp"
#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

// Rows 0, 1 and 2 of "words" have 2, 0 and 3 values.
constexpr std::array<std::int64_t, 4> begins{0, 2, 2, 5};

CorpusSchema rows_schema() {
    return {.kind = "rows",
            .fields = {{.name = "pairs", .rank = 2, .type = ElementType::int64, .row_shape = {-1}},
                       {.name = "reals", .type = ElementType::float32},
                       {.name = "words", .type = ElementType::int32, .is_ragged = true}}};
}

class FirstRowsTest : public testing::Test {
protected:
    void write(const std::string& name, std::uint64_t samples) const {
        const auto numbered = [](std::int64_t row, std::int64_t column) {
            return 10 * row + column;
        };
        const std::uint64_t values = samples > 0 ? static_cast<std::uint64_t>(begins[samples]) : 0;
        test::write_datasets(folder_ / name,
                             {{{"pairs", H5T_STD_I16LE, {samples, 2}, {}}, numbered},
                              {{"reals", H5T_IEEE_F64LE, {samples}, {}}, numbered},
                              {{"words", H5T_STD_U16LE, {values}, {}}, numbered},
                              {{"words_offsets", H5T_STD_I64LE, {samples + 1}, {}},
                               [](std::int64_t row, std::int64_t) {
                                   return begins[static_cast<std::size_t>(row)];
                               }}});
    }
    LoadedShare::Rows read(std::int64_t most) const {
        return first_rows(folder_.path().string(), rows_schema(), most);
    }

    void SetUp() override { initialize_hdf5(); }
    test::TemporaryFolder folder_;
};

TEST_F(FirstRowsTest, AreThoseOfTheFirstShardThatHasAny) {
    write("a.h5", 0);
    write("b.h5", 3);

    const LoadedShare::Rows all = read(64), two = read(2);

    EXPECT_TRUE(all.sample_ids.equal(at::arange(3)));
    EXPECT_TRUE(
        all.fields.at("pairs").equal(at::tensor({0, 1, 10, 11, 20, 21}, at::kLong).view({3, 2})));
    EXPECT_TRUE(all.fields.at("reals").equal(at::tensor({0.0, 10.0, 20.0}, at::kFloat)));
    EXPECT_TRUE(all.fields.at("words").equal(at::tensor({0, 10, 20, 30, 40}, at::kInt)));
    EXPECT_TRUE(all.fields.at("words_offsets").equal(at::tensor({0, 2, 2, 5}, at::kLong)));
    EXPECT_TRUE(two.sample_ids.equal(at::arange(2)));
    EXPECT_TRUE(two.fields.at("pairs").equal(at::tensor({0, 1, 10, 11}, at::kLong).view({2, 2})));
    EXPECT_TRUE(two.fields.at("words").equal(at::tensor({0, 10}, at::kInt)));
}

TEST_F(FirstRowsTest, ACorpusWithoutSamplesIsRefused) {
    write("a.h5", 0);

    EXPECT_THROW(read(64), BadData);
}

}  // namespace
}  // namespace hetseq
