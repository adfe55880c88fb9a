#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/nonzero.h>

#include "hetseq/util/error.hpp"
#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/data/files/first_shard.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/prepare/bert/masking_vocabulary.hpp"
#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/model/bert/bert.hpp"
#include "hetseq/task/parts.hpp"

#include "bert_export.hpp"
#include "bert_masking.hpp"
#include "bert_setup.hpp"
#include "builtin_parts.hpp"

namespace hetseq {

namespace {

FieldSchema next_sentence_labels(bool is_target) {
    return {.name = "next_sentence_labels",
            .rank = 1,
            .type = ElementType::int8,
            .minimum = 0,
            .maximum = 1,
            .meaning = "0 for the next sentence, 1 for a random one",
            .is_target = is_target};
}

// The shards that NVIDIA's create_pretraining_data.py writes.
CorpusSchema masked_schema(const BertConfig& config) {
    const std::string ids = meaning_of_ids(config);
    const auto tokens = [&](const std::string& name,
                            ElementType type,
                            std::int64_t highest,
                            const std::string& meaning) {
        return FieldSchema{.name = name,
                           .rank = 2,
                           .type = type,
                           .row_shape = {-1},
                           .same_row_shape_as = name == "input_ids" ? "" : "input_ids",
                           .max_row_length = config.max_position_embeddings,
                           .minimum = 0,
                           .maximum = highest,
                           .meaning = meaning};
    };
    FieldSchema positions{.name = "masked_lm_positions",
                          .rank = 2,
                          .type = ElementType::int32,
                          .row_shape = {-1},
                          .minimum = 0,
                          .below_row_length_of = "input_ids",
                          .meaning = "positions in the sequence",
                          .is_target = true};
    FieldSchema labels{.name = "masked_lm_ids",
                       .rank = 2,
                       .type = ElementType::int32,
                       .row_shape = {-1},
                       .same_row_shape_as = "masked_lm_positions",
                       .minimum = 0,
                       .maximum = config.vocab_size - 1,
                       .meaning = ids,
                       .is_target = true};
    return {.kind = "BERT pretraining",
            .fields = {tokens("input_ids", ElementType::int32, config.vocab_size - 1, ids),
                       tokens("input_mask", ElementType::int8, 1, "0 for padding, 1 for a token"),
                       tokens("segment_ids",
                              ElementType::int8,
                              config.type_vocab_size - 1,
                              "segments (type_vocab_size)"),
                       positions,
                       labels,
                       next_sentence_labels(true)}};
}

// The shards that `hetseq prepare bert --static-masks off` writes.
CorpusSchema unmasked_schema(const BertConfig& config) {
    if (config.type_vocab_size < 2)
        throw BadConfig("the model has one type of segment (type_vocab_size)",
                        "the data are pairs of sentences",
                        "use a model with two types, as BERT has");
    FieldSchema borders{.name = "second_segments",
                        .minimum = 1,
                        .below_row_length_of = "input_ids",
                        .meaning = "where the second segment begins"};
    return {.kind = "BERT pretraining on unmasked pairs",
            .fields = {ragged_ids(config), borders, next_sentence_labels(true)},
            .units_field = "input_ids"};
}

bool is_unmasked(const PartOptions& options) {
    return !options.data.empty() && first_shard_holds(options.data, offsets_name("input_ids"));
}

CorpusSchema pretraining_schema(const PartOptions& options) {
    const BertConfig config = bert_config_of(options);
    CorpusSchema schema = is_unmasked(options) ? unmasked_schema(config) : masked_schema(config);
    schema.attachments = bert_text_attachments(options);
    return schema;
}

/// The weights are the masked tokens (masked_lm_ids other than 0) for "mlm" and the sequences for
/// "nsp". The tensors are those that `make_bert` takes; what comes of targets that are not there is
/// left out.
class PretrainingCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        batch.tensors["input_ids"] = rows.at("input_ids").to(at::kLong);  // (n, T)
        batch.tensors["segment_ids"] = rows.at("segment_ids").to(at::kLong);
        batch.tensors["attention_mask"] = rows.at("input_mask").to(at::kLong);
        if (rows.count("next_sentence_labels") != 0)
            batch.tensors["next_sentence_labels"] = rows.at("next_sentence_labels").to(at::kLong);
        batch.weights = {masked_tokens(rows, batch.tensors),
                         static_cast<double>(sample_ids.numel())};
        const auto masked = batch.tensors.find("masked_positions");
        note_row_lengths(
            batch,
            rows.at("input_mask"),
            masked == batch.tensors.end() ? at::empty({0}, at::kLong) : masked->second);
        return batch;
    }

private:
    static double masked_tokens(const TensorDict& rows, TensorDict& tensors) {
        if (rows.count("masked_lm_ids") == 0 || rows.count("masked_lm_positions") == 0)
            return 0;
        const at::Tensor labels = rows.at("masked_lm_ids");  // (n, P)
        const at::Tensor entries = at::nonzero(labels);      // (M, 2): sample, entry
        const at::Tensor sample = entries.select(1, 0);
        const at::Tensor position =
            rows.at("masked_lm_positions").index({sample, entries.select(1, 1)}).to(at::kLong);
        const std::int64_t length = tensors.at("input_ids").size(1);
        tensors["masked_positions"] = sample * length + position;  // (M), into n * T
        tensors["masked_labels"] = labels.index({sample, entries.select(1, 1)}).to(at::kLong);
        return static_cast<double>(entries.size(0));
    }
};

const Option<double>& masked_lm_prob() {
    static const auto option =
        number_option("masked-lm-prob",
                      "0.15",
                      "share of a pair's tokens to predict, where shards hold unmasked pairs",
                      0,
                      1);
    return option;
}

const Option<std::int64_t>& max_predictions() {
    static const auto option = whole_number_option(
        "max-predictions", "0", "tokens to predict in such a pair at most; 0: any number");
    return option;
}

const Option<bool>& whole_word_masking() {
    static const auto option =
        switch_option("whole-word-masking", "mask all pieces of a word of such a pair or none");
    return option;
}

MaskingVocabulary vocabulary_to_mask(const PartOptions& options) {
    const auto vocabulary = read_attached_text(options.data, bert_vocabulary_name);
    if (!vocabulary)
        throw BadData(options.data + " holds unmasked pairs and no vocabulary",
                      "masking needs its [MASK]",
                      "prepare the data by hetseq prepare bert");
    return masking_vocabulary(WordPiece::parse(*vocabulary, options.data));
}

std::unique_ptr<Collator> make_batching(const PartOptions& options) {
    if (!is_unmasked(options))
        return std::make_unique<PretrainingCollator>();
    const std::int64_t most = options.get(max_predictions());
    return make_masking_collator(
        vocabulary_to_mask(options),
        {.prob = options.get(masked_lm_prob()),
         .most_predictions = most > 0 ? most : std::numeric_limits<std::int64_t>::max(),
         .whole_words = options.get(whole_word_masking())},
        options.seed);
}

const Option<std::string>& decoder_bias() {
    static const auto option =
        choice_option("decoder-bias",
                      {"zero", "unigram"},
                      "zero",
                      "how the bias of the masked tokens' decoder begins: 0, or the logarithm of "
                      "the tokens' frequencies");
    return option;
}

// The tokens that masking chooses from in the data, or enough of them for their frequencies: the
// first ones of some shards, as a corpus of several kinds of text lies side by side.
std::vector<std::int64_t> tokens_to_predict(const PartOptions& options) {
    constexpr std::size_t most_shards = 16, most_tokens = std::size_t{1} << 22;
    if (options.data.empty())
        throw BadConfig("--decoder-bias unigram counts tokens", "--data is not given", "name it");
    const bool unmasked = is_unmasked(options);
    const std::vector<std::string> shards = expand_shard_spec(options.data);
    const std::size_t count = std::min(shards.size(), most_shards);
    std::vector<std::int64_t> tokens;
    for (std::size_t i = 0; i < count; ++i) {
        const std::vector<std::int64_t> some =
            read_first_integers(shards[i * shards.size() / count],
                                unmasked ? "input_ids" : "masked_lm_ids",
                                static_cast<std::int64_t>(most_tokens / count));
        tokens.insert(tokens.end(), some.begin(), some.end());
    }
    if (unmasked) {
        const MaskingVocabulary special = vocabulary_to_mask(options);
        std::erase_if(tokens, [&](std::int64_t token) {
            return token == special.begin || token == special.separator;
        });
    } else {
        std::erase(tokens, 0);  // entries without a prediction
    }
    return tokens;
}

// (vocab_size) fp64. A token that was not seen counts as half a one.
at::Tensor log_frequencies(const PartOptions& options, std::int64_t vocab_size) {
    constexpr double unseen = 0.5;
    at::Tensor counts = at::full({vocab_size}, unseen, at::kDouble);
    auto* count = counts.mutable_data_ptr<double>();
    for (const std::int64_t token : tokens_to_predict(options))
        if (token >= 0 && token < vocab_size)  // otherwise opening the corpus says so
            ++count[token];
    return at::log(counts / counts.sum());
}

// A bias of 0 lets the network learn the frequencies by vectors that are alike for all tokens.
// Meister et al. 2023, "A Natural Bias for Language Generation Models", section 2.
std::shared_ptr<Model> make_pretraining(const PartOptions& options) {
    const BertConfig config = bert_config_of(options);
    std::function<at::Tensor()> bias;
    if (options.get(decoder_bias()) == "unigram")
        bias = [options, size = config.vocab_size] { return log_frequencies(options, size); };
    return make_bert(config, bert_text_files(options, config), std::move(bias));
}

}  // namespace

void add_bert_parts(Parts& parts) {
    parts.models.add("bert", make_pretraining, {decoder_bias()});
    parts.exports.add("bert", {.change = export_bert});
    parts.datasets.add("bert-pretraining", pretraining_schema);
    parts.batchings.add("bert-pretraining",
                        make_batching,
                        {masked_lm_prob(), max_predictions(), whole_word_masking()});
    parts.tasks.add("bert",
                    {.help = "BERT pretraining: masked tokens and next sentences",
                     .model = "bert",
                     .dataset = "bert-pretraining",
                     .batching = "bert-pretraining",
                     .defaults = {{"optimizer", "adamw"},
                                  {"lr", "1e-4"},
                                  {"lr-scheduler", "polynomial_decay"},
                                  {"weight-decay", "0.01"},
                                  {"clip-norm", "1"},
                                  {"max-sentences", "16"}}});
}

}  // namespace hetseq
