#include "hetseq/prepare/prepare_translation.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/text/number_names.hpp"
#include "hetseq/text/vocabulary.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/prepare/prepare_numbers.hpp"

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "data/read_dataset.hpp"
#include "data/text_files_test.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

using test::read_rows;
using test::thrown_by;
using testing::HasSubstr;

std::string english_lines(std::int64_t begin, std::int64_t end) {
    std::string text;
    for (std::int64_t number = begin; number < end; ++number)
        text += english_number(number) + "\n";
    return text;
}

std::string german_lines(std::int64_t begin, std::int64_t end) {
    std::string text;
    for (std::int64_t number = begin; number < end; ++number)
        text += german_number(number) + "\n";
    return text;
}

class PrepareTranslationTest : public test::TextFilesTest {
protected:
    PrepareTranslationOptions options() {
        PrepareTranslationOptions options;
        options.train = {
            {file("a.en", english_lines(0, 300)), file("b.en.gz", english_lines(300, 700))},
            {file("a.de.gz", german_lines(0, 300)), file("b.de", german_lines(300, 700))}};
        options.output = folder_ / "out";
        options.shards = 3;
        options.subwords.vocab_size = 90;
        return options;
    }

    // Of words between blanks.
    PrepareTranslationOptions words(const std::string& source, const std::string& target) {
        PrepareTranslationOptions options;
        options.train = {{file("words.en", source)}, {file("words.de", target)}};
        options.output = folder_ / "out";
        options.type = VocabularyType::dictionary;
        return options;
    }

    std::string shard(const std::string& name) { return folder_ / ("out/" + name); }

    // The sentences of a shard by its own vocabulary.
    std::vector<std::string> sentences(const std::string& name, const std::string& field) {
        const Vocabulary vocabulary =
            Vocabulary::parse(read_attachment(shard(name), field + "_vocabulary"), name);
        std::vector<std::string> lines;
        for (const auto& row : read_rows(shard(name), field)) {
            EXPECT_EQ(row.back(), vocabulary.end());
            EXPECT_NE(row.front(), vocabulary.begin());
            lines.push_back(vocabulary.decode(row));
        }
        return lines;
    }

    test::Thrown thrown_for(const PrepareTranslationOptions& options) {
        return thrown_by([&] { prepare_translation(world_, options); });
    }
};

TEST_F(PrepareTranslationTest, ShardsDecodeToTheText) {
    const PreparedTranslation prepared = prepare_translation(world_, options());

    ASSERT_EQ(prepared.sets.size(), 1U);
    EXPECT_EQ(prepared.sets[0].pairs, 700);
    EXPECT_EQ(prepared.sets[0].written, 700);
    EXPECT_EQ(prepared.sets[0].source.unknown, 0);
    EXPECT_EQ(prepared.sets[0].target.text_bytes, std::ssize(german_lines(0, 700)) - 700);
    std::int64_t number = 0;
    for (const std::string name :
         {"train-00000-of-00003.h5", "train-00001-of-00003.h5", "train-00002-of-00003.h5"}) {
        const auto sources = sentences(name, "source");
        const auto targets = sentences(name, "target");
        ASSERT_EQ(sources.size(), targets.size());
        for (std::size_t i = 0; i < sources.size(); ++i, ++number) {
            EXPECT_EQ(sources[i], english_number(number));
            EXPECT_EQ(targets[i], german_number(number));
        }
    }
    EXPECT_EQ(number, 700);
}

// What one rank alone writes is compared with what all write together.
TEST_F(PrepareTranslationTest, AnyNumberOfRanksWritesTheSameBytes) {
    for (const char* type : {"bpe", "unigram", "dictionary"}) {
        PrepareTranslationOptions together = options();
        together.valid = {{file("v.en", english_lines(90, 120))},
                          {file("v.de", german_lines(90, 120))}};
        together.type = std::string(type) == "dictionary" ? VocabularyType::dictionary
                                                          : VocabularyType::subwords;
        together.subwords.model_type = type;
        together.subwords.vocab_size = 64;
        together.sample = 350;
        together.max_ratio = 2;
        together.shards = 4;
        PrepareTranslationOptions alone = together;
        together.output = folder_ / ("together-" + std::string(type));
        alone.output = folder_ / ("alone-" + std::string(type));

        prepare_translation(world_, together);
        if (world_.rank() == 0)
            prepare_translation(HostComm::serial(), alone);
        world_.barrier();

        const auto files = contents(together.output);
        EXPECT_EQ(files.size(), 10U);  // 4 + 4 shards, 2 vocabularies
        EXPECT_TRUE(files == contents(alone.output)) << type;
    }
}

TEST_F(PrepareTranslationTest, AJoinedVocabularyIsStoredOnce) {
    PrepareTranslationOptions joined = options();
    joined.joined = true;
    joined.subwords.vocab_size = 120;

    prepare_translation(world_, joined);

    const std::string path = shard("train-00000-of-00003.h5");
    const Hdf5File opened = test::open_file(path);
    H5O_info_t info{};
    HETSEQ_HDF5_TRY(H5Oget_info_by_name(opened.get(), "target_vocabulary", &info, H5P_DEFAULT));
    EXPECT_EQ(info.rc, 2U);  // names
    EXPECT_EQ(sentences("train-00000-of-00003.h5", "target")[21], "einundzwanzig");
    EXPECT_EQ(read_attachment(path, "source_vocabulary"),
              contents(joined.output)["source.vocabulary"]);
}

TEST_F(PrepareTranslationTest, VocabulariesMayBeGiven) {
    prepare_translation(world_, options());
    PrepareTranslationOptions other = options();
    other.source_vocabulary = shard("source.vocabulary");
    other.target_vocabulary = shard("target.vocabulary");
    other.subwords.vocab_size = 0;
    other.output = folder_ / "again";

    prepare_translation(world_, other);

    EXPECT_TRUE(contents(folder_ / "again") == contents(folder_ / "out"));
}

TEST_F(PrepareTranslationTest, DroppedPairsAreCountedByTheirReason) {
    PrepareTranslationOptions options = words("a b c\n\na b\na b c d e f\na b\na\nb b b b\n",
                                              "x y z\nx\n \nx\nx y z\nx y z x\nx y\n");
    options.max_length = 5;
    options.max_ratio = 2;

    const PreparedSet set = prepare_translation(world_, options).sets[0];

    EXPECT_EQ(set.pairs, 7);
    EXPECT_EQ(set.written, 3);
    EXPECT_EQ(set.empty_source, 1);
    EXPECT_EQ(set.empty_target, 1);
    EXPECT_EQ(set.too_long, 1);
    EXPECT_EQ(set.unlike_lengths, 1);
    EXPECT_EQ(set.source.tokens, 3 + 2 + 4);
    EXPECT_THAT(sentences("train-00000-of-00001.h5", "source"),
                testing::ElementsAre("a b c", "a b", "b b b b"));
}

TEST_F(PrepareTranslationTest, RareWordsOfADictionaryAreUnknown) {
    PrepareTranslationOptions options = words("a b a c\na d\n", "x\ny\n");
    options.subwords.vocab_size = 5;  // with the special ones: a and b

    const PreparedSet set = prepare_translation(world_, options).sets[0];

    EXPECT_EQ(set.source.unknown, 2);
    EXPECT_EQ(set.target.unknown, 0);
}

TEST_F(PrepareTranslationTest, UnequalLinesAreRefusedBeforeAnythingIsWritten) {
    const auto thrown = thrown_for(words("a\nb\nc\n", "x\ny\n"));

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("words.de do not belong together (3 lines, 2 lines)"));
    EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(PrepareTranslationTest, BadTextIsRefusedWithItsLine) {
    const auto thrown = thrown_for(words("a\nb\xc3\nc\n", "x\ny\nz\n"));

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("words.en, line 2 is not UTF-8"));
    EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(PrepareTranslationTest, NothingIsLeftWhereAllPairsAreDropped) {
    PrepareTranslationOptions options = words("a b c\n", "x y z\n");
    options.max_length = 2;

    const auto thrown = thrown_for(options);

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("no pair of train is left (all 1 were dropped)"));
    world_.barrier();  // each rank removes its own shards
    EXPECT_TRUE(fs::is_empty(folder_ / "out"));
}

// Ids of one vocabulary beside ids of another would train without a word.
TEST_F(PrepareTranslationTest, AnEarlierSetIsReplacedAsAWholeOrNotAtAll) {
    PrepareTranslationOptions both = words("a\n", "x\n");
    both.valid = both.train;
    prepare_translation(world_, both);
    PrepareTranslationOptions other = words("a\nb\n", "x\ny\n");

    const auto thrown = thrown_for(other);
    other.overwrite = true;
    prepare_translation(world_, other);
    world_.barrier();

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text, HasSubstr("train-00000-of-00001.h5 exists (2 shards are there"));
    EXPECT_FALSE(fs::exists(folder_ / "out/valid-00000-of-00001.h5"));
    EXPECT_FALSE(fs::exists(folder_ / "out/prepare.unfinished"));
    EXPECT_EQ(test::read_dataset(folder_ / "out/train-00000-of-00001.h5", "source").size(), 4U);
}

TEST_F(PrepareTranslationTest, OptionsThatContradictAreRefused) {
    PrepareTranslationOptions no_size = options();
    no_size.subwords.vocab_size = 0;
    PrepareTranslationOptions unpaired = options();
    unpaired.train.targets.pop_back();
    PrepareTranslationOptions two = options();
    two.joined = true;
    two.target_vocabulary = "x.model";

    EXPECT_THAT(thrown_for(no_size).text, HasSubstr("--vocab-size is missing"));
    EXPECT_THAT(thrown_for(unpaired).text, HasSubstr("do not pair up (2 of the source, 1 of"));
    EXPECT_THAT(thrown_for(two).text, HasSubstr("--joined takes one vocabulary"));
    EXPECT_EQ(thrown_for(two).code, ExitCode::config);
}

TEST_F(PrepareTranslationTest, NumbersAreTranslatedRightAndNeverSeenBefore) {
    const PreparedTranslation prepared =
        prepare_numbers(world_, {.output = folder_ / "out", .samples = 3000});

    EXPECT_EQ(prepared.sets[0].written, 3000);
    EXPECT_EQ(prepared.sets[1].written, valid_numbers);
    EXPECT_EQ(prepared.sets[0].target.unknown, 0);
    std::map<std::string, std::string> german;
    for (std::int64_t number = 0; number < 10'000; ++number)
        german[english_number(number)] = german_number(number);
    const auto sources = sentences("train-00000-of-00001.h5", "source");
    const auto targets = sentences("train-00000-of-00001.h5", "target");
    for (std::size_t i = 0; i < sources.size(); ++i)
        if (german.contains(sources[i])) {
            EXPECT_EQ(targets[i], german[sources[i]]);
        }
    std::set<std::string> seen(sources.begin(), sources.end());
    const auto valid = sentences("valid-00000-of-00001.h5", "source");
    seen.insert(valid.begin(), valid.end());
    std::ifstream test{shard("test.en")};
    std::int64_t lines = 0;
    for (std::string line; std::getline(test, line); ++lines)
        EXPECT_FALSE(seen.contains(line)) << line;
    EXPECT_EQ(lines, test_numbers);
}

}  // namespace
}  // namespace hetseq
