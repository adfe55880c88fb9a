#include "hetseq/prepare/prepare_images.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "hetseq/data/check_corpus.hpp"
#include "hetseq/data/files/shard_names.hpp"

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "data/idx_files.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::idx_bytes;
using test::thrown_by;
using testing::HasSubstr;

class PrepareImagesTest : public testing::Test {
protected:
    // `n` images of 2 x 3 pixels, all of value i % 100, and labels i % 10.
    void write_pair(const std::string& images, const std::string& labels, std::uint32_t n) {
        std::vector<std::uint8_t> pixels;
        std::vector<std::uint8_t> classes;
        for (std::uint32_t i = 0; i < n; ++i) {
            pixels.insert(pixels.end(), 6, static_cast<std::uint8_t>(i % 100));
            classes.push_back(static_cast<std::uint8_t>(i % 10));
        }
        test::write_gzip(folder_ / images, idx_bytes({n, 2, 3}, pixels));
        test::write_plain(folder_ / labels, idx_bytes({n}, classes));
    }

    PrepareImagesOptions options(const std::vector<std::string>& names, int shards = 1) {
        PrepareImagesOptions options;
        for (const std::string& name : names)
            options.inputs.push_back(folder_ / name);
        options.output = folder_ / "out";
        options.shards = shards;
        return options;
    }

    CorpusReport check(const std::string& spec) {
        return check_corpus(
            alone_,
            spec,
            {"images",
             {{.name = "images", .rank = 3, .type = ElementType::uint8, .row_shape = {2, 3}},
              {.name = "labels", .type = ElementType::uint8, .row_shape = {}, .maximum = 9}}});
    }

    bool nothing_written() const { return !std::filesystem::exists(folder_ / "out"); }

    HostComm alone_ = HostComm::serial();
    test::SharedFolder folder_{alone_};
};

TEST_F(PrepareImagesTest, PairsBecomeShardsNamedAfterThem) {
    write_pair("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte", 25);
    write_pair("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte", 4);

    const auto shards = prepare_images(options({"t10k-images-idx3-ubyte.gz",
                                                "t10k-labels-idx1-ubyte",
                                                "train-images-idx3-ubyte.gz",
                                                "train-labels-idx1-ubyte"},
                                               3));

    ASSERT_EQ(shards.size(), 6U);
    EXPECT_EQ(shards[0].path, folder_ / "out/t10k-00000-of-00003.h5");
    EXPECT_EQ(shards[5].path, folder_ / "out/train-00002-of-00003.h5");
    const CorpusReport train = check(folder_ / "out/train*.h5");
    EXPECT_EQ(train.samples, 25);
    EXPECT_EQ(train.shards.size(), 3U);
    EXPECT_EQ(train.fields[0].type, "uint8");
    EXPECT_EQ(number_text(train.fields[0].sum), std::to_string(6 * 24 * 25 / 2));
    EXPECT_EQ(number_text(train.fields[1].sum), std::to_string(45 + 45 + 10));
    EXPECT_EQ(check(folder_ / "out/t10k*.h5").samples, 4);
}

TEST_F(PrepareImagesTest, MoreShardsThanImagesLeavesSomeEmpty) {
    write_pair("a-images", "a-labels", 2);

    prepare_images(options({"a-images", "a-labels"}, 5));

    EXPECT_EQ(check(folder_ / "out").samples, 2);
    EXPECT_EQ(check(folder_ / "out").shards.size(), 5U);
}

TEST_F(PrepareImagesTest, ShardsAreReplacedOnlyWhereThatIsAsked) {
    write_pair("a-images", "a-labels", 2);
    write_pair("b-images", "b-labels", 7);
    prepare_images(options({"a-images", "a-labels"}, 2));
    PrepareImagesOptions others = options({"b-images", "b-labels"});

    const auto thrown = thrown_by([&] { prepare_images(others); });
    const std::int64_t kept = check(folder_ / "out").samples;
    others.overwrite = true;
    prepare_images(others);

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text, HasSubstr("a-00000-of-00002.h5 exists (2 shards are there"));
    EXPECT_EQ(kept, 2);
    EXPECT_EQ(check(folder_ / "out").samples, 7);
}

// As a process leaves it that dies while it names its shards.
TEST_F(PrepareImagesTest, AnInterruptedPreparationIsNotRead) {
    write_pair("a-images", "a-labels", 4);
    prepare_images(options({"a-images", "a-labels"}, 2));
    begin_replacing_shards(folder_ / "out");
    std::filesystem::copy_file(folder_ / "a-images", folder_ / "out/a-00000-of-00002.h5");

    for (const char* spec : {"out", "out/*.h5", "out/a-00000-of-00002.h5"})
        EXPECT_THAT(thrown_by([&] { check(folder_ / spec); }).text,
                    HasSubstr("are not complete (it holds prepare.unfinished"))
            << spec;

    PrepareImagesOptions again = options({"a-images", "a-labels"}, 2);
    again.overwrite = true;
    prepare_images(again);
    EXPECT_EQ(check(folder_ / "out").samples, 4);
}

TEST_F(PrepareImagesTest, UnequalCountsAreRefused) {
    write_pair("a-images", "a-labels", 4);
    write_pair("b-images", "b-labels", 5);

    const auto thrown = thrown_by([&] { prepare_images(options({"a-images", "b-labels"})); });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("do not belong together (4 images, 5 labels)"));
    EXPECT_TRUE(nothing_written());
}

TEST_F(PrepareImagesTest, ALoneFileIsRefused) {
    write_pair("a-images", "a-labels", 4);

    const auto thrown = thrown_by([&] { prepare_images(options({"a-images"})); });

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text, HasSubstr("(1 files of images, 0 of labels)"));
    EXPECT_TRUE(nothing_written());
}

TEST_F(PrepareImagesTest, ATruncatedGzipIsRefused) {
    write_pair("a-images", "a-labels", 400);
    std::filesystem::resize_file(folder_ / "a-images",
                                 std::filesystem::file_size(folder_ / "a-images") - 9);

    const auto thrown = thrown_by([&] { prepare_images(options({"a-images", "a-labels"})); });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("a-images is truncated or damaged"));
    EXPECT_TRUE(nothing_written());
}

TEST_F(PrepareImagesTest, AMissingFileIsNamed) {
    const auto thrown = thrown_by([&] { prepare_images(options({"none", "nothing"})); });

    EXPECT_EQ(thrown.code, ExitCode::missing_input);
    EXPECT_THAT(thrown.text, HasSubstr("no such file: " + (folder_ / "none")));
    EXPECT_TRUE(nothing_written());
}

}  // namespace
}  // namespace hetseq
