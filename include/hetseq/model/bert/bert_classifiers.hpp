#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/model/bert/bert_config.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

/// A classifier on BERT needs this besides the network's sizes.
struct BertClassifierSetup {
    std::vector<std::string> labels;      // names of the classes, at least one; of a number its own
    std::vector<double> class_weights{};  // of a label's loss; empty: 1 each
    /// The embeddings and the first so many layers are not trained; -1: everything is.
    std::int64_t frozen_layers = -1;
    /// The learning rate of a layer is that of the one above it times this; the head's is the
    /// optimizer's.
    double layer_decay = 1;
    std::vector<std::string> scores{};  // names of `make_scorer`'s values
    std::function<std::unique_ptr<CorpusScorer>()> make_scorer{};
    std::vector<CompanionFile> text_files{};  // the vocabulary, labels.txt
    /// The classifier of a pretrained file is of other labels or of another task.
    bool new_head = false;
};

inline constexpr const char* token_classifier = "BertForTokenClassification";
inline constexpr const char* sequence_classifier = "BertForSequenceClassification";

/// What a config.json of transformers says of the classifier that stands on the network.
struct StoredClassifier {
    std::string architecture;         // the first of "architectures"; empty if it is not said
    std::vector<std::string> labels;  // by number: "id2label"
    std::string problem;              // "problem_type"
    /// The labels have transformers' names for nameless ones, LABEL_0 and so on.
    bool nameless() const;
};

/// As transformers, takes two nameless labels where the file names none. Throws MissingInput or
/// BadData.
StoredClassifier read_stored_classifier(const std::filesystem::path& config_json);

/// BertForTokenClassification: a class for the first piece of every word. Parameters are stored
/// under Hugging Face's names. Throws BadConfig where config or setup contradict themselves.
///
/// Input, for n sentences of at most T tokens, with N words:
///   "input_ids", "segment_ids", "attention_mask"  as `make_bert`
///   "word_positions"  (N) int64, indices into n * T of the words' first pieces
///   "word_counts"     (n) int64, words of each sentence; their sum is N
///   "labels"          (N) int64, in [0, labels)
///
/// Loss term: "nll", the negative log-likelihoods times their labels' class weights, summed over
/// words. Metric: "accuracy". Output: the likeliest labels (N) int64. Predictions: "labels" (N)
/// int32 and "probabilities" (N) float32 of these, ragged by words; "labels" of the input may be
/// missing.
std::shared_ptr<Model> make_bert_token_classifier(const BertConfig& config,
                                                  BertClassifierSetup setup);

/// A class for a sequence, or a number (regression).
enum class SequenceTarget { label, number };

/// BertForSequenceClassification: a class or a number for one sentence or two. Throws as
/// `make_bert_token_classifier`.
///
/// Input, for n sequences of at most T tokens:
///   "input_ids", "segment_ids", "attention_mask"  as `make_bert`
///   "labels"  (n) int64, in [0, labels); of a number floating point
///
/// Loss term, summed over sequences: "nll", the negative log-likelihoods times their labels' class
/// weights; of a number "mse", the squared errors. Metric of labels: "accuracy". Output: the
/// likeliest labels (n) int64, or the numbers (n). Predictions: "labels" (n) int32 and
/// "probabilities" (n, labels) float32, or "numbers" (n) float32; "labels" of the input may be
/// missing.
std::shared_ptr<Model> make_bert_sequence_classifier(const BertConfig& config,
                                                     BertClassifierSetup setup,
                                                     SequenceTarget target = SequenceTarget::label);

}  // namespace hetseq
