#pragma once

#include <functional>
#include <vector>

namespace hetseq {

/// The point at which `error` is least, found from `start` by the simplex method of Nelder and Mead
/// (Computer Journal 7, 1965) with a first simplex of edge `step`, and again from there until that
/// gains nothing. Deterministic.
std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& error,
                             const std::vector<double>& start,
                             double step);

}  // namespace hetseq
