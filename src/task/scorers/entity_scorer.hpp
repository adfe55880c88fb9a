#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hetseq/text/scores/entities.hpp"
#include "hetseq/model/corpus_scorer.hpp"

namespace hetseq {

/// The names of an entity scorer's values.
std::vector<std::string> entity_score_names();

/// Precision, recall and F1 of the entities in a corpus, found leniently and then strictly, 0 to 1:
/// seqeval's numbers over all types (micro average). For models whose output are the tags of the
/// words; micro-batches have "labels" and "word_counts" as BertForTokenClassification takes them.
std::unique_ptr<CorpusScorer> make_entity_scorer(const TagSet& tags);

}  // namespace hetseq
