#pragma once

#include <string>
#include <vector>

#include "hetseq/options/option.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/bert/bert_classifiers.hpp"
#include "hetseq/task/part_options.hpp"

namespace hetseq {

/// The options of all models that are a BERT with a classifier.
std::vector<OptionSpec> fine_tuning_options();

/// The names of the classes: of the training data, otherwise of --init-model. `architecture`: the
/// class of transformers that the task's model is. Throws BadConfig where there are none or they
/// contradict each other.
std::vector<std::string> labels_of(const PartOptions& options, const std::string& architecture);

/// `bert_config_of`, with --classifier-dropout.
BertConfig classifier_config(const PartOptions& options);

/// What these options say; text files, labels.txt among them. Scores are the caller's.
BertClassifierSetup classifier_setup(const PartOptions& options,
                                     const BertConfig& config,
                                     const std::string& architecture,
                                     const std::vector<std::string>& labels);

/// The texts that the shards of all data share: vocabulary, tokenizer and labels.
std::vector<AttachmentSchema> labelled_attachments(const PartOptions& options);

}  // namespace hetseq
