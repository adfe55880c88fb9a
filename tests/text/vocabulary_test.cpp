#include "hetseq/text/vocabulary.hpp"

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/text/subwords/train_subwords.hpp"

#include "data/error_text.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string>& sentences() {
    static const std::vector<std::string> lines = [] {
        const std::vector<std::string> subjects{"ein Mann", "eine Frau", "der Hund", "das Mädchen"};
        const std::vector<std::string> verbs{"läuft", "spielt", "schläft", "singt", "kocht"};
        const std::vector<std::string> places{"im Park", "auf der Straße", "zu Hause", "am Fluß"};
        std::vector<std::string> all;
        for (const std::string& subject : subjects)
            for (const std::string& verb : verbs)
                for (const std::string& place : places)
                    all.push_back(subject + " " + verb + " " + place + ".");
        return all;
    }();
    return lines;
}

std::string trained(SubwordOptions options) {
    std::size_t at = 0;
    const auto next = [&](std::string& line) {
        if (at == sentences().size())
            return false;
        line = sentences()[at++];
        return true;
    };
    return train_subwords(options, next).model;
}

Vocabulary subwords(const std::string& type = "bpe", const std::string& rule = "nmt_nfkc") {
    return Vocabulary::parse(trained({.model_type = type, .vocab_size = 42, .normalization = rule}),
                             "a test");
}

std::vector<std::int32_t> ids_of(const Vocabulary& vocabulary, std::string_view line) {
    std::vector<std::int32_t> ids;
    vocabulary.encode(line, ids);
    return ids;
}

Vocabulary dictionary(const std::string& words, const std::string& mark = "") {
    return Vocabulary::parse("# hetseq dictionary 1" + mark + "\n" + words, "a test");
}

class SubwordsTest : public testing::TestWithParam<std::string> {};

TEST_P(SubwordsTest, DecodingUndoesEncoding) {
    const Vocabulary vocabulary = subwords(GetParam());

    EXPECT_EQ(vocabulary.size(), 42);
    for (const std::string& line : sentences())
        EXPECT_EQ(vocabulary.decode(ids_of(vocabulary, line)), line);
}

// Of the letters that the text has, since others are unknown.
TEST_P(SubwordsTest, RandomTextComesBackAsItIsNormalised) {
    const Vocabulary vocabulary = subwords(GetParam(), "identity");
    const std::vector<std::string> letters{"ä", "ß", "a", "e", "n", "H", ".", "z", "S", "u"};
    std::mt19937 random{7};
    for (int i = 0; i < 2000; ++i) {
        std::string line;
        std::string expected;
        for (unsigned word = random() % 6; word > 0; --word) {
            std::string letter;
            for (unsigned length = 1 + random() % 9; length > 0; --length)
                letter += letters[random() % 10];
            line += std::string(1 + random() % 2, ' ') + letter;
            expected += (expected.empty() ? "" : " ") + letter;
        }
        EXPECT_EQ(vocabulary.decode(ids_of(vocabulary, line)), expected) << line;
    }
}

TEST_P(SubwordsTest, AnyBytesAreEncodedAndDecodedTheSameAgain) {
    const Vocabulary vocabulary = subwords(GetParam());
    std::mt19937 random{11};
    for (int i = 0; i < 2000; ++i) {
        std::string line;
        for (unsigned length = random() % 30; length > 0; --length)
            line += static_cast<char>(random() % 256);
        const std::vector<std::int32_t> ids = ids_of(vocabulary, line);
        for (const std::int32_t id : ids)
            ASSERT_TRUE(id >= 0 && id < vocabulary.size());
        vocabulary.decode(ids);
    }
}

TEST_P(SubwordsTest, TrainingAgainGivesTheSameBytes) {
    EXPECT_EQ(subwords(GetParam()).bytes(), subwords(GetParam()).bytes());
}

INSTANTIATE_TEST_SUITE_P(Types, SubwordsTest, testing::Values("bpe", "unigram"));

TEST(VocabularyTest, SpecialIdsHaveTheirPlaces) {
    for (const Vocabulary& vocabulary : {subwords(), dictionary("the 3\n")}) {
        EXPECT_EQ(vocabulary.piece(vocabulary.unknown()), "<unk>");
        EXPECT_EQ(vocabulary.piece(vocabulary.begin()), "<s>");
        EXPECT_EQ(vocabulary.piece(vocabulary.end()), "</s>");
    }
}

TEST(VocabularyTest, NeitherBeginNorEndIsAddedNorShown) {
    const Vocabulary vocabulary = subwords();

    std::vector<std::int32_t> ids{vocabulary.begin()};
    vocabulary.encode("ein Mann", ids);
    const std::vector<std::int32_t> alone = ids_of(vocabulary, "ein Mann");
    ids.push_back(vocabulary.end());

    EXPECT_EQ(ids.size(), alone.size() + 2);
    EXPECT_EQ(vocabulary.decode(ids), "ein Mann");
    EXPECT_THAT(ids_of(vocabulary, ""), ElementsAre());
    EXPECT_EQ(vocabulary.decode({}), "");
}

TEST(VocabularyTest, NormalisationIsTheOneNamed) {
    EXPECT_EQ(subwords("bpe", "nmt_nfkc").decode(ids_of(subwords(), "\xef\xac\x82uß")), "fluß");
    const Vocabulary folded = subwords("bpe", "nmt_nfkc_cf");
    EXPECT_EQ(folded.decode(ids_of(folded, "DER HUND")), "der hund");
}

TEST(VocabularyTest, BytesAndChecksumAreOfTheFile) {
    const test::TemporaryFolder folder;
    const Vocabulary vocabulary = subwords();
    std::ofstream(folder / "a.model", std::ios::binary) << vocabulary.bytes();

    const Vocabulary read = Vocabulary::read(folder / "a.model");

    EXPECT_EQ(read.bytes(), vocabulary.bytes());
    EXPECT_EQ(read.checksum(), digest_of(folder / "a.model").xxh64);
    EXPECT_EQ(ids_of(read, sentences()[3]), ids_of(vocabulary, sentences()[3]));
}

TEST(VocabularyTest, ThreadsMayShareOne) {
    const Vocabulary vocabulary = subwords();
    const std::vector<std::int32_t> expected = ids_of(vocabulary, sentences()[5]);
    std::vector<std::thread> threads;
    std::vector<int> equal(4, 0);
    for (int& count : equal)
        threads.emplace_back([&, copy = vocabulary] {
            for (int i = 0; i < 500; ++i)
                count += ids_of(copy, sentences()[5]) == expected ? 1 : 0;
        });
    for (std::thread& thread : threads)
        thread.join();

    EXPECT_THAT(equal, testing::Each(500));
}

TEST(VocabularyTest, OtherFilesAreRefused) {
    const auto foreign = thrown_by([] { Vocabulary::parse("the 12\n", "FILE"); });
    const auto empty = thrown_by([] { Vocabulary::parse("", "FILE"); });
    const auto damaged = thrown_by([] { Vocabulary::parse("\x0a\x7fxx", "FILE"); });
    const auto missing = thrown_by([] { Vocabulary::read("/nowhere/x.model"); });

    EXPECT_EQ(foreign.code, ExitCode::bad_data);
    EXPECT_THAT(foreign.text, HasSubstr("FILE is not a vocabulary"));
    EXPECT_THAT(empty.text, HasSubstr("FILE is not a vocabulary"));
    EXPECT_EQ(damaged.code, ExitCode::bad_data);
    EXPECT_THAT(damaged.text, HasSubstr("FILE cannot be read as a SentencePiece model"));
    EXPECT_EQ(missing.code, ExitCode::missing_input);
}

TEST(VocabularyTest, TooLargeAVocabularyIsRefusedWithSentencePiecesReason) {
    const auto thrown = thrown_by([] { trained({.vocab_size = 5000}); });

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text,
                AllOf(HasSubstr("no vocabulary of 5000 ids"), HasSubstr("size"), HasSubstr("too")));
}

std::vector<std::string> some_sentences(std::size_t too_long) {
    std::vector<std::string> lines = sentences();
    for (std::size_t i = 0; i < too_long; ++i)
        lines[i] = std::string(4193, 'x');
    return lines;
}

TrainedSubwords trained_on(const std::vector<std::string>& lines, const SubwordOptions& options) {
    std::size_t at = 0;
    return train_subwords(options, [&](std::string& line) {
        line = at < lines.size() ? lines[at] : "";
        return at++ < lines.size();
    });
}

TEST(TrainSubwordsTest, LinesThatAreLeftOutAreCounted) {
    std::vector<std::string> lines = some_sentences(2);
    lines[5] = "a \u2585";
    lines[6] = "";
    const TrainedSubwords trained = trained_on(lines, {.vocab_size = 42});
    const TrainedSubwords all = trained_on(lines, {.vocab_size = 43, .max_sentence_length = 4193});

    EXPECT_EQ(trained.lines, std::ssize(lines) - 1);
    EXPECT_EQ(trained.too_long, 2);
    EXPECT_EQ(trained.reserved, 1);
    EXPECT_EQ(all.too_long, 0);
    const auto knows = [](const TrainedSubwords& trained, const std::string& text) {
        const Vocabulary vocabulary = Vocabulary::parse(trained.model, "a test");
        const std::vector<std::int32_t> ids = ids_of(vocabulary, text);
        return std::find(ids.begin(), ids.end(), 0) == ids.end();
    };
    EXPECT_FALSE(knows(trained, "x"));
    EXPECT_FALSE(knows(trained, "\u2585"));
    EXPECT_TRUE(knows(all, "x"));
}

TEST(TrainSubwordsTest, TextOfTooLongLinesIsRefusedByTheLimit) {
    const auto thrown = thrown_by([] {
        trained_on({std::string(4193, 'x'), "", std::string(5000, 'y')}, {.vocab_size = 20});
    });

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text,
                AllOf(HasSubstr("2 of its 2 lines are longer than 4192 bytes"),
                      HasSubstr("--max-sentence-length")));
}

TEST(DictionaryTest, WordsHaveTheirPlaceAsId) {
    const Vocabulary vocabulary = dictionary("the 9\ncat 4\nsat 1\n");

    EXPECT_EQ(vocabulary.size(), 6);
    EXPECT_THAT(ids_of(vocabulary, " the\tdog  sat\r"), ElementsAre(3, 0, 5));
    EXPECT_EQ(vocabulary.decode(ids_of(vocabulary, "the dog sat")), "the <unk> sat");
    EXPECT_EQ(vocabulary.piece(4), "cat");
}

TEST(DictionaryTest, LinesMayEndWithCrlfBehindAByteOrderMark) {
    const Vocabulary vocabulary = Vocabulary::parse(
        "\xEF\xBB\xBF# hetseq dictionary 1 continued @@\r\nthe@@ 9\r\ncat 4\r\n", "a test");

    EXPECT_EQ(vocabulary.size(), 5);
    EXPECT_EQ(vocabulary.decode(ids_of(vocabulary, "the@@ cat")), "thecat");
    EXPECT_THAT(thrown_by([] { dictionary("the 9\rcat 4\r"); }).text,
                HasSubstr("line 2 holds a carriage return"));
    EXPECT_THAT(thrown_by([] { Vocabulary::parse("\xFF\xFE# hetseq", "FILE"); }).text,
                HasSubstr("FILE is text in UTF-16"));
}

TEST(DictionaryTest, TooManyWordsAreRefusedByTheLimit) {
    EXPECT_THAT(thrown_by([] { dictionary(std::string(4'000'000, '\n')); }).text,
                HasSubstr("a dictionary has at most 4000000 words"));
}

TEST(DictionaryTest, MarkedWordsAreJoinedWithTheNext) {
    const Vocabulary marked = dictionary("Stra@@ 2\nße 2\nam 1\n", " continued @@");
    const Vocabulary plain = dictionary("Stra@@ 2\nße 2\nam 1\n");

    EXPECT_EQ(marked.decode(ids_of(marked, "am Stra@@ ße am Stra@@")), "am Straße am Stra");
    EXPECT_EQ(plain.decode(ids_of(plain, "am Stra@@ ße")), "am Stra@@ ße");
}

TEST(DictionaryTest, BadLinesAreNamed) {
    const auto reason = [](const std::string& words) {
        return thrown_by([&] { dictionary(words); }).text;
    };

    EXPECT_THAT(reason("the 9\ncat\n"), HasSubstr("a test, line 3 is not a word and its count"));
    EXPECT_THAT(reason("a b 9\n"), HasSubstr("line 2 is not a word and its count"));
    EXPECT_THAT(reason("a -1\n"), HasSubstr("line 2 is not a word and its count"));
    EXPECT_THAT(reason("a 1\nb 1\na 2\n"), HasSubstr("line 4 repeats a word ('a'"));
    EXPECT_THAT(reason("<s> 1\n"), HasSubstr("line 2 repeats a word"));
    EXPECT_THAT(reason("\xff 1\n"), HasSubstr("line 2 is not UTF-8"));
    EXPECT_THAT(thrown_by([] { Vocabulary::parse("# hetseq dictionary 12\n", "a test"); }).text,
                HasSubstr("a test is of another version"));
}

}  // namespace
}  // namespace hetseq
