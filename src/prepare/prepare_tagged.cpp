#include "hetseq/prepare/prepare_tagged.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/text/scores/entities.hpp"
#include "hetseq/text/subwords/word_pieces.hpp"

#include "labelled_shards.hpp"
#include "tagged_text.hpp"

namespace hetseq {

namespace {

using TaggedSets = std::vector<LabelledSet<TaggedSentence>>;

void check_options(const PrepareTaggedOptions& options) {
    check_labelled_options(options.train, options.shards);
    if (options.max_length < 3)
        throw BadConfig("--max-length " + std::to_string(options.max_length),
                        "[CLS], [SEP] and a piece need room",
                        "give 3 or more");
    if (options.word_column < 1 || options.tag_column < 0)
        throw BadConfig("columns are counted from 1", "", "give --word-column 1 and the like");
}

TaggedSets read_sets(const PrepareTaggedOptions& options) {
    return read_labelled_sets(
        sets_with_files(options.train, options.valid, options.test), [&](const std::string& file) {
            return read_tagged_text(file, {options.word_column, options.tag_column});
        });
}

// O, then the types by name, each with B before I.
std::vector<std::string> tags_of(const TaggedSets& sets) {
    const auto place = [](const std::string& tag) {
        return tag == "O" ? std::tuple{0, std::string(), 'O'}
                          : std::tuple{1, tag.substr(2), tag[0]};
    };
    std::map<std::tuple<int, std::string, char>, std::string> found;
    for (const auto& set : sets)
        for (const TaggedSentence& sentence : set.rows)
            for (const std::string& tag : sentence.tags)
                found.emplace(place(tag), tag);
    std::vector<std::string> tags;
    for (const auto& [at, tag] : found)
        tags.push_back(tag);
    return tags;
}

TagSet tag_set(const PrepareTaggedOptions& options, const TaggedSets& sets) {
    const std::vector<std::string> used = tags_of(sets);
    return options.tags.empty() ? TagSet{used, "the text"}
                                : TagSet{read_labels(options.tags, used, "tag"), options.tags};
}

/// Turns sentences into rows of shards, and counts what it meets.
class TaggedEncoder {
public:
    TaggedEncoder(const WordPiece& pieces, const TagSet& tags, const PrepareTaggedOptions& options)
        : words_{pieces, options.text, options.max_length},
          pieces_{pieces},
          tags_{tags},
          options_{options} {
        for (const std::string& name : tags.names())
            numbers_.emplace(name, static_cast<std::int32_t>(numbers_.size()));
    }

    std::vector<RaggedShardWriter::Field> fields() const {
        return {{"input_ids", pieces_.size()},
                {"words", options_.max_length},
                {"labels", tags_.size()}};
    }

    void append(const TaggedSentence& sentence,
                RaggedShardWriter& writer,
                PreparedTaggedSet& counts) {
        const WordPieces row = words_.encode(sentence.words);
        labels_.clear();
        for (std::size_t i = 0; i < row.words.size(); ++i)
            labels_.push_back(numbers_.at(sentence.tags[i]));
        writer.append(0, row.ids);
        writer.append(1, row.words);
        writer.append(2, labels_);
        const std::int64_t cut = std::ssize(sentence.words) - std::ssize(row.words);
        ++counts.sentences;
        counts.words += std::ssize(row.words);
        counts.pieces += std::ssize(row.ids) - 2;
        counts.unknown += std::count(row.ids.begin(), row.ids.end(), pieces_.unknown_id());
        counts.entities += std::ssize(tags_.entities(labels_, EntityMode::lenient));
        counts.cut_words += cut;
        counts.cut_sentences += cut > 0 ? 1 : 0;
    }

private:
    WordEncoder words_;
    const WordPiece& pieces_;
    const TagSet& tags_;
    const PrepareTaggedOptions& options_;
    std::map<std::string, std::int32_t> numbers_;  // of tags
    std::vector<std::int32_t> labels_;             // of a sentence
};

}  // namespace

PreparedTagged prepare_tagged(const PrepareTaggedOptions& options) {
    check_options(options);
    const WordPiece pieces = WordPiece::read(options.vocabulary);
    const TaggedSets sets = read_sets(options);
    const TagSet tags = tag_set(options, sets);
    LabelledShards shards{
        options.output, options.shards, options.overwrite, pieces, options.text, tags.names()};

    PreparedTagged prepared{.tags = tags.names(), .vocabulary = pieces.size()};
    TaggedEncoder encoder{pieces, tags, options};
    prepared.sets = write_labelled_sets<PreparedTaggedSet>(shards, encoder, sets);
    return prepared;
}

}  // namespace hetseq
