#include <ATen/ATen.h>

#include "builtin_parts.hpp"

#include "hetseq/model/bert.hpp"
#include "hetseq/model/model_file.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

namespace {

BertConfig config_of(const PartOptions& options) {
    BertConfig config;
    if (!options.init_model.empty() && options.model_config.empty())
        config = read_bert_config(model_config_file(options.init_model));
    else
        config = bert_config(options.model_config.empty() ? "base" : options.model_config);
    if (options.dropout)
        config.hidden_dropout = *options.dropout;
    if (options.attention_dropout)
        config.attention_dropout = *options.attention_dropout;
    return config;
}

// The shards that NVIDIA's create_pretraining_data.py writes.
CorpusSchema pretraining_schema(const PartOptions& options) {
    const BertConfig config = config_of(options);
    const std::string ids =
        "ids of the vocabulary (vocab_size " + std::to_string(config.vocab_size) + ")";
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
                       {.name = "next_sentence_labels",
                        .rank = 1,
                        .type = ElementType::int8,
                        .row_shape = {},
                        .minimum = 0,
                        .maximum = 1,
                        .meaning = "0 for the next sentence, 1 for a random one",
                        .is_target = true}}};
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

}  // namespace

void add_bert_parts(Parts& parts) {
    parts.models.add("bert",
                     [](const PartOptions& options) { return make_bert(config_of(options)); });
    parts.datasets.add("bert-pretraining", pretraining_schema);
    parts.batchings.add("bert-pretraining",
                        [](const PartOptions&) { return std::make_unique<PretrainingCollator>(); });
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
