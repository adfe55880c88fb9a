#include "hetseq/data/files/prediction_file.hpp"

#include <cstring>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "data/error_text.hpp"
#include "data/read_dataset.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::TemporaryFolder;
using test::thrown_by;
using testing::ElementsAre;
using testing::HasSubstr;

/// Of samples [begin, begin + count): a matrix, a number and a ragged row a sample.
std::vector<Prediction> predictions(std::int64_t begin, std::int64_t count) {
    const at::Tensor ids = at::arange(begin, begin + count);
    const at::Tensor lengths = ids.remainder(3);
    return {{"matrix", ids.to(at::kFloat).view({count, 1, 1}).expand({count, 2, 3})},
            {"number", ids},
            {"words", ids.repeat_interleave(lengths).to(at::kInt), lengths}};
}

void write_all(const std::filesystem::path& path, const std::vector<std::int64_t>& begins) {
    PredictionFile file(path, 10);
    file.set_attribute("run", std::string("somewhere"));
    for (const std::int64_t begin : begins)
        file.write(begin, begin == 8 ? 2 : 4, predictions(begin, begin == 8 ? 2 : 4));
    EXPECT_EQ(file.waiting_bytes(), 0);
    file.commit();
}

TEST(PredictionFileTest, RowsStandInTheOrderOfTheData) {
    const TemporaryFolder folder;
    const std::string path = folder / "out.h5";

    write_all(path, {4, 8, 0});

    EXPECT_THAT(test::read_dataset(path, "number"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    const auto matrix = test::read_dataset(path, "matrix");
    ASSERT_EQ(matrix.size(), 60u);
    for (std::size_t i = 0; i < matrix.size(); ++i)
        EXPECT_EQ(matrix[i], std::int64_t(i / 6));
    const auto words = test::read_rows(path, "words");
    ASSERT_EQ(words.size(), 10u);
    for (std::size_t i = 0; i < words.size(); ++i)
        EXPECT_EQ(words[i], std::vector<std::int32_t>(i % 3, std::int32_t(i)));
}

TEST(PredictionFileTest, TheOrderOfWritingDoesNotChangeAByte) {
    const TemporaryFolder folder;
    write_all(folder / "a.h5", {0, 4, 8});
    write_all(folder / "b.h5", {8, 4, 0});

    EXPECT_EQ(folder.read("a.h5"), folder.read("b.h5"));
}

// Several chunks of two datasets with rows of unequal length, and one with rows of one shape.
TEST(PredictionFileTest, TheOrderOfWritingDoesNotChangeWhereChunksLie) {
    const TemporaryFolder folder;
    const auto write = [&](const std::string& name, const std::vector<std::int64_t>& order) {
        PredictionFile file(folder / name, std::ssize(order));
        for (const std::int64_t sample : order) {
            const auto row = [&](std::int64_t length) {
                return Prediction{"row" + std::to_string(length),
                                  at::full({length + sample}, sample, at::kInt),
                                  at::full({1}, length + sample)};
            };
            file.write(sample, 1, {row(30000), {"number", at::full({1}, sample)}, row(20000)});
        }
        file.commit();
        return folder.read(name);
    };

    const std::string expected = write("a.h5", {0, 1, 2, 3, 4, 5, 6, 7});

    EXPECT_EQ(write("b.h5", {7, 6, 5, 4, 3, 2, 1, 0}), expected);
    EXPECT_EQ(write("c.h5", {1, 0, 4, 3, 2, 7, 5, 6}), expected);
}

TEST(PredictionFileTest, EveryTypeIsKept) {
    const TemporaryFolder folder;
    const std::string path = folder / "out.h5";
    const std::vector<at::ScalarType> types{at::kDouble,
                                            at::kFloat,
                                            at::kHalf,
                                            at::kLong,
                                            at::kInt,
                                            at::kShort,
                                            at::kChar,
                                            at::kByte,
                                            at::kBFloat16};
    PredictionFile file(path, 3);
    std::vector<Prediction> all;
    for (const at::ScalarType type : types)
        all.push_back({at::toString(type), at::arange(3, 6).to(type)});
    all.push_back({"Bool", at::arange(3, 6) == 4});

    file.write(0, 3, all);
    const auto datasets = file.datasets();
    file.commit();

    for (const at::ScalarType type : types)
        EXPECT_THAT(test::read_dataset(path, at::toString(type)), ElementsAre(3, 4, 5)) << type;
    EXPECT_EQ(datasets[2].type, "float16");
    EXPECT_EQ(datasets[8].type, "float32");
    EXPECT_EQ(datasets[9].type, "bool");
}

TEST(PredictionFileTest, NothingIsLeftWithoutACommit) {
    const TemporaryFolder folder;
    {
        PredictionFile file(folder / "out.h5", 10);
        file.write(0, 4, predictions(0, 4));
        EXPECT_EQ(folder.size(), 1);
        EXPECT_FALSE(std::filesystem::exists(folder / "out.h5"));
    }
    EXPECT_EQ(folder.size(), 0);
}

TEST(PredictionFileTest, RowsThatWaitAreCounted) {
    const TemporaryFolder folder;
    PredictionFile file(folder / "out.h5", 10);

    file.write(4, 4, predictions(4, 4));  // 1, 2, 0 and 1 words of 4 bytes

    EXPECT_EQ(file.waiting_bytes(), 16);
    file.write(0, 4, predictions(0, 4));
    EXPECT_EQ(file.waiting_bytes(), 0);
    EXPECT_EQ(file.samples(), 8);
}

TEST(PredictionFileTest, PredictionsThatNoFileCanHoldAreRefused) {
    const at::Tensor rows = at::zeros({2, 3});
    const at::Tensor lengths = at::tensor({1, 1}, at::kLong);
    const std::pair<std::vector<Prediction>, const char*> cases[] = {
        {{}, "no prediction"},
        {{{"", rows}}, "a name is"},
        {{{"a/b", rows}}, "a name is"},
        {{{"a_offsets", rows}}, "a name is"},
        {{{"a", rows}, {"a", rows}}, "two have this name"},
        {{{"a", {}}}, "no rows"},
        {{{"a", at::zeros({})}}, "no rows"},
        {{{"a", at::zeros({3, 3})}}, "3 rows for a batch of 2 samples"},
        {{{"a", at::zeros({2}, at::kComplexFloat)}}, "its type is"},
        {{{"a", rows, at::tensor({2}, at::kLong)}}, "lengths of 1 rows"},
        {{{"a", at::zeros({3}), lengths}}, "3 values, and its rows have 2"},
        {{{"a", rows, at::tensor({3, -1}, at::kLong)}}, "negative"}};
    for (const auto& [bad, why] : cases) {
        const TemporaryFolder folder;
        PredictionFile file(folder / "out.h5", 10);

        const auto thrown = thrown_by([&] { file.write(0, 2, bad); });

        EXPECT_EQ(thrown.code, ExitCode::config) << why;
        EXPECT_THAT(thrown.text, HasSubstr(why));
    }
}

TEST(PredictionFileTest, LaterPredictionsAreLikeTheFirst) {
    const std::vector<Prediction> others[] = {{{"a", at::zeros({2, 4})}},
                                              {{"a", at::zeros({2, 3}, at::kDouble)}},
                                              {{"b", at::zeros({2, 3})}},
                                              {{"a", at::zeros({2, 3})}, {"b", at::zeros({2})}},
                                              {{"a", at::zeros({2, 3}), at::ones({2}, at::kLong)}}};
    for (const std::vector<Prediction>& other : others) {
        const TemporaryFolder folder;
        PredictionFile file(folder / "out.h5", 10);
        file.write(0, 2, {{"a", at::zeros({2, 3})}});

        const auto thrown = thrown_by([&] { file.write(2, 2, other); });

        EXPECT_EQ(thrown.code, ExitCode::config);
        EXPECT_THAT(thrown.text, HasSubstr("from batch to batch"));
    }
}

TEST(PredictionFileTest, ADiskWithoutRoomIsFoundAtTheFirstPiece) {
    const TemporaryFolder folder;
    PredictionFile file(folder / "out.h5", std::int64_t{1} << 50);

    const auto thrown = thrown_by([&] { file.write(0, 2, {{"a", at::zeros({2, 64})}}); });

    EXPECT_EQ(thrown.code, ExitCode::io);
    EXPECT_THAT(thrown.text, HasSubstr("do not fit on the disk"));
}

TEST(PredictionFileTest, AFolderThatIsNotThereIsAnError) {
    const TemporaryFolder folder;

    EXPECT_EQ(thrown_by([&] { PredictionFile(folder / "none/out.h5", 10); }).code, ExitCode::io);
}

}  // namespace
}  // namespace hetseq
