#include "hetseq/text/scores/bleu.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "hetseq/util/error.hpp"
#include "hetseq/text/code_points.hpp"
#include "hetseq/text/lower_case.hpp"

#include "ngrams.hpp"

namespace hetseq {

namespace {

using detail::count_all;
using detail::count_matches;
using detail::NgramCounts;
using detail::WordSequence;

constexpr double log_of_zero = -9999999999;  // as sacreBLEU floors it

WordSequence bleu_words(std::string_view segment, const BleuOptions& options) {
    std::u32string text = decode_utf8(segment);
    if (options.lowercase)
        text = lower_case(text);
    const std::u32string divided = tokenized(without_trailing_blanks(text), options.tokenizer);
    return WordSequence(words_between_blanks(divided));
}

// The reference length nearest to the hypothesis's; the shorter of two that are as near.
std::int64_t closest_length(std::int64_t hypothesis, std::span<const WordSequence> references) {
    const auto distance = [&](std::int64_t length) { return std::abs(hypothesis - length); };
    std::int64_t closest = references.front().size();
    for (const WordSequence& reference : references) {
        const std::int64_t length = reference.size();
        if (distance(length) < distance(closest) ||
            (distance(length) == distance(closest) && length < closest))
            closest = length;
    }
    return closest;
}

// Each n-gram as often as the reference that has it most often.
NgramCounts most_in_any(std::span<const WordSequence> references, std::size_t order) {
    NgramCounts most = references.front().count_ngrams(order);
    for (const WordSequence& reference : references.subspan(1))
        for (const auto& [ngram, count] : reference.count_ngrams(order)) {
            std::int64_t& known = most[ngram];
            known = std::max(known, count);
        }
    return most;
}

double smooth_value(const BleuOptions& options) {
    const double of_method = options.smoothing == BleuSmoothing::floor ? 0.1 : 1.0;
    return options.smooth_value.value_or(of_method);
}

double brevity_penalty(std::int64_t hypothesis_length, std::int64_t reference_length) {
    if (hypothesis_length >= reference_length)
        return 1;
    if (hypothesis_length == 0)
        return 0;
    return std::exp(1 -
                    static_cast<double>(reference_length) / static_cast<double>(hypothesis_length));
}

// Fills the precisions, smoothing them, and returns how many orders count.
std::size_t fill_precisions(BleuScore& score, const BleuOptions& options) {
    double halvings = 1;
    std::size_t effective_orders = BleuStatistics::orders;
    for (std::size_t i = 0; i < BleuStatistics::orders; ++i) {
        if (options.smoothing == BleuSmoothing::add_k && i > 0) {
            score.matches[i] += smooth_value(options);
            score.ngrams[i] += smooth_value(options);
        }
        if (score.ngrams[i] == 0)
            break;
        if (options.effective_order)
            effective_orders = i + 1;
        if (score.matches[i] != 0)
            score.precisions[i] = 100 * score.matches[i] / score.ngrams[i];
        else if (options.smoothing == BleuSmoothing::exponential)
            score.precisions[i] = 100 / ((halvings *= 2) * score.ngrams[i]);
        else if (options.smoothing == BleuSmoothing::floor)
            score.precisions[i] = 100 * smooth_value(options) / score.ngrams[i];
    }
    return effective_orders;
}

std::string formatted(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string smoothing_text(const BleuOptions& options) {
    const std::string name = bleu_smoothing_names().at(static_cast<std::size_t>(options.smoothing));
    const bool has_value =
        options.smoothing == BleuSmoothing::floor || options.smoothing == BleuSmoothing::add_k;
    return has_value ? name + formatted("[%.2f]", smooth_value(options)) : name;
}

std::string details_of(const BleuScore& score) {
    std::string text;
    for (const double precision : score.precisions)
        text += (text.empty() ? "" : "/") + formatted("%.1f", precision);
    const double ratio = score.reference_length == 0
                             ? 0
                             : static_cast<double>(score.hypothesis_length) /
                                   static_cast<double>(score.reference_length);
    return text + formatted(" (BP = %.3f", score.brevity_penalty) +
           formatted(" ratio = %.3f", ratio) +
           " hyp_len = " + std::to_string(score.hypothesis_length) +
           " ref_len = " + std::to_string(score.reference_length) + ")";
}

}  // namespace

const std::vector<std::string>& bleu_smoothing_names() {
    static const std::vector<std::string> names{"none", "floor", "add-k", "exp"};
    return names;
}

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += other.values[i];
    return *this;
}

BleuStatistics bleu_statistics(std::string_view hypothesis,
                               std::span<const std::string_view> references,
                               const BleuOptions& options) {
    HETSEQ_ASSERT(!references.empty());
    const WordSequence words = bleu_words(hypothesis, options);
    std::vector<WordSequence> reference_words;
    reference_words.reserve(references.size());
    for (const std::string_view reference : references)
        reference_words.push_back(bleu_words(reference, options));

    BleuStatistics statistics;
    statistics.values[0] = words.size();
    statistics.values[1] = closest_length(words.size(), reference_words);
    for (std::size_t order = 1; order <= BleuStatistics::orders; ++order) {
        const NgramCounts ngrams = words.count_ngrams(order);
        statistics.values[1 + order] = count_matches(ngrams, most_in_any(reference_words, order));
        statistics.values[1 + BleuStatistics::orders + order] = count_all(ngrams);
    }
    return statistics;
}

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options) {
    BleuScore score;
    score.hypothesis_length = statistics.hypothesis_length();
    score.reference_length = statistics.reference_length();
    score.brevity_penalty = brevity_penalty(score.hypothesis_length, score.reference_length);
    for (std::size_t i = 0; i < BleuStatistics::orders; ++i) {
        score.matches[i] = static_cast<double>(statistics.matches(i + 1));
        score.ngrams[i] = static_cast<double>(statistics.ngrams(i + 1));
    }
    if (std::all_of(score.matches.begin(), score.matches.end(), [](double n) { return n == 0; }))
        return score;
    const std::size_t orders = fill_precisions(score, options);
    double sum_of_logs = 0;
    for (std::size_t i = 0; i < orders; ++i)
        sum_of_logs += score.precisions[i] == 0 ? log_of_zero : std::log(score.precisions[i]);
    score.score = score.brevity_penalty * std::exp(sum_of_logs / static_cast<double>(orders));
    return score;
}

MetricScore as_metric(const BleuScore& score, const BleuOptions& options, std::size_t references) {
    const auto tokenizer = static_cast<std::size_t>(options.tokenizer);
    return {"BLEU",
            score.score,
            {{"nrefs", std::to_string(references)},
             {"case", options.lowercase ? "lc" : "mixed"},
             {"eff", options.effective_order ? "yes" : "no"},
             {"tok", bleu_tokenizer_names().at(tokenizer)},
             {"smooth", smoothing_text(options)},
             {"version", sacrebleu_version}},
            details_of(score)};
}

}  // namespace hetseq
