#include "hetseq/prepare/prepare_tagged.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "hetseq/data/files/attachment.hpp"

#include "data/error_text.hpp"
#include "data/read_dataset.hpp"
#include "data/text_files.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PrepareTaggedTest : public testing::Test {
protected:
    PrepareTaggedOptions options(const std::string& text) {
        return {.train = {file("train.tsv", text)},
                .vocabulary = file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nlow\n##est\nnew\n"),
                .output = folder_ / "out"};
    }
    std::string file(const std::string& name, const std::string& text, bool as_gzip = false) {
        test::write_text(folder_ / name, text, as_gzip);
        return folder_ / name;
    }
    std::string shard(const std::string& name) { return folder_ / ("out/" + name); }
    std::string message_for(const std::string& text) {
        const test::Thrown thrown = test::thrown_by([&] { prepare_tagged(options(text)); });
        EXPECT_EQ(thrown.code, ExitCode::bad_data);
        return thrown.text;
    }

    test::TemporaryFolder folder_;
};

TEST_F(PrepareTaggedTest, AByteOrderMarkBeforeADocumentIsNoWord) {
    const PreparedTagged prepared = prepare_tagged(
        options("\xEF\xBB\xBF-DOCSTART- -X- O O\r\n\r\nlow NN X B-A\r\nnew NN X O\r\n"));

    EXPECT_EQ(prepared.sets.at(0).sentences, 1);
    EXPECT_EQ(prepared.sets.at(0).words, 2);
    EXPECT_THAT(message_for("low\tO\rnew\tO\r"), HasSubstr("line 1 holds a carriage return"));
}

TEST_F(PrepareTaggedTest, LabelsStandAtTheFirstPiecesOfWords) {
    const PreparedTagged prepared =
        prepare_tagged(options("lowest\tB-Z\nnew\tI-Z\n\n\nzz\tO\r\nlow\tB-A\n"));

    const std::string path = shard("train-00000-of-00001.h5");
    EXPECT_THAT(test::read_rows(path, "input_ids"),
                ElementsAre(ElementsAre(2, 4, 5, 6, 3), ElementsAre(2, 1, 4, 3)));
    EXPECT_THAT(test::read_rows(path, "words"), ElementsAre(ElementsAre(1, 3), ElementsAre(1, 2)));
    EXPECT_THAT(test::read_rows(path, "labels"), ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1)));
    EXPECT_THAT(prepared.tags, ElementsAre("O", "B-A", "B-Z", "I-Z"));
    EXPECT_EQ(read_attached_text(path, "labels.txt"), "O\nB-A\nB-Z\nI-Z\n");
    EXPECT_THAT(read_attached_text(path, "vocab.txt").value_or(""), HasSubstr("##est"));
    const PreparedTaggedSet& set = prepared.sets.at(0);
    EXPECT_EQ(set.sentences, 2);
    EXPECT_EQ(set.words, 4);
    EXPECT_EQ(set.pieces, 5);
    EXPECT_EQ(set.unknown, 1);
    EXPECT_EQ(set.entities, 2);
    EXPECT_EQ(set.cut_sentences, 0);
}

TEST_F(PrepareTaggedTest, ColumnsMayBeOthersAndSetsShareTheTags) {
    PrepareTaggedOptions given =
        options("-DOCSTART- -X- O\n\n1 low NN B-A\n2 new NN O\n\n1 new NN O\n");
    given.valid = {file("valid.gz", "1 low NN I-B\n", true)};
    given.word_column = 2;
    given.shards = 2;

    const PreparedTagged prepared = prepare_tagged(given);

    EXPECT_THAT(prepared.tags, ElementsAre("O", "B-A", "I-B"));
    EXPECT_THAT(test::read_rows(shard("train-00000-of-00002.h5"), "labels"),
                ElementsAre(ElementsAre(1, 0)));
    EXPECT_THAT(test::read_rows(shard("train-00001-of-00002.h5"), "labels"),
                ElementsAre(ElementsAre(0)));
    EXPECT_EQ(prepared.sets.at(1).sentences, 1);
    EXPECT_EQ(read_attached_text(shard("valid-00001-of-00002.h5"), "labels.txt"), "O\nB-A\nI-B\n");
}

TEST_F(PrepareTaggedTest, LongSentencesAreCutAndCounted) {
    PrepareTaggedOptions given = options("new\tO\nlowest\tB-A\nlow\tO\n\nlow\tO\n");
    given.max_length = 4;

    const PreparedTaggedSet set = prepare_tagged(given).sets.at(0);

    EXPECT_EQ(set.cut_sentences, 1);
    EXPECT_EQ(set.cut_words, 2);
    EXPECT_EQ(set.words, 2);
    EXPECT_EQ(set.sentences, 2);
}

TEST_F(PrepareTaggedTest, GivenTagsKeepTheirNumbers) {
    PrepareTaggedOptions given = options("low\tO\nnew\tB-A\n");
    given.tags = file("labels.txt", "B-A\nI-A\nO\n");

    prepare_tagged(given);

    EXPECT_THAT(test::read_rows(shard("train-00000-of-00001.h5"), "labels"),
                ElementsAre(ElementsAre(2, 0)));
    given.overwrite = true;
    given.tags = file("few.txt", "O\n");
    EXPECT_THAT(test::thrown_by([&] { prepare_tagged(given); }).text,
                HasSubstr("the text has the tag 'B-A'"));
}

TEST_F(PrepareTaggedTest, TheSameTextGivesTheSameBytes) {
    const auto bytes = [&](const std::string& folder) {
        PrepareTaggedOptions given = options("low\tO\nnew\tB-A\n");
        given.output = folder_ / folder;
        prepare_tagged(given);
        std::ifstream file{given.output + "/train-00000-of-00001.h5", std::ios::binary};
        return std::string{std::istreambuf_iterator<char>{file}, {}};
    };

    const std::string first = bytes("first");

    EXPECT_GT(first.size(), 1000U);
    EXPECT_EQ(first, bytes("second"));
}

TEST_F(PrepareTaggedTest, MistakesNameFileAndLine) {
    EXPECT_THAT(message_for("low\tO\nnew\tDisease\n"),
                HasSubstr("train.tsv, line 2 has the tag 'Disease'"));
    EXPECT_THAT(message_for("low\tO\n\nnew\n"), HasSubstr("train.tsv, line 3 has one column"));
    EXPECT_THAT(message_for("low\tO\n\tO\n"), HasSubstr("train.tsv, line 2 has no word"));
    EXPECT_THAT(message_for("l\xffw\tO\n"), HasSubstr("train.tsv, line 1 is not UTF-8"));
    EXPECT_THAT(message_for("\n\n"), HasSubstr("train.tsv holds no sentence"));
}

TEST_F(PrepareTaggedTest, ShardsAreReplacedOnlyWhereThatIsAsked) {
    PrepareTaggedOptions given = options("low\tO\n\nnew\tO\n");
    given.shards = 2;
    prepare_tagged(given);
    given.shards = 1;

    EXPECT_EQ(test::thrown_by([&] { prepare_tagged(given); }).code, ExitCode::config);
    given.overwrite = true;
    prepare_tagged(given);
    EXPECT_FALSE(std::ifstream{shard("train-00001-of-00002.h5")}.good());
}

}  // namespace
}  // namespace hetseq
