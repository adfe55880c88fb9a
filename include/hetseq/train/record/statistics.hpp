#pragma once

#include <vector>

namespace hetseq {

struct Spread {
    double median = 0;
    double p10 = 0;
    double p90 = 0;
};

/// Quantiles by linear interpolation between order statistics; zeros if there are no values.
Spread spread_of(std::vector<double> values);

}  // namespace hetseq
