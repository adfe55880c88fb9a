#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/model/corpus_scorer.hpp"

namespace hetseq {

/// The names of a label scorer's values.
std::vector<std::string> label_score_names(std::size_t labels);

/// Scores of a classifier over a corpus, from 0 to 1 but for Matthews' coefficient, from -1 to 1:
/// F1 of the second of two labels ("f1"), the mean of the labels' F1 ("macro_f1", of labels that
/// occur or were predicted) and Matthews' correlation coefficient ("matthews"; Gorodkin 2004 for
/// more than two labels). What has no denominator is 0, as in scikit-learn. For models whose output
/// are the likeliest labels (n); micro-batches have "labels" (n).
std::unique_ptr<CorpusScorer> make_label_scorer(std::size_t labels);

/// The names of a number scorer's values.
std::vector<std::string> number_score_names();

/// Pearson's and Spearman's correlation of the model's output (n) with "labels" (n) over a corpus;
/// equal numbers have the mean of their ranks. 0 where either side is constant, not finite where
/// the output is not. Keeps two numbers a sample.
std::unique_ptr<CorpusScorer> make_number_scorer();

}  // namespace hetseq
