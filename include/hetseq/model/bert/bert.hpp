#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "hetseq/model/bert/bert_config.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

/// BertForPreTraining: BERT with a masked-token head, whose decoder is the word embedding or one of
/// its own, and a next-sentence head. Parameters are stored under Hugging Face's names. Throws
/// BadConfig as `check`.
///
/// Input, for n sequences of T <= max_position_embeddings tokens, M of which are masked:
///   "input_ids"             (n, T) int64
///   "segment_ids"           (n, T) int64, in [0, type_vocab_size)
///   "attention_mask"        (n, T) int64, 1 for a token, 0 for padding; absent: no padding
///   "masked_positions"      (M) int64, indices into n * T
///   "masked_labels"         (M) int64, the tokens that stood there
///   "next_sentence_labels"  (n) int64, 0: the second segment follows the first, 1: it is random
/// M may be 0.
///
/// NVIDIA's shards hold masked_lm_positions and masked_lm_ids (n, P): the entries whose
/// masked_lm_ids is not 0 count, every other one is padding, whatever its position says (an
/// entry at position 0 with an id other than 0 counts).
///
/// Loss terms: "mlm", the negative log-likelihoods summed over masked tokens; "nsp", summed over
/// sequences. Metrics: "mlm_accuracy", "nsp_accuracy". Predictions: "embeddings" (n, hidden_size)
/// float32, the pooled output, and "next_sentence" (n, 2) float32, the probabilities of the two
/// labels; they need the first three inputs alone.
///
/// `text_files` are companion files: the vocabulary, and how text becomes its pieces.
/// `decoder_bias` returns the (vocab_size) elements that the bias of the masked tokens' decoder
/// begins with, and is called when that is drawn; without one they are 0.
std::shared_ptr<Model> make_bert(const BertConfig& config,
                                 std::vector<CompanionFile> text_files = {},
                                 std::function<at::Tensor()> decoder_bias = {});

}  // namespace hetseq
