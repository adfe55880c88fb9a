#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/zeros_like.h>

#include "hetseq/text/scores/entities.hpp"
#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/model/bert/bert_classifiers.hpp"
#include "hetseq/task/parts.hpp"

#include "bert_lines.hpp"
#include "bert_setup.hpp"
#include "builtin_parts.hpp"
#include "fine_tuning.hpp"
#include "task/scorers/entity_scorer.hpp"

namespace hetseq {

namespace {

std::shared_ptr<Model> make_token_classifier(const PartOptions& options) {
    const BertConfig config = classifier_config(options);
    const std::vector<std::string> labels = labels_of(options, token_classifier);
    BertClassifierSetup setup = classifier_setup(options, config, token_classifier, labels);
    setup.scores = entity_score_names();
    setup.make_scorer = [tags = TagSet{labels, "the data's labels.txt"}] {
        return make_entity_scorer(tags);
    };
    return make_bert_token_classifier(config, std::move(setup));
}

// The shards that `hetseq prepare ner` writes.
CorpusSchema tagged_schema(const PartOptions& options) {
    const BertConfig config = bert_config_of(options);
    FieldSchema words{.name = "words",
                      .is_ragged = true,
                      .minimum = 1,
                      .below_row_length_of = "input_ids",
                      .meaning = "places of the words' first pieces"};
    FieldSchema labels{
        .name = "labels",
        .is_ragged = true,
        .same_row_shape_as = "words",
        .minimum = 0,
        .maximum = static_cast<double>(labels_of(options, token_classifier).size() - 1),
        .meaning = "numbers of the labels",
        .is_target = true};
    return {.kind = "token classification",
            .fields = {ragged_ids(config), words, labels},
            .units_field = "input_ids",
            .attachments = labelled_attachments(options)};
}

/// Weight: words. Tensors as `make_bert_token_classifier` takes them.
class TaggedCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        const at::Tensor lengths = row_lengths(rows, "input_ids");               // (n)
        const at::Tensor ids = padded_rows(rows, "input_ids", 0).to(at::kLong);  // (n, T)
        const at::Tensor counts = row_lengths(rows, "words");                    // (n)
        const at::Tensor row_of_word =
            at::repeat_interleave(at::arange(ids.size(0)), counts);  // (N)
        MicroBatch batch;
        batch.tensors["input_ids"] = ids;
        batch.tensors["segment_ids"] = at::zeros_like(ids);
        batch.tensors["attention_mask"] =
            (at::arange(ids.size(1)).unsqueeze(0) < lengths.unsqueeze(1)).to(at::kLong);
        batch.tensors["word_positions"] =
            row_of_word * ids.size(1) + rows.at("words").to(at::kLong);
        batch.tensors["word_counts"] = counts;
        if (rows.count("labels") != 0)
            batch.tensors["labels"] = rows.at("labels").to(at::kLong);
        batch.weights = {static_cast<double>(rows.at("words").numel())};
        note_row_lengths(
            batch, batch.tensors.at("attention_mask"), batch.tensors.at("word_positions"));
        return batch;
    }
};

}  // namespace

void add_token_classification_parts(Parts& parts) {
    parts.models.add("bert-token-classifier", make_token_classifier, fine_tuning_options());
    parts.lines.add("bert-token-classifier", make_tagging);
    parts.datasets.add("token-classification", tagged_schema);
    parts.batchings.add("token-classification",
                        [](const PartOptions&) { return std::make_unique<TaggedCollator>(); });
    parts.tasks.add("token-classification",
                    {.help = "a label for each word, such as names: fine-tunes a BERT",
                     .model = "bert-token-classifier",
                     .dataset = "token-classification",
                     .batching = "token-classification",
                     .defaults = {{"optimizer", "adamw"},
                                  {"lr", "5e-5"},
                                  {"lr-scheduler", "polynomial_decay"},
                                  {"weight-decay", "0.01"},
                                  {"clip-norm", "1"},
                                  {"max-tokens", "2048"}}});
}

}  // namespace hetseq
