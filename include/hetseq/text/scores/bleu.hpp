#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetseq/text/scores/bleu_tokenizer.hpp"
#include "hetseq/text/scores/metric_score.hpp"

namespace hetseq {

/// BLEU (Papineni et al. 2002) as sacreBLEU computes it, of statistics that are summed over
/// segments, and over ranks.

/// What an n-gram order without a match counts as (Chen and Cherry 2014): nothing, a small number
/// (method 1), as if k more had matched (method 2), or halved once more for each such order
/// (method 3).
enum class BleuSmoothing { none, floor, add_k, exponential };

/// The names in sacreBLEU's signature, in the order of the values: "none", "floor", "add-k", "exp".
const std::vector<std::string>& bleu_smoothing_names();

struct BleuOptions {
    BleuTokenizer tokenizer = BleuTokenizer::mteval_13a;
    bool lowercase = false;
    BleuSmoothing smoothing = BleuSmoothing::exponential;
    std::optional<double> smooth_value;  // of floor (0.1 without it) and add_k (1 without it)
    bool effective_order = false;        // for single sentences: leave out orders without n-grams
};

struct BleuStatistics {
    static constexpr std::size_t orders = 4;

    /// Words of the hypothesis, of the closest reference, matches of each order, n-grams of each
    /// order: sums over segments.
    std::array<std::int64_t, 2 + 2 * orders> values{};

    std::int64_t hypothesis_length() const { return values[0]; }
    std::int64_t reference_length() const { return values[1]; }
    std::int64_t matches(std::size_t order) const { return values[1 + order]; }  // order: 1 to 4
    std::int64_t ngrams(std::size_t order) const { return values[1 + orders + order]; }

    BleuStatistics& operator+=(const BleuStatistics& other);
    bool operator==(const BleuStatistics&) const = default;
};

/// Of one segment, in UTF-8, against one reference or several. Throws BadData for bad UTF-8.
BleuStatistics bleu_statistics(std::string_view hypothesis,
                               std::span<const std::string_view> references,
                               const BleuOptions& options);

struct BleuScore {
    double score = 0;  // 0 to 100
    /// As smoothed by add_k, which makes fractions of them.
    std::array<double, BleuStatistics::orders> matches{};
    std::array<double, BleuStatistics::orders> ngrams{};
    std::array<double, BleuStatistics::orders> precisions{};  // 0 to 100
    double brevity_penalty = 0;
    std::int64_t hypothesis_length = 0;
    std::int64_t reference_length = 0;
};

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options);

/// The score under sacreBLEU's name, with its signature and the details that sacreBLEU shows.
MetricScore as_metric(const BleuScore& score, const BleuOptions& options, std::size_t references);

}  // namespace hetseq
