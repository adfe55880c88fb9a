#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// A number of the description that the rows determined.
struct FittedNumber {
    std::string name;
    std::string meaning;
    double given = 0;  // as described; 1 for a factor
    double fitted = 0;
    /// Largest relative change of a fitted row's step time when the number grows by a tenth: near 0
    /// where the rows do not determine it.
    double effect = 0;
};

struct FittedRow {
    MeasuredRow row;
    std::string nodes;  // "p100 x 4, xp x 1"
    std::int64_t ranks = 0;
    std::int64_t batch = 0;
    double step_ms = 0;   // by the model
    double residual = 0;  // model / measured - 1
};

struct ClusterFit {
    Cluster cluster;  // with the fitted numbers
    std::vector<FittedNumber> numbers;
    std::vector<FittedRow> rows;
    /// Root of the mean squared residual of fitted and of predicted rows; none without such rows.
    std::optional<double> fitted_error, predicted_error;
};

/// Changes the numbers that `cluster.fit` names, by positive factors, until the sum of the squared
/// relative errors of the step times of its `fit` rows is smallest (the simplex method of Nelder
/// and Mead, Computer Journal 7, 1965, over the factors' logarithms), and predicts all rows.
/// Deterministic. Throws BadConfig for a number that is 0 or not given, since no factor can change
/// it, and for rows whose batch the devices cannot take.
ClusterFit fit_cluster(const Cluster& cluster);

}  // namespace hetseq
