#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "hetseq/text/scores/metric_score.hpp"

namespace hetseq {

/// chrF2 (Popovic 2015) and chrF2++ (Popovic 2017) as sacreBLEU computes them: the F-score of
/// n-grams of 1 to 6 characters, with recall twice as important as precision.

struct ChrfOptions {
    static constexpr int most_words = 2;

    std::int64_t word_order = 0;  // n-grams of words up to this length count too; 2: chrF2++
    bool lowercase = false;
};

struct ChrfStatistics {
    static constexpr std::size_t character_orders = 6;
    static constexpr std::size_t orders = character_orders + ChrfOptions::most_words;

    /// For each order of characters, then of words: n-grams of the hypothesis, of the best
    /// reference, and matches; sums over segments. Orders that are not used stay 0.
    std::array<std::int64_t, 3 * orders> values{};

    ChrfStatistics& operator+=(const ChrfStatistics& other);
    bool operator==(const ChrfStatistics&) const = default;
};

/// Of one segment, in UTF-8, against the reference with the best score. Throws BadData for bad
/// UTF-8.
ChrfStatistics chrf_statistics(std::string_view hypothesis,
                               std::span<const std::string_view> references,
                               const ChrfOptions& options);

/// From 0 to 100.
double chrf_score(const ChrfStatistics& statistics);

/// The score under sacreBLEU's name, with its signature.
MetricScore as_metric(double chrf_score, const ChrfOptions& options, std::size_t references);

}  // namespace hetseq
