#include "hetseq/util/error.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/tools/bleu_command.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_digits = 15;
constexpr double largest_smooth_value = 1e6;

// Names in the order of the enumeration's values.
template <class T>
std::vector<std::pair<std::string, T>> by_name(const std::vector<std::string>& names) {
    std::vector<std::pair<std::string, T>> values;
    for (std::size_t i = 0; i < names.size(); ++i)
        values.emplace_back(names[i], static_cast<T>(i));
    return values;
}

ScoringOptions::Metrics metrics_of(const std::string& list) {
    ScoringOptions::Metrics metrics;
    for (const std::string& metric : split(list, ',')) {
        if (metric != "bleu" && metric != "chrf")
            throw BadConfig("there is no '" + metric + "'", "", "give bleu, chrf or both");
        (metric == "bleu" ? metrics.bleu : metrics.chrf) = true;
    }
    if (!metrics.bleu && !metrics.chrf)
        throw BadConfig("it names no metric", "", "give bleu, chrf or both");
    return metrics;
}

Option<ScoringOptions::Metrics> metrics_option() {
    return {{"metrics", "LIST", "bleu", "bleu, chrf, or both with a comma between them"},
            metrics_of};
}

Option<std::optional<double>> smooth_value_option() {
    return {
        {"smooth-value", "X", "", "the value for floor (0.1 without it) or add-k (1 without it)"},
        [](const std::string& text) -> std::optional<double> {
            if (text.empty())
                return std::nullopt;
            return option_value::number(text, 0, largest_smooth_value);
        }};
}

OptionsOf<BleuOptions> bleu_options() {
    return OptionsOf<BleuOptions>()
        .add(&BleuOptions::tokenizer,
             named_value_option<BleuTokenizer>(
                 "tokenize",
                 by_name<BleuTokenizer>(bleu_tokenizer_names()),
                 "13a",
                 "how BLEU divides segments into words; none: at blanks alone")
                 .shown_as("13a|none|intl|char"))
        .add(&BleuOptions::lowercase,
             switch_option("lowercase", "compute BLEU without regard to case"))
        .add(&BleuOptions::smoothing,
             named_value_option<BleuSmoothing>(
                 "smooth-method",
                 by_name<BleuSmoothing>(bleu_smoothing_names()),
                 "exp",
                 "what BLEU counts an order of n-grams as that has no match")
                 .shown_as("none|floor|add-k|exp"))
        .add(&BleuOptions::smooth_value, smooth_value_option());
}

OptionsOf<ChrfOptions> chrf_options() {
    return OptionsOf<ChrfOptions>()
        .add(&ChrfOptions::word_order,
             whole_number_option("chrf-word-order",
                                 "0",
                                 "chrF also counts n-grams of N words; 2: chrF2++",
                                 0,
                                 ChrfOptions::most_words))
        .add(&ChrfOptions::lowercase,
             switch_option("chrf-lowercase", "compute chrF without regard to case"));
}

}  // namespace

OptionsOf<ScoringOptions> scoring_options() {
    return OptionsOf<ScoringOptions>()
        .add(&ScoringOptions::input,
             text_option("input", "FILE", "", "the translations; by default standard input"))
        .add(&ScoringOptions::metrics, metrics_option())
        .add(&ScoringOptions::bleu_options, bleu_options())
        .add(&ScoringOptions::chrf_options, chrf_options())
        .add(&ScoringOptions::sentence_level,
             switch_option("sentence-level", "score each segment, one a line"))
        .add(&ScoringOptions::score_only,
             switch_option("score-only", "print nothing but the score"))
        .add(&ScoringOptions::width,
             whole_number_option("width", "1", "digits after the point of a score", 0, most_digits))
        .add(&ScoringOptions::json, json_option());
}

}  // namespace hetseq
