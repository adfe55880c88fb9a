#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/text/subwords/train_subwords.hpp"
#include "hetseq/prepare/prepare_progress.hpp"

namespace hetseq {

class HostComm;

/// Files of text, plain or gzip, one sentence a line: the first source belongs to the first target.
struct ParallelText {
    std::vector<std::string> sources;
    std::vector<std::string> targets;
};

enum class VocabularyType { subwords, dictionary };

struct PrepareTranslationOptions {
    ParallelText train;
    ParallelText valid;       // may be empty
    std::string output;       // folder, made where it is missing
    std::int64_t shards = 0;  // of each set; 0: one for each 100,000 pairs
    VocabularyType type = VocabularyType::subwords;
    SubwordOptions subwords;  // of vocabularies that are trained; a dictionary takes `vocab_size`
    bool joined = false;      // one vocabulary for both sides
    std::string source_vocabulary{};  // a file: not trained; joined: for both sides
    std::string target_vocabulary{};
    std::int64_t sample = 1'000'000;  // lines that a SentencePiece model is trained on; 0: all
    std::uint64_t seed = 1;           // of the sample
    std::int64_t max_length = 0;      // tokens of a side; 0: any
    double max_ratio = 0;             // of the longer side to the shorter one [tokens]; 0: any
    bool overwrite = false;           // replaces the shards that the folder holds
    PrepareProgress progress{};       // of the shards
};

OptionsOf<PrepareTranslationOptions> prepare_translation_options();

/// What was written of one side of a set.
struct PreparedSide {
    std::int64_t text_bytes = 0;  // read
    std::int64_t tokens = 0;      // written, without the ends
    std::int64_t unknown = 0;     // of these
};

/// A set that was written: shards NAME-*.h5.
struct PreparedSet {
    std::string name;          // "train", "valid"
    std::int64_t pairs = 0;    // read
    std::int64_t written = 0;  // pairs
    // Pairs that were dropped, each by the first reason of these.
    std::int64_t empty_source = 0;
    std::int64_t empty_target = 0;
    std::int64_t too_long = 0;
    std::int64_t unlike_lengths = 0;
    PreparedSide source, target;
    std::int64_t shards = 0;
    std::int64_t shard_bytes = 0;
};

struct PreparedTranslation {
    std::vector<PreparedSet> sets;
    std::int64_t source_ids = 0;  // of the vocabularies
    std::int64_t target_ids = 0;
    double training_seconds = 0;  // of the vocabularies
    double encoding_seconds = 0;
};

/// Collective. Writes OUTPUT/train-00000-of-00004.h5 and so on, with ragged fields `source` and
/// `target` of ids, each row with the end symbol and without the begin symbol, and the vocabularies
/// as attachments `source_vocabulary` and `target_vocabulary`, also as files of these names beside
/// the shards. The same input and options give the same bytes on any number of ranks. All text is
/// checked before a vocabulary is trained, and the files appear when all are complete.
/// Throws MissingInput, BadData, BadConfig or IoError, the same on all ranks.
PreparedTranslation prepare_translation(const HostComm& world,
                                        const PrepareTranslationOptions& options);

}  // namespace hetseq
