#include "hetseq/data/prepare_tagged.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "tagged_text.hpp"

#include "hetseq/text/bert_tokenizer.hpp"
#include "hetseq/text/entities.hpp"
#include "hetseq/text/text_lines.hpp"
#include "hetseq/text/tokenizer_config.hpp"
#include "hetseq/text/word_pieces.hpp"
#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/data/prepare_bert.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

struct TaggedSet {
    std::string name;
    std::vector<TaggedSentence> sentences;
};

void check_options(const PrepareTaggedOptions& options) {
    if (options.train.empty())
        throw BadConfig("no text is named", "", "give --input");
    if (options.shards < 1 || options.shards > most_shards)
        throw BadConfig("--shards " + std::to_string(options.shards), "", "give 1 to 99999");
    if (options.max_length < 3)
        throw BadConfig("--max-length " + std::to_string(options.max_length),
                        "[CLS], [SEP] and a piece need room",
                        "give 3 or more");
    if (options.word_column < 1 || options.tag_column < 0)
        throw BadConfig("columns are counted from 1", "", "give --word-column 1 and the like");
}

std::vector<TaggedSet> read_sets(const PrepareTaggedOptions& options) {
    std::vector<TaggedSet> sets;
    for (const auto& [name, files] : {std::pair{"train", &options.train},
                                      std::pair{"valid", &options.valid},
                                      std::pair{"test", &options.test}}) {
        if (files->empty())
            continue;
        TaggedSet& set = sets.emplace_back(TaggedSet{name, {}});
        for (const std::string& file : *files) {
            auto sentences = read_tagged_text(file, {options.word_column, options.tag_column});
            std::move(sentences.begin(), sentences.end(), std::back_inserter(set.sentences));
        }
    }
    return sets;
}

// O, then the types by name, each with B before I.
std::vector<std::string> tags_of(const std::vector<TaggedSet>& sets) {
    const auto place = [](const std::string& tag) {
        return tag == "O" ? std::tuple{0, std::string(), 'O'}
                          : std::tuple{1, tag.substr(2), tag[0]};
    };
    std::map<std::tuple<int, std::string, char>, std::string> found;
    for (const TaggedSet& set : sets)
        for (const TaggedSentence& sentence : set.sentences)
            for (const std::string& tag : sentence.tags)
                found.emplace(place(tag), tag);
    std::vector<std::string> tags;
    for (const auto& [at, tag] : found)
        tags.push_back(tag);
    return tags;
}

TagSet tag_set(const PrepareTaggedOptions& options, const std::vector<TaggedSet>& sets) {
    if (options.tags.empty())
        return TagSet{tags_of(sets), "the text"};
    const TagSet known{read_text_lines(options.tags), options.tags};
    for (const std::string& tag : tags_of(sets))
        if (std::find(known.names().begin(), known.names().end(), tag) == known.names().end())
            throw BadData("the text has the tag '" + tag + "'",
                          options.tags + " lacks it",
                          "add it to that file, or leave --labels out");
    return known;
}

std::string lines_of(const std::vector<std::string>& names) {
    return join(names, "\n") + "\n";
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

    RaggedShardWriter write(const fs::path& path,
                            std::span<const TaggedSentence> sentences,
                            PreparedTaggedSet& counts) {
        RaggedShardWriter writer{path,
                                 {{"input_ids", pieces_.size()},
                                  {"words", options_.max_length},
                                  {"labels", tags_.size()}},
                                 ShardFormat::large_attributes};
        writer.attach_text(bert_vocabulary_name, pieces_.lines());
        writer.attach_text(bert_tokenizer_name, tokenizer_config_json(options_.text));
        writer.attach_text(labels_name, lines_of(tags_.names()));
        for (const TaggedSentence& sentence : sentences)
            append(sentence, writer, counts);
        counts.shard_bytes += writer.finish();
        return writer;
    }

private:
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

    WordEncoder words_;
    const WordPiece& pieces_;
    const TagSet& tags_;
    const PrepareTaggedOptions& options_;
    std::map<std::string, std::int32_t> numbers_;  // of tags
    std::vector<std::int32_t> labels_;             // of a sentence
};

std::vector<RaggedShardWriter> write_set(const TaggedSet& set,
                                         const PrepareTaggedOptions& options,
                                         TaggedEncoder& encoder,
                                         PreparedTaggedSet& counts) {
    counts.name = set.name;
    std::vector<RaggedShardWriter> shards;
    const std::span sentences{set.sentences};
    const std::int64_t count = std::ssize(set.sentences);
    for (std::int64_t i = 0; i < options.shards; ++i) {
        const std::int64_t begin = count * i / options.shards;
        const std::int64_t end = count * (i + 1) / options.shards;
        shards.push_back(
            encoder.write(fs::path(options.output) / shard_name(set.name, i, options.shards),
                          sentences.subspan(static_cast<std::size_t>(begin),
                                            static_cast<std::size_t>(end - begin)),
                          counts));
    }
    return shards;
}

}  // namespace

PreparedTagged prepare_tagged(const PrepareTaggedOptions& options) {
    check_options(options);
    const WordPiece pieces = WordPiece::read(options.vocabulary);
    const std::vector<TaggedSet> sets = read_sets(options);
    const TagSet tags = tag_set(options, sets);
    std::vector<std::string> names;
    for (const TaggedSet& set : sets)
        names.push_back(set.name);
    prepare_shard_folder(options.output, names, options.overwrite);

    PreparedTagged prepared{.tags = tags.names(), .vocabulary = pieces.size()};
    TaggedEncoder encoder{pieces, tags, options};
    std::vector<RaggedShardWriter> shards;
    for (const TaggedSet& set : sets) {
        auto written = write_set(set, options, encoder, prepared.sets.emplace_back());
        std::move(written.begin(), written.end(), std::back_inserter(shards));
    }
    for (const std::string& name : names)
        remove_other_shards(options.output, name, options.shards);
    for (RaggedShardWriter& shard : shards)
        shard.commit();
    const fs::path folder{options.output};
    write_atomically(folder / bert_vocabulary_name, pieces.lines());
    write_atomically(folder / bert_tokenizer_name, tokenizer_config_json(options.text));
    write_atomically(folder / labels_name, lines_of(tags.names()));
    return prepared;
}

}  // namespace hetseq
