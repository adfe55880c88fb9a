#include "hetseq/prepare/prepare_bert.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <span>
#include <utility>
#include <variant>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/prepare/files/text_index.hpp"

#include "prepare/bert/pair_shard.hpp"
#include "prepare/rank_progress.hpp"
#include "prepare/sum_counts.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t usual_shard_text = std::int64_t{1} << 24;  // [bytes]
constexpr std::int64_t least_seq_length = 5;  // [CLS], [SEP] twice, and a token on either side

void check_options(const PrepareBertOptions& options) {
    if (options.train.empty())
        throw BadConfig("no text is named", "", "give --input");
    if (options.shards < 0 || options.shards > most_shards)
        throw BadConfig("--shards " + std::to_string(options.shards), "", "give 0 to 99999");
    if (options.seq_length < least_seq_length)
        throw BadConfig("--seq-length " + std::to_string(options.seq_length),
                        "[CLS], two [SEP] and a token of either sentence need room",
                        "give " + std::to_string(least_seq_length) + " or more");
    const std::int64_t most = options.seq_length - special_tokens_of_pair;
    if (options.masking.most_predictions < 1 || options.masking.most_predictions > most)
        throw BadConfig("--max-predictions " + std::to_string(options.masking.most_predictions),
                        "a sequence of --seq-length " + std::to_string(options.seq_length) +
                            " has at most " + std::to_string(most) + " tokens to predict",
                        "give 1 to " + std::to_string(most));
}

// Rows are padded with 0, and predictions whose token is 0 are none.
void check_vocabulary(const WordPiece& pieces, const std::string& path) {
    for (const char* piece : {"[CLS]", "[SEP]", "[MASK]"})
        pieces.id_of(piece);
    if (pieces.id_of("[PAD]") != 0)
        throw BadData(path + ": [PAD] is piece " + std::to_string(pieces.id_of("[PAD]")),
                      "shards are padded with 0, so that it must be the first piece",
                      "give the vocab.txt of a BERT model, or one of hetseq prepare vocabulary");
}

WordPiece read_vocabulary(const HostComm& world, const std::string& path) {
    const std::string lines = agree_on(
        world, [&] { return world.rank() == 0 ? WordPiece::read(path).lines() : std::string(); });
    const std::string bytes = world.broadcast(lines, 0);
    return agree_on(world, [&] {
        WordPiece pieces = WordPiece::parse(bytes, path);
        check_vocabulary(pieces, path);
        return pieces;
    });
}

// One set on its way to the shards.
struct BertSet {
    std::string name;
    std::span<const TextIndex> texts;
    std::vector<std::int64_t> borders{};  // the first line of each shard, and the lines' number

    std::int64_t shards() const { return std::ssize(borders) - 1; }
    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const TextIndex& text : texts)
            sum += text.bytes;
        return sum;
    }
};

// Between documents, so that shards have about the same size. A document is never cut, so there may
// be fewer shards than `wanted`.
std::vector<std::int64_t> shard_borders(const BertSet& set, std::int64_t wanted) {
    const std::int64_t bytes = set.bytes();
    if (wanted == 0)
        wanted = std::min((bytes + usual_shard_text - 1) / usual_shard_text, most_shards);
    std::vector<std::int64_t> borders{0};
    std::int64_t lines_before = 0, bytes_before = 0, next = 1;
    for (const TextIndex& text : set.texts) {
        for (const LinePlace& place : text.places) {
            const std::int64_t line = lines_before + place.line;
            const std::int64_t at = bytes_before + place.offset;
            if (line == borders.back() || next == wanted || at < bytes * next / wanted)
                continue;
            borders.push_back(line);
            while (next < wanted && at >= bytes * next / wanted)
                ++next;
        }
        lines_before += text.lines;
        bytes_before += text.bytes;
    }
    borders.push_back(lines_before);
    return borders;
}

std::vector<BertSet> make_sets(const PrepareBertOptions& options,
                               std::span<const TextIndex> texts) {
    std::vector<BertSet> sets{{"train", texts.first(options.train.size())}};
    if (!options.valid.empty())
        sets.push_back({"valid", texts.last(options.valid.size())});
    for (BertSet& set : sets)
        set.borders = shard_borders(set, options.shards);
    return sets;
}

// In shards.
RankProgress progress_of(const HostComm& world,
                         const std::vector<BertSet>& sets,
                         const PrepareProgress& progress) {
    std::int64_t bytes = 0, own = 0;
    for (const BertSet& set : sets) {
        bytes += set.bytes();
        for (std::int64_t i = world.rank(); i < set.shards(); i += world.size())
            ++own;
    }
    return {world.rank() == 0 ? progress : PrepareProgress{}, bytes, static_cast<double>(own)};
}

// This rank's shards of one set: it takes every so many, so that it goes through the text once.
std::vector<PairShard> write_own_shards(const HostComm& world,
                                        const BertSet& set,
                                        const WordPiece& pieces,
                                        const PrepareBertOptions& options,
                                        RankProgress& progress,
                                        PreparedBertSet& counts) {
    PairShardMaker maker{set.texts, pieces, options};
    std::vector<PairShard> shards;
    for (std::int64_t i = world.rank(); i < set.shards(); i += world.size()) {
        const auto border = set.borders.begin() + i;
        shards.push_back(
            maker.make(fs::path(options.output) / shard_name(set.name, i, set.shards()),
                       {i, {border[0], border[1]}},
                       counts,
                       [&](double done) { progress.show(done); }));
        progress.add(1);
        progress.show(0);
    }
    return shards;
}

// Sums the counts over the ranks. Collective.
void sum_over_ranks(const HostComm& world, PreparedBertSet& set) {
    sum_counts(world,
               std::array{&set.documents,
                          &set.dropped_documents,
                          &set.sentences,
                          &set.tokens,
                          &set.unknown,
                          &set.pairs,
                          &set.pair_tokens,
                          &set.places,
                          &set.random_next,
                          &set.random_next_of_own_document,
                          &set.cut_pairs,
                          &set.cut_tokens,
                          &set.predictions.masked,
                          &set.predictions.kept,
                          &set.predictions.replaced,
                          &set.shard_bytes});
}

void check_something_is_written(const PreparedBertSet& set) {
    if (set.pairs == 0)
        throw BadData("no pair of " + set.name + " is left",
                      "none of its " + std::to_string(set.documents) + " documents has a token",
                      "check the text");
}

}  // namespace

PreparedBert prepare_bert(const HostComm& world, const PrepareBertOptions& options) {
    const double start = monotonic_seconds();
    agree_on(world, [&] { check_options(options); });
    const WordPiece pieces = read_vocabulary(world, options.vocabulary);
    std::vector<std::string> files = options.train;
    files.insert(files.end(), options.valid.begin(), options.valid.end());
    const std::vector<TextIndex> texts = index_documents(world, files);
    const std::vector<BertSet> sets = agree_on(world, [&] { return make_sets(options, texts); });
    agree_on(world, [&] { prepare_shard_folder(options.output, options.overwrite); });

    PreparedBert prepared{.vocabulary = pieces.size()};
    std::vector<PairShard> shards;
    RankProgress progress = progress_of(world, sets, options.progress);
    for (const BertSet& set : sets) {
        PreparedBertSet& counts = prepared.sets.emplace_back();
        counts.name = set.name;
        counts.shards = set.shards();
        counts.text_bytes = set.bytes();
        std::vector<PairShard> own = agree_on(
            world, [&] { return write_own_shards(world, set, pieces, options, progress, counts); });
        std::move(own.begin(), own.end(), std::back_inserter(shards));
        sum_over_ranks(world, counts);
        agree_on(world, [&] { check_something_is_written(counts); });
    }
    agree_on(world, [&] {
        if (world.rank() == 0)
            begin_replacing_shards(options.output);
    });
    agree_on(world, [&] {
        for (PairShard& shard : shards)
            std::visit([](auto& writer) { writer.commit(); }, shard);
    });
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        const fs::path folder{options.output};
        write_atomically(folder / bert_vocabulary_name, pieces.lines());
        write_atomically(folder / bert_tokenizer_name, tokenizer_config_json(options.text));
        end_replacing_shards(options.output);
    });
    prepared.seconds = monotonic_seconds() - start;
    return prepared;
}

}  // namespace hetseq
