#include "hetseq/prepare/prepare_translation.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/prepare/files/text_index.hpp"

#include "pair_encoder.hpp"
#include "rank_progress.hpp"
#include "sum_counts.hpp"
#include "translation_vocabularies.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t usual_pairs_of_shard = 100'000;
constexpr std::int64_t special_ids = 3;  // unknown, begin, end

void check_files(const ParallelText& text, const std::string& set) {
    if (text.sources.size() != text.targets.size())
        throw BadConfig("the files of " + set + " do not pair up",
                        std::to_string(text.sources.size()) + " of the source, " +
                            std::to_string(text.targets.size()) + " of the target",
                        "name one target file for each source file, in the same order");
}

void check_options(const PrepareTranslationOptions& options) {
    check_files(options.train, "train");
    check_files(options.valid, "valid");
    if (options.train.sources.empty())
        throw BadConfig("no text is named", "", "give --source-text and --target-text");
    if (options.shards < 0 || options.shards > most_shards)
        throw BadConfig("--shards " + std::to_string(options.shards), "", "give 0 to 99999");
    if (options.joined && !options.target_vocabulary.empty())
        throw BadConfig("--joined takes one vocabulary for both sides",
                        "--target-vocabulary is given too",
                        "give --source-vocabulary alone, or leave --joined out");
    const bool trains =
        options.source_vocabulary.empty() || (!options.joined && options.target_vocabulary.empty());
    if (trains && options.type == VocabularyType::subwords &&
        options.subwords.vocab_size <= special_ids)
        throw BadConfig("--vocab-size is missing",
                        "a SentencePiece model is trained",
                        "give the number of its ids, such as 32000 for millions of sentences");
}

std::vector<std::string> all_files(const PrepareTranslationOptions& options) {
    std::vector<std::string> files;
    for (const auto& side : {options.train.sources,
                             options.train.targets,
                             options.valid.sources,
                             options.valid.targets})
        files.insert(files.end(), side.begin(), side.end());
    return files;
}

void check_same_lines(const IndexedPairs& pairs) {
    for (std::size_t i = 0; i < pairs.sources.size(); ++i) {
        const TextIndex& source = pairs.sources[i];
        const TextIndex& target = pairs.targets[i];
        if (source.lines != target.lines)
            throw BadData(
                source.path + " and " + target.path + " do not belong together",
                std::to_string(source.lines) + " lines, " + std::to_string(target.lines) + " lines",
                "name files whose lines are translations of each other");
    }
}

// One set on its way to the shards.
struct SetToPrepare {
    std::string name;
    IndexedPairs pairs;
    std::int64_t count = 0;  // of pairs
    std::int64_t shards = 0;

    std::int64_t first_pair(std::int64_t shard) const { return count * shard / shards; }
};

SetToPrepare make_set(const std::string& name,
                      std::span<const TextIndex> texts,
                      std::int64_t shards) {
    const IndexedPairs pairs{texts.first(texts.size() / 2), texts.last(texts.size() / 2)};
    check_same_lines(pairs);
    const std::int64_t count = total_lines(pairs.sources);
    if (shards == 0)
        shards = (count + usual_pairs_of_shard - 1) / usual_pairs_of_shard;
    return {name, pairs, count, std::min(shards, most_shards)};
}

std::vector<SetToPrepare> make_sets(const PrepareTranslationOptions& options,
                                    std::span<const TextIndex> texts) {
    const std::size_t of_train = 2 * options.train.sources.size();
    std::vector<SetToPrepare> sets{make_set("train", texts.first(of_train), options.shards)};
    if (texts.size() > of_train)
        sets.push_back(make_set("valid", texts.subspan(of_train), options.shards));
    return sets;
}

// In pairs.
RankProgress progress_of(const HostComm& world,
                         const std::vector<SetToPrepare>& sets,
                         const PrepareTranslationOptions& options,
                         std::span<const TextIndex> texts) {
    std::int64_t bytes = 0, own = 0;
    for (const TextIndex& text : texts)
        bytes += text.bytes;
    for (const SetToPrepare& set : sets)
        for (std::int64_t i = world.rank(); i < set.shards; i += world.size())
            own += set.first_pair(i + 1) - set.first_pair(i);
    return {
        world.rank() == 0 ? options.progress : PrepareProgress{}, bytes, static_cast<double>(own)};
}

// This rank's shards of one set: it takes every so many, so that it goes through the text once.
std::vector<RaggedShardWriter> write_own_shards(const HostComm& world,
                                                const SetToPrepare& set,
                                                const TranslationVocabularies& vocabularies,
                                                const PrepareTranslationOptions& options,
                                                RankProgress& progress,
                                                PreparedSet& counts) {
    PairEncoder encoder{set.pairs, vocabularies, options};
    std::vector<RaggedShardWriter> shards;
    for (std::int64_t i = world.rank(); i < set.shards; i += world.size()) {
        RaggedShardWriter& shard = shards.emplace_back(
            fs::path(options.output) / shard_name(set.name, i, set.shards),
            std::vector<RaggedShardWriter::Field>{{"source", vocabularies.source.size()},
                                                  {"target", vocabularies.target.size()}});
        encoder.write(set.first_pair(i), set.first_pair(i + 1), shard, counts, progress);
        counts.shard_bytes += shard.finish();
    }
    return shards;
}

// Sums the counts over the ranks. Collective.
void sum_over_ranks(const HostComm& world, PreparedSet& set) {
    sum_counts(world,
               std::array{&set.pairs,
                          &set.written,
                          &set.empty_source,
                          &set.empty_target,
                          &set.too_long,
                          &set.unlike_lengths,
                          &set.source.text_bytes,
                          &set.source.tokens,
                          &set.source.unknown,
                          &set.target.text_bytes,
                          &set.target.tokens,
                          &set.target.unknown,
                          &set.shard_bytes});
}

void check_something_is_written(const PreparedSet& set) {
    if (set.written == 0)
        throw BadData("no pair of " + set.name + " is left",
                      "all " + std::to_string(set.pairs) + " were dropped",
                      "allow more by --max-length and --max-ratio, or check the text");
}

// Rank 0 names the vocabularies' files, all ranks their shards. Collective.
void commit_all(const HostComm& world,
                const TranslationVocabularies& vocabularies,
                const std::string& folder,
                std::vector<RaggedShardWriter>& shards) {
    agree_on(world, [&] {
        if (world.rank() == 0)
            begin_replacing_shards(folder);
    });
    agree_on(world, [&] {
        for (RaggedShardWriter& shard : shards)
            shard.commit();
    });
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        write_atomically(fs::path(folder) / "source.vocabulary", vocabularies.source.bytes());
        write_atomically(fs::path(folder) / "target.vocabulary", vocabularies.target.bytes());
        end_replacing_shards(folder);
    });
}

}  // namespace

PreparedTranslation prepare_translation(const HostComm& world,
                                        const PrepareTranslationOptions& options) {
    agree_on(world, [&] { check_options(options); });
    const std::vector<TextIndex> texts = index_texts(world, all_files(options));
    const std::vector<SetToPrepare> sets =
        agree_on(world, [&] { return make_sets(options, texts); });
    agree_on(world, [&] { prepare_shard_folder(options.output, options.overwrite); });

    PreparedTranslation prepared;
    const double start = monotonic_seconds();
    const TranslationVocabularies vocabularies = translation_vocabularies(
        world, options, sets.front().pairs.sources, sets.front().pairs.targets);
    prepared.training_seconds = monotonic_seconds() - start;
    prepared.source_ids = vocabularies.source.size();
    prepared.target_ids = vocabularies.target.size();

    RankProgress progress = progress_of(world, sets, options, texts);
    std::vector<RaggedShardWriter> shards;
    for (const SetToPrepare& set : sets) {
        PreparedSet& counts = prepared.sets.emplace_back();
        counts.name = set.name;
        counts.shards = set.shards;
        std::vector<RaggedShardWriter> own = agree_on(world, [&] {
            return write_own_shards(world, set, vocabularies, options, progress, counts);
        });
        std::move(own.begin(), own.end(), std::back_inserter(shards));
        sum_over_ranks(world, counts);
        agree_on(world, [&] { check_something_is_written(counts); });
    }
    commit_all(world, vocabularies, options.output, shards);
    prepared.encoding_seconds = monotonic_seconds() - start - prepared.training_seconds;
    return prepared;
}

}  // namespace hetseq
