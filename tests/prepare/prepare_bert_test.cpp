#include "hetseq/prepare/prepare_bert.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/files/attachment.hpp"
#include "hetseq/data/hdf5/chunk_shape.hpp"

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "data/read_dataset.hpp"
#include "data/text_files_test.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

using test::read_dataset;
using test::thrown_by;
using testing::HasSubstr;

constexpr int words = 300;

// Five special pieces, then "w0" to "w299".
std::string vocabulary_lines() {
    std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int word = 0; word < words; ++word)
        lines += "w" + std::to_string(word) + "\n";
    return lines;
}

constexpr std::int32_t cls = 2, sep = 3, mask_id = 4;

// Sentence `i` of a document has words that follow each other, so that a pair shows its sources.
std::string document_text(int document, int sentences) {
    std::string text;
    for (int sentence = 0; sentence < sentences; ++sentence) {
        for (int word = 0; word < 3 + (document + sentence) % 5; ++word)
            text += "w" + std::to_string((document * 10 + word) % words) + " ";
        text += "\n";
    }
    return text + "\n";
}

std::string documents_text(int begin, int end) {
    std::string text;
    for (int document = begin; document < end; ++document)
        text += document_text(document, 4 + document % 13);
    return text;
}

class PrepareBertTest : public test::TextFilesTest {
protected:
    PrepareBertOptions options() {
        PrepareBertOptions options;
        options.train = {file("a.txt", documents_text(0, 2000)),
                         file("b.txt.gz", documents_text(2000, 4000))};
        options.vocabulary = file("vocab.txt", vocabulary_lines());
        options.output = folder_ / "out";
        options.shards = 5;
        options.seq_length = 32;
        options.masking.most_predictions = 5;
        options.copies = 2;
        return options;
    }

    PrepareBertOptions options_for(const std::string& text) {
        PrepareBertOptions changed = options();
        changed.train = {file("text.txt", text)};
        changed.shards = 0;
        return changed;
    }

    std::string shard(const std::string& name) { return folder_ / ("out/" + name); }

    test::Thrown thrown_for(const PrepareBertOptions& options) {
        return thrown_by([&] { prepare_bert(world_, options); });
    }
};

// One shard's rows.
struct Rows {
    explicit Rows(const std::string& path)
        : ids{read_dataset(path, "input_ids")},
          mask{read_dataset(path, "input_mask")},
          segments{read_dataset(path, "segment_ids")},
          positions{read_dataset(path, "masked_lm_positions")},
          labels{read_dataset(path, "masked_lm_ids")},
          random{read_dataset(path, "next_sentence_labels")} {}

    std::int64_t size() const { return std::ssize(random); }

    // The row's tokens before they were masked.
    std::vector<std::int64_t> tokens(std::int64_t row,
                                     std::int64_t length,
                                     std::int64_t most) const {
        std::vector<std::int64_t> tokens(ids.begin() + row * length,
                                         ids.begin() + (row + 1) * length);
        for (std::int64_t i = row * most; i < (row + 1) * most; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (labels[at] != 0)
                tokens[static_cast<std::size_t>(positions[at])] = labels[at];
        }
        return tokens;
    }

    std::vector<std::int64_t> ids, mask, segments, positions, labels, random;
};

TEST_F(PrepareBertTest, RowsArePairsOfTheTextsSentences) {
    const PreparedBert prepared = prepare_bert(world_, options());

    ASSERT_EQ(prepared.sets.size(), 1U);
    const PreparedBertSet& set = prepared.sets[0];
    EXPECT_EQ(set.documents, 4000);
    EXPECT_EQ(set.unknown, 0);
    ASSERT_EQ(set.shards, 5);
    const std::int64_t length = 32, most = 5;
    std::int64_t pairs = 0, tokens = 0, random = 0, predictions = 0;
    for (std::int64_t i = 0; i < set.shards; ++i) {
        const Rows rows{shard("train-0000" + std::to_string(i) + "-of-00005.h5")};
        pairs += rows.size();
        ASSERT_EQ(std::ssize(rows.ids), rows.size() * length);
        for (std::int64_t row = 0; row < rows.size(); ++row) {
            const std::vector<std::int64_t> line = rows.tokens(row, length, most);
            const auto used = std::count_if(rows.mask.begin() + row * length,
                                            rows.mask.begin() + (row + 1) * length,
                                            [](auto value) { return value == 1; });
            tokens += used;
            ASSERT_EQ(line[0], cls);
            ASSERT_EQ(line[static_cast<std::size_t>(used - 1)], sep);
            ASSERT_EQ(std::count(line.begin(), line.end(), sep), 2);
            const auto border = std::find(line.begin(), line.end(), sep) - line.begin();
            for (std::int64_t at = 0; at < length; ++at) {
                const auto place = static_cast<std::size_t>(row * length + at);
                ASSERT_EQ(rows.mask[place], at < used ? 1 : 0);
                ASSERT_EQ(rows.segments[place], at > border && at < used ? 1 : 0);
                if (at >= used) {
                    ASSERT_EQ(rows.ids[place], 0);
                }
            }
            random += rows.random[static_cast<std::size_t>(row)];
        }
        predictions += std::count_if(
            rows.labels.begin(), rows.labels.end(), [](auto label) { return label != 0; });
    }
    EXPECT_EQ(set.pairs, pairs);
    EXPECT_EQ(set.pair_tokens, tokens);
    EXPECT_EQ(set.places, pairs * length);
    EXPECT_EQ(set.random_next, random);
    EXPECT_EQ(set.predictions.masked + set.predictions.kept + set.predictions.replaced,
              predictions);
    // Half, and the single sentences at the ends of documents.
    EXPECT_GT(static_cast<double>(random) / static_cast<double>(pairs), 0.5);
    EXPECT_LT(static_cast<double>(random) / static_cast<double>(pairs), 0.65);
    EXPECT_EQ(set.random_next_of_own_document, 0);
}

// Each document's words are ten of the vocabulary, so that documents far from each other share
// none.
TEST_F(PrepareBertTest, ANextSentenceIsOfTheSameDocument) {
    prepare_bert(world_, options());

    const Rows rows{shard("train-00001-of-00005.h5")};
    int different = 0;
    for (std::int64_t row = 0; row < rows.size(); ++row) {
        const std::vector<std::int64_t> line = rows.tokens(row, 32, 5);
        const auto border = std::find(line.begin(), line.end(), sep) - line.begin();
        const bool is_same =
            (line[1] - 5) / 10 == (line[static_cast<std::size_t>(border) + 1] - 5) / 10;
        if (rows.random[static_cast<std::size_t>(row)] == 0) {
            ASSERT_TRUE(is_same) << row;
        } else {
            different += is_same ? 0 : 1;
        }
    }
    EXPECT_GT(different, rows.size() / 3);
}

TEST_F(PrepareBertTest, TheSeedChangesTheShardsAndTheRanksDoNot) {
    prepare_bert(world_, options());
    PrepareBertOptions again = options();
    again.output = folder_ / "again";
    again.seed = 2;
    const HostComm alone = world_.split(world_.rank());
    PrepareBertOptions alone_options = options();
    alone_options.output = folder_ / ("alone-" + std::to_string(world_.rank()));
    prepare_bert(world_, again);
    prepare_bert(alone, alone_options);
    world_.barrier();

    const auto made = contents(folder_ / "out");
    const auto alone_made = contents(alone_options.output);
    EXPECT_EQ(made.size(), 7U);
    ASSERT_EQ(made.size(), alone_made.size());
    for (const auto& [name, bytes] : made)
        EXPECT_TRUE(bytes == alone_made.at(name)) << name;
    const std::string first = "train-00000-of-00005.h5";
    EXPECT_NE(made.at(first), contents(folder_ / "again").at(first));
}

TEST_F(PrepareBertTest, TheVocabularyTravelsWithTheShards) {
    prepare_bert(world_, options());

    EXPECT_EQ(read_attached_text(shard("train-00003-of-00005.h5"), "vocab.txt"),
              vocabulary_lines());
    EXPECT_EQ(contents(folder_ / "out").at("vocab.txt"), vocabulary_lines());
    EXPECT_THAT(*read_attached_text(shard("train-00000-of-00005.h5"), "tokenizer_config.json"),
                HasSubstr("\"do_lower_case\": true"));
}

// The pairs of unmasked shards are those of masked ones.
TEST_F(PrepareBertTest, UnmaskedShardsHoldTheSamePairs) {
    PrepareBertOptions unmasked = options();
    unmasked.output = folder_ / "unmasked";
    unmasked.masks = PrepareBertOptions::Masks::when_loaded;
    prepare_bert(world_, options());
    const PreparedBert prepared = prepare_bert(world_, unmasked);

    const std::string name = "train-00002-of-00005.h5";
    const Rows rows{shard(name)};
    const auto ids = test::read_rows(folder_ / ("unmasked/" + name), "input_ids");
    const auto second = read_dataset(folder_ / ("unmasked/" + name), "second_segments");
    ASSERT_EQ(std::ssize(ids), rows.size());
    for (std::int64_t row = 0; row < rows.size(); ++row) {
        const auto at = static_cast<std::size_t>(row);
        std::vector<std::int64_t> padded(ids[at].begin(), ids[at].end());
        padded.resize(32);
        ASSERT_EQ(padded, rows.tokens(row, 32, 5)) << row;
        ASSERT_EQ(ids[at][static_cast<std::size_t>(second[at] - 1)], sep) << row;
    }
    EXPECT_EQ(read_dataset(folder_ / ("unmasked/" + name), "next_sentence_labels"), rows.random);
    EXPECT_EQ(prepared.sets[0].pair_tokens, prepared.sets[0].places);
    EXPECT_EQ(prepared.sets[0].predictions.masked, 0);
    EXPECT_EQ(read_attached_text(folder_ / ("unmasked/" + name), "vocab.txt"), vocabulary_lines());
}

// How a dataset is stored: name, type, row shape, chunks, filters.
std::string storage(hid_t file, const std::string& name, std::int64_t& rows) {
    const Hdf5Dataset dataset{HETSEQ_HDF5_TRY(H5Dopen2(file, name.c_str(), H5P_DEFAULT))};
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset.get()))};
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Dget_type(dataset.get()))};
    const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Dget_create_plist(dataset.get()))};
    std::vector<hsize_t> shape(2), most(2), chunk(2);
    const int rank =
        HETSEQ_HDF5_TRY(H5Sget_simple_extent_dims(space.get(), shape.data(), most.data()));
    shape.resize(static_cast<std::size_t>(rank));
    rows = static_cast<std::int64_t>(shape[0]);
    HETSEQ_HDF5_TRY(H5Pget_chunk(create.get(), rank, chunk.data()));
    const std::vector<std::int64_t> chunk_by_rule = chunk_shape(
        {shape.begin(), shape.end()}, static_cast<std::int64_t>(H5Tget_size(type.get())));
    std::string text = name;
    text += H5Tequal(type.get(), H5T_STD_I32LE) > 0  ? " int32"
            : H5Tequal(type.get(), H5T_STD_I8LE) > 0 ? " int8"
                                                     : " another type";
    text += rank == 2 ? " rows of " + std::to_string(shape[1]) : " numbers";
    text += std::equal(chunk_by_rule.begin(), chunk_by_rule.end(), chunk.begin()) ? " usual chunks"
                                                                                  : " other chunks";
    text += most[0] == shape[0] ? " fixed" : " growing";
    for (int i = 0; i < H5Pget_nfilters(create.get()); ++i) {
        unsigned flags = 0, values[4] = {}, configuration = 0;
        std::size_t count = 4;
        const auto filter = H5Pget_filter2(create.get(),
                                           static_cast<unsigned>(i),
                                           &flags,
                                           &count,
                                           values,
                                           0,
                                           nullptr,
                                           &configuration);
        text += " filter " + std::to_string(filter) + ":" + std::to_string(values[0]);
    }
    return text;
}

std::vector<std::string> storage_of(const std::string& path) {
    const Hdf5File file = test::open_file(path);
    std::vector<std::string> names, stored;
    const auto append = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
        static_cast<std::vector<std::string>*>(list)->emplace_back(name);
        return 0;
    };
    HETSEQ_HDF5_TRY(H5Literate(file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &names));
    std::int64_t rows = 0;
    for (const std::string& name : names)
        stored.push_back(storage(file.get(), name, rows));
    return stored;
}

TEST_F(PrepareBertTest, TheLayoutIsNvidias) {
    const char* data = std::getenv("HETSEQ_TEST_DATA");
    const fs::path theirs = fs::path(data != nullptr ? data : "../shared/data") /
                            "bert/novels-small.seq128.pred20.hdf5";
    if (!fs::exists(theirs))
        GTEST_SKIP() << "there is no " << theirs << " (HETSEQ_TEST_DATA)";
    PrepareBertOptions same_size = options();
    same_size.seq_length = 128;
    same_size.masking.most_predictions = 20;

    prepare_bert(world_, same_size);

    EXPECT_EQ(storage_of(shard("train-00000-of-00005.h5")), storage_of(theirs));
    EXPECT_THAT(storage_of(theirs),
                testing::Contains("input_ids int32 rows of 128 usual chunks fixed filter 1:4"));
}

TEST_F(PrepareBertTest, ASetForValidationHasItsOwnShards) {
    PrepareBertOptions both = options();
    both.valid = {file("c.txt", documents_text(4000, 4400))};
    both.shards = 2;

    const PreparedBert prepared = prepare_bert(world_, both);

    ASSERT_EQ(prepared.sets.size(), 2U);
    EXPECT_EQ(prepared.sets[1].name, "valid");
    EXPECT_EQ(prepared.sets[1].documents, 400);
    EXPECT_TRUE(fs::exists(shard("valid-00001-of-00002.h5")));
}

TEST_F(PrepareBertTest, ADocumentIsNeverCutAndAFilesEndEndsIt) {
    PrepareBertOptions one = options();
    std::string large = document_text(0, 30'000);
    large.pop_back();  // no blank line at the end
    one.train = {file("large.txt", large), file("small.txt", document_text(7, 5))};
    one.shards = 40;

    const PreparedBert prepared = prepare_bert(world_, one);

    EXPECT_EQ(prepared.sets[0].documents, 2);
    EXPECT_LE(prepared.sets[0].shards, 2);
}

TEST_F(PrepareBertTest, DocumentsWithoutTokensAreDropped) {
    const PreparedBert prepared = prepare_bert(
        world_, options_for("w1 w2\nw3\n\n\x01\n\x02\n\n \t\n\xe3\x80\x80\nw4 w5\n\nw6 nothing\n"));

    const PreparedBertSet& set = prepared.sets[0];
    EXPECT_EQ(set.documents, 4);
    EXPECT_EQ(set.dropped_documents, 1);
    EXPECT_EQ(set.sentences, 4);
    EXPECT_EQ(set.tokens, 7);
    EXPECT_EQ(set.unknown, 1);
}

TEST_F(PrepareBertTest, ALonelyDocumentGivesItsOwnSentencesAsRandomNext) {
    const PreparedBert prepared = prepare_bert(world_, options_for(document_text(1, 40)));

    EXPECT_GT(prepared.sets[0].random_next, 0);
    EXPECT_EQ(prepared.sets[0].random_next, prepared.sets[0].random_next_of_own_document);
}

TEST_F(PrepareBertTest, ProgressEndsWithAllOfTheText) {
    PrepareBertOptions told = options();
    std::int64_t last = 0, total = 0;
    told.progress = [&](std::int64_t done, std::int64_t of) {
        EXPECT_GE(done, last);
        last = done;
        total = of;
    };
    prepare_bert(world_, told);

    const std::int64_t bytes = std::ssize(documents_text(0, 4000));
    EXPECT_EQ(total, world_.rank() == 0 ? bytes : 0);
    EXPECT_EQ(last, world_.rank() == 0 ? bytes : 0);
}

TEST_F(PrepareBertTest, ShardsInTheWayAreReplacedOnlyWithOverwrite) {
    prepare_bert(world_, options());
    PrepareBertOptions again = options();
    again.shards = 2;

    const test::Thrown thrown = thrown_for(again);
    again.overwrite = true;
    prepare_bert(world_, again);
    world_.barrier();

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text, HasSubstr("train-00000-of-00005.h5 exists (5 shards are there"));
    EXPECT_EQ(contents(folder_ / "out").size(), 4U);
    EXPECT_TRUE(fs::exists(shard("train-00001-of-00002.h5")));
}

TEST_F(PrepareBertTest, BadInputIsRefusedBeforeAnythingIsWritten) {
    const test::Thrown empty = thrown_for(options_for(""));
    const test::Thrown blank = thrown_for(options_for("\n \n\t\n"));
    const test::Thrown wordless = thrown_for(options_for("\x01\n\n\x02\n"));
    PrepareBertOptions missing = options();
    missing.train = {folder_ / "none.txt"};
    const test::Thrown none = thrown_for(missing);

    EXPECT_EQ(empty.code, ExitCode::bad_data);
    EXPECT_THAT(empty.text, HasSubstr("text.txt is empty"));
    EXPECT_EQ(blank.code, ExitCode::bad_data);
    EXPECT_THAT(blank.text, HasSubstr("text.txt has no document (all of its 3 lines are blank)"));
    EXPECT_EQ(wordless.code, ExitCode::bad_data);
    EXPECT_THAT(wordless.text, HasSubstr("no pair of train is left (none of its 2 documents"));
    EXPECT_EQ(none.code, ExitCode::missing_input);
    EXPECT_TRUE(!fs::exists(folder_ / "out") || contents(folder_ / "out").empty());
}

TEST_F(PrepareBertTest, AVocabularyNeedsItsSpecialPieces) {
    PrepareBertOptions bad = options();
    const auto thrown_with = [&](const std::string& name, const std::string& lines) {
        bad.vocabulary = file(name, lines);
        return thrown_for(bad);
    };
    const test::Thrown no_mask = thrown_with("v1", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
    const test::Thrown late_pad = thrown_with("v2", "[UNK]\n[PAD]\n[CLS]\n[SEP]\n[MASK]\n");
    const test::Thrown twice = thrown_with("v3", "[PAD]\n[UNK]\na\na\n");

    EXPECT_THAT(no_mask.text, HasSubstr("v1 has no piece '[MASK]'"));
    EXPECT_THAT(late_pad.text, HasSubstr("v2: [PAD] is piece 1"));
    EXPECT_EQ(late_pad.code, ExitCode::bad_data);
    EXPECT_THAT(twice.text, HasSubstr("line 4"));
}

TEST_F(PrepareBertTest, SizesThatCannotBeAreRefused) {
    PrepareBertOptions bad = options();
    bad.seq_length = 4;
    const test::Thrown length = thrown_for(bad);
    bad = options();
    bad.masking.most_predictions = 30;
    const test::Thrown predictions = thrown_for(bad);

    EXPECT_THAT(length.text, HasSubstr("--seq-length 4"));
    EXPECT_THAT(predictions.text, HasSubstr("--max-predictions 30"));
    EXPECT_THAT(predictions.text, HasSubstr("give 1 to 29"));
    EXPECT_EQ(predictions.code, ExitCode::config);
}

}  // namespace
}  // namespace hetseq
