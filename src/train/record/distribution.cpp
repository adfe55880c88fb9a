#include "hetseq/train/record/distribution.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

namespace {

constexpr std::size_t most_exact = 1000;
constexpr double least = 1e-9, most = 1e15;
const double log_width = std::log(1.004);  // of a bin

// Bin 0 has what counts as 0.
int bin_of(double value) {
    if (!(value >= least))
        return 0;
    return 1 + static_cast<int>(std::log(std::min(value, most) / least) / log_width);
}

double middle_of(int bin) {
    return bin == 0 ? 0 : least * std::exp((bin - 0.5) * log_width);
}

}  // namespace

void Distribution::add(double value) {
    ++count_;
    if (!bins_.empty()) {
        ++bins_[bin_of(value)];
        return;
    }
    few_.push_back(value);
    if (few_.size() <= most_exact)
        return;
    for (const double known : few_)
        ++bins_[bin_of(known)];
    few_ = {};
}

// The value at `place` of the ascending ones, counted from 0.
double Distribution::in_order(std::int64_t place) const {
    std::int64_t before = 0;
    for (const auto& [bin, values] : bins_) {
        before += values;
        if (place < before)
            return middle_of(bin);
    }
    return 0;
}

Spread Distribution::spread() const {
    if (bins_.empty())
        return spread_of(few_);
    const auto quantile = [&](double q) {
        const double place = q * static_cast<double>(count_ - 1);
        const auto below = static_cast<std::int64_t>(std::floor(place));
        const double value = in_order(below);
        const double next = in_order(std::min(below + 1, count_ - 1));
        return value + (place - std::floor(place)) * (next - value);
    };
    return {quantile(0.5), quantile(0.1), quantile(0.9)};
}

}  // namespace hetseq
