#include "hetseq/prepare/prepare_classified.hpp"

#include <string>

#include <gtest/gtest.h>

#include "hetseq/data/files/attachment.hpp"
#include "hetseq/data/files/first_shard.hpp"

#include "data/error_text.hpp"
#include "data/read_dataset.hpp"
#include "data/text_files.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PrepareClassifiedTest : public testing::Test {
protected:
    PrepareClassifiedOptions options(const std::string& text,
                                     const std::string& name = "train.tsv") {
        return {.train = {file(name, text)},
                .vocabulary = file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nlow\n##est\nnew\n"),
                .output = folder_ / "out"};
    }
    std::string file(const std::string& name, const std::string& text, bool as_gzip = false) {
        test::write_text(folder_ / name, text, as_gzip);
        return folder_ / name;
    }
    std::string shard(const std::string& name) { return folder_ / ("out/" + name); }
    static test::Thrown thrown(const PrepareClassifiedOptions& options) {
        return test::thrown_by([&] { prepare_classified(options); });
    }

    test::TemporaryFolder folder_;
};

TEST_F(PrepareClassifiedTest, RowsHaveIdsAndTheNumbersOfLabels) {
    const PreparedClassified prepared =
        prepare_classified(options("new lowest\tgood\nlow\tbad\n\nzz\tgood\r\n"));

    const std::string path = shard("train-00000-of-00001.h5");
    EXPECT_THAT(
        test::read_rows(path, "input_ids"),
        ElementsAre(ElementsAre(2, 6, 4, 5, 3), ElementsAre(2, 4, 3), ElementsAre(2, 1, 3)));
    EXPECT_THAT(test::read_dataset(path, "labels"), ElementsAre(1, 0, 1));
    EXPECT_FALSE(first_shard_holds(path, "second_segments"));
    EXPECT_EQ(read_attached_text(path, "labels.txt"), "bad\ngood\n");
    EXPECT_THAT(read_attached_text(path, "vocab.txt").value_or(""), HasSubstr("##est"));
    const PreparedClassifiedSet& set = prepared.sets.at(0);
    EXPECT_EQ(set.rows, 3);
    EXPECT_EQ(set.pieces, 5);
    EXPECT_EQ(set.unknown, 1);
    EXPECT_THAT(set.rows_of_label, ElementsAre(1, 2));
}

// The last column would be the label of each row.
TEST_F(PrepareClassifiedTest, RowsOfAnotherWidthAreNamedByTheirLine) {
    const test::Thrown wide = thrown(options("new\tgood\n\nlow\tnew\tbad\nlow\tbad\n"));
    EXPECT_EQ(wide.code, ExitCode::bad_data);
    EXPECT_THAT(wide.text, HasSubstr("train.tsv, line 3 has 3 columns (the first row has 2)"));

    PrepareClassifiedOptions named =
        options("text,label\n\"low\n, new\",a\nlow, new,b\nlow,a\n", "train.csv");
    named.label_column = "label";
    EXPECT_THAT(thrown(named).text,
                HasSubstr("train.csv, line 4 has 3 columns (the first row has 2)"));

    EXPECT_THAT(thrown(options("1\tlow\tgood\n2\tbad\n")).text, HasSubstr("line 2 has 2 columns"));
}

TEST_F(PrepareClassifiedTest, AReturnAloneEndsNoRow) {
    const test::Thrown returns = thrown(options("new\tgood\rlow\tbad\rlow\tgood\r"));
    EXPECT_EQ(returns.code, ExitCode::bad_data);
    EXPECT_THAT(returns.text, HasSubstr("train.tsv, line 1 holds a carriage return"));
}

TEST_F(PrepareClassifiedTest, LabelsOfAFileOfWindowsAreFound) {
    PrepareClassifiedOptions given = options("new\tgood\r\nlow\tbad\r\n");
    given.labels = file("labels.txt", "\xEF\xBB\xBFgood\r\nbad\r\n");

    EXPECT_THAT(prepare_classified(given).labels, ElementsAre("good", "bad"));
}

std::string warning_for(const PrepareClassifiedOptions& options) {
    testing::internal::CaptureStderr();
    prepare_classified(options);
    return testing::internal::GetCapturedStderr();
}

TEST_F(PrepareClassifiedTest, AFirstRowThatLooksLikeNamesIsWarnedOf) {
    const std::string warning = "looks like names of columns: give --header";
    PrepareClassifiedOptions given = options("Sentence\tpolarity\nnew\tgood\nlow\tbad\n");
    given.overwrite = true;
    EXPECT_THAT(warning_for(given), HasSubstr(warning));
    given.train = {file("train.tsv", "words\tpolarity\nnew\t1\nlow\t0\n")};
    EXPECT_THAT(warning_for(given), HasSubstr(warning));

    given.has_header = true;
    EXPECT_THAT(warning_for(given), testing::Not(HasSubstr(warning)));
    given.has_header = false;
    given.train = {file("train.tsv", "new\tgood\nlow\tbad\n")};
    EXPECT_THAT(warning_for(given), testing::Not(HasSubstr(warning)));
}

TEST_F(PrepareClassifiedTest, ColumnsAreNamedAndPairsHaveABorder) {
    PrepareClassifiedOptions given = options(
        "\xEF\xBB\xBFid,label,one,two\n1,10,new,\"low, low\"\n2,9,\"low\nnew\",new\n", "train.csv");
    given.valid = {file("valid.csv.gz", "id,label,one,two\n1,9,low,low\n", true)};
    given.text_column = "one";
    given.pair_column = "two";
    given.label_column = "label";
    given.shards = 2;

    const PreparedClassified prepared = prepare_classified(given);

    EXPECT_THAT(prepared.labels, ElementsAre("9", "10"));
    EXPECT_THAT(test::read_rows(shard("train-00000-of-00002.h5"), "input_ids"),
                ElementsAre(ElementsAre(2, 6, 3, 4, 1, 4, 3)));
    EXPECT_THAT(test::read_dataset(shard("train-00000-of-00002.h5"), "second_segments"),
                ElementsAre(3));
    EXPECT_THAT(test::read_rows(shard("train-00001-of-00002.h5"), "input_ids"),
                ElementsAre(ElementsAre(2, 4, 6, 3, 6, 3)));
    EXPECT_EQ(prepared.sets.at(1).rows, 1);
}

TEST_F(PrepareClassifiedTest, NumbersKeepTheirValues) {
    PrepareClassifiedOptions given = options("text\tscore\nlow\t3.2\nnew\t-1e-3\n");
    given.has_header = true;
    given.is_number = true;

    prepare_classified(given);

    const std::string path = shard("train-00000-of-00001.h5");
    EXPECT_THAT(test::read_numbers(path, "labels"), ElementsAre(3.2, -1e-3));
    EXPECT_EQ(read_attached_text(path, "labels.txt"), "number\n");
}

TEST_F(PrepareClassifiedTest, LongTextsAreCutAndCounted) {
    PrepareClassifiedOptions given = options("low low low low\t1\nnew\t0\n");
    given.max_length = 5;

    const PreparedClassifiedSet set = prepare_classified(given).sets.at(0);

    EXPECT_EQ(set.cut_rows, 1);
    EXPECT_EQ(set.cut_pieces, 1);
}

TEST_F(PrepareClassifiedTest, BadTablesAreRefusedWithTheirLine) {
    EXPECT_THAT(thrown(options("new\tgood\nlow\n")).text, HasSubstr("line 2 has one column"));
    EXPECT_THAT(thrown(options("new\tgood\nlow\t\n")).text, HasSubstr("line 2 has no label"));
    EXPECT_THAT(thrown(options("new\tgood\nl\xFFow\tbad\n")).text,
                HasSubstr("line 2 is not UTF-8"));
    EXPECT_THAT(thrown(options("\n")).text, HasSubstr("holds no text"));
    EXPECT_THAT(thrown(options("new\tgood\nlow\tgood\n")).text, HasSubstr("one label, 'good'"));
    EXPECT_THAT(thrown(options("a,b\n\"new,1\nlow,2\n", "open.csv")).text,
                HasSubstr("line 2 begins a quote that does not end"));
    for (const char* label : {"\"good\n\"", "\"go\tod\""})
        EXPECT_THAT(thrown(options("new,bad\nlow," + std::string(label) + "\n", "lines.csv")).text,
                    HasSubstr("line 2 has a label of several lines or columns"));
}

TEST_F(PrepareClassifiedTest, ColumnsThatAreNotThereAreNamed) {
    PrepareClassifiedOptions given = options("sentence\tlabel\nnew\t1\n");
    given.text_column = "sentense";
    EXPECT_THAT(thrown(given).text, HasSubstr("Did you mean sentence?"));

    given.text_column = "3";
    EXPECT_THAT(thrown(given).text, HasSubstr("line 1 has no column 3"));

    for (const char* last : {"0", "00"}) {
        given.text_column = last;
        EXPECT_EQ(thrown(given).code, ExitCode::config);
    }
}

TEST_F(PrepareClassifiedTest, LabelsMustBeAmongThoseGivenAndNumbersFinite) {
    PrepareClassifiedOptions given = options("new\tgood\nlow\tbad\n");
    given.labels = file("labels.txt", "bad\nfine\n");
    EXPECT_THAT(thrown(given).text, HasSubstr("the text has the label 'good'"));

    given.labels = file("labels.txt", "bad\nfine\nbad\ngood\n");
    EXPECT_THAT(thrown(given).text, HasSubstr("'bad' stands twice in"));
    given.labels = file("labels.txt", "bad\n\ngood\n");
    EXPECT_THAT(thrown(given).text, HasSubstr("has an empty line"));

    given.labels.clear();
    given.is_number = true;
    EXPECT_THAT(thrown(given).text, HasSubstr("line 1 has the label 'good'"));
}

}  // namespace
}  // namespace hetseq
