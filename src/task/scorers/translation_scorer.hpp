#pragma once

#include <memory>

#include "hetseq/text/scores/bleu.hpp"
#include "hetseq/text/vocabulary.hpp"
#include "hetseq/model/corpus_scorer.hpp"
#include "hetseq/model/decoding/beam_search.hpp"
#include "hetseq/model/transformer/transformer.hpp"

namespace hetseq {

/// BLEU of the translations of a corpus's sources against its targets, both as plain text. One
/// score, 0 to 100.
std::unique_ptr<CorpusScorer> make_translation_scorer(const Transformer& model,
                                                      const Vocabulary& targets,
                                                      const BeamOptions& beam,
                                                      const BleuOptions& bleu);

}  // namespace hetseq
