#include "labelled_shards.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/text_lines.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"

namespace hetseq {

std::vector<LabelledFiles> sets_with_files(const std::vector<std::string>& train,
                                           const std::vector<std::string>& valid,
                                           const std::vector<std::string>& test) {
    std::vector<LabelledFiles> sets;
    for (const LabelledFiles& set : {LabelledFiles{"train", train},
                                     LabelledFiles{"valid", valid},
                                     LabelledFiles{"test", test}})
        if (!set.files.empty())
            sets.push_back(set);
    return sets;
}

void check_labelled_options(const std::vector<std::string>& train, std::int64_t shards) {
    if (train.empty())
        throw BadConfig("no text is named", "", "give --input");
    if (shards < 1 || shards > most_shards)
        throw BadConfig("--shards " + std::to_string(shards), "", "give 1 to 99999");
}

std::vector<std::string> read_labels(const std::string& path,
                                     const std::vector<std::string>& used,
                                     const std::string& kind) {
    std::vector<std::string> labels = read_text_lines(path);
    std::set<std::string> distinct;
    for (const std::string& label : labels)
        if (label.empty() || !distinct.insert(label).second)
            throw BadData(label.empty() ? path + " has an empty line"
                                        : "'" + label + "' stands twice in " + path,
                          "each line is a " + kind,
                          "remove that line");
    for (const std::string& label : used)
        if (std::find(labels.begin(), labels.end(), label) == labels.end())
            throw BadData("the text has the " + kind + " '" + label + "'",
                          path + " lacks it",
                          "add it to that file, or leave --labels out");
    return labels;
}

LabelledShards::LabelledShards(const std::string& output,
                               std::int64_t shards,
                               bool overwrite,
                               const WordPiece& pieces,
                               const BasicTokenizerOptions& tokenizer,
                               const std::vector<std::string>& labels)
    : folder_{output},
      shards_of_set_{shards},
      texts_{{bert_vocabulary_name, pieces.lines()},
             {bert_tokenizer_name, tokenizer_config_json(tokenizer)},
             {labels_name, join(labels, "\n") + "\n"}} {
    prepare_shard_folder(output, overwrite);
}

std::int64_t LabelledShards::write(
    const std::string& set,
    const std::vector<RaggedShardWriter::Field>& fields,
    std::int64_t rows,
    const std::function<void(std::int64_t, RaggedShardWriter&)>& append) {
    std::int64_t bytes = 0;
    for (std::int64_t i = 0; i < shards_of_set_; ++i) {
        RaggedShardWriter& writer = shards_.emplace_back(
            folder_ / shard_name(set, i, shards_of_set_), fields, ShardFormat::large_attributes);
        for (const Text& text : texts_)
            writer.attach_text(text.name, text.text);
        for (std::int64_t row = rows * i / shards_of_set_; row < rows * (i + 1) / shards_of_set_;
             ++row)
            append(row, writer);
        bytes += writer.finish();
    }
    return bytes;
}

void LabelledShards::commit() {
    begin_replacing_shards(folder_.string());
    for (RaggedShardWriter& shard : shards_)
        shard.commit();
    for (const Text& text : texts_)
        write_atomically(folder_ / text.name, text.text);
    end_replacing_shards(folder_.string());
}

}  // namespace hetseq
