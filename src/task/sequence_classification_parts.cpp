#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/first_shard.hpp"
#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/model/bert/bert_classifiers.hpp"
#include "hetseq/task/parts.hpp"

#include "bert_lines.hpp"
#include "bert_setup.hpp"
#include "builtin_parts.hpp"
#include "fine_tuning.hpp"
#include "task/scorers/sequence_scorer.hpp"

namespace hetseq {

namespace {

constexpr const char* second_field = "second_segments";

// transformers' rule: one label is a number's name.
bool is_number(const std::vector<std::string>& labels) {
    return labels.size() == 1;
}

std::shared_ptr<Model> make_sequence_classifier(const PartOptions& options) {
    const BertConfig config = classifier_config(options);
    const std::vector<std::string> labels = labels_of(options, sequence_classifier);
    BertClassifierSetup setup = classifier_setup(options, config, sequence_classifier, labels);
    if (is_number(labels)) {
        if (!setup.class_weights.empty())
            throw BadConfig("--class-weights for numbers",
                            "the data hold numbers to predict, not labels",
                            "leave it out");
        setup.scores = number_score_names();
        setup.make_scorer = make_number_scorer;
        return make_bert_sequence_classifier(config, std::move(setup), SequenceTarget::number);
    }
    setup.scores = label_score_names(labels.size());
    setup.make_scorer = [count = labels.size()] { return make_label_scorer(count); };
    return make_bert_sequence_classifier(config, std::move(setup));
}

FieldSchema labels_field(const PartOptions& options) {
    const std::vector<std::string> labels = labels_of(options, sequence_classifier);
    FieldSchema field{.name = "labels", .is_target = true};
    if (is_number(labels)) {
        field.type = ElementType::float64;
        field.meaning = "numbers to predict";
        return field;
    }
    field.minimum = 0;
    field.maximum = static_cast<double>(labels.size() - 1);
    field.meaning = "numbers of the labels";
    return field;
}

// The shards that `hetseq prepare classification` writes.
CorpusSchema classified_schema(const PartOptions& options) {
    const BertConfig config = bert_config_of(options);
    CorpusSchema schema{.kind = "sequence classification",
                        .fields = {ragged_ids(config), labels_field(options)},
                        .units_field = "input_ids",
                        .attachments = labelled_attachments(options)};
    if (options.data.empty() || !first_shard_holds(options.data, second_field))
        return schema;
    if (config.type_vocab_size < 2)
        throw BadConfig("the model has one type of segment (type_vocab_size)",
                        options.data + " holds pairs of texts",
                        "use a model with two types, as BERT has");
    schema.fields.push_back({.name = second_field,
                             .minimum = 1,
                             .below_row_length_of = "input_ids",
                             .meaning = "where the second text begins"});
    return schema;
}

/// Weight: sequences. Tensors as `make_bert_sequence_classifier` takes them.
class ClassifiedCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        const at::Tensor lengths = row_lengths(rows, "input_ids");               // (n)
        const at::Tensor ids = padded_rows(rows, "input_ids", 0).to(at::kLong);  // (n, T)
        const at::Tensor place = at::arange(ids.size(1)).unsqueeze(0);           // (1, T)
        const at::Tensor is_token = place < lengths.unsqueeze(1);
        MicroBatch batch;
        batch.tensors["input_ids"] = ids;
        batch.tensors["segment_ids"] = segments(rows, place, is_token);
        batch.tensors["attention_mask"] = is_token.to(at::kLong);
        if (const auto labels = rows.find("labels"); labels != rows.end())
            batch.tensors["labels"] = at::isFloatingType(labels->second.scalar_type())
                                          ? labels->second
                                          : labels->second.to(at::kLong);
        batch.weights = {static_cast<double>(sample_ids.numel())};
        note_row_lengths(batch, is_token, first_places(ids));
        return batch;
    }

private:
    static at::Tensor segments(const TensorDict& rows,
                               const at::Tensor& place,
                               const at::Tensor& is_token) {
        const auto second = rows.find(second_field);
        if (second == rows.end())
            return at::zeros_like(is_token, at::kLong);
        return ((place >= second->second.to(at::kLong).unsqueeze(1)) & is_token).to(at::kLong);
    }

    static at::Tensor first_places(const at::Tensor& ids) {
        return at::arange(ids.size(0)) * ids.size(1);
    }
};

}  // namespace

void add_sequence_classification_parts(Parts& parts) {
    parts.models.add("bert-sequence-classifier", make_sequence_classifier, fine_tuning_options());
    parts.lines.add("bert-sequence-classifier", make_classifying);
    parts.datasets.add("sequence-classification", classified_schema);
    parts.batchings.add("sequence-classification",
                        [](const PartOptions&) { return std::make_unique<ClassifiedCollator>(); });
    parts.tasks.add("sequence-classification",
                    {.help = "a label or a number for a text or a pair of texts: fine-tunes a BERT",
                     .model = "bert-sequence-classifier",
                     .dataset = "sequence-classification",
                     .batching = "sequence-classification",
                     .defaults = {{"optimizer", "adamw"},
                                  {"lr", "5e-5"},
                                  {"lr-scheduler", "polynomial_decay"},
                                  {"weight-decay", "0.01"},
                                  {"clip-norm", "1"},
                                  {"max-tokens", "2048"}}});
}

}  // namespace hetseq
