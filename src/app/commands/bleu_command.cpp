#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/bleu.hpp"
#include "hetseq/text/chrf.hpp"
#include "hetseq/text/metric_score.hpp"
#include "hetseq/text/text_lines.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/standard_streams.hpp"

namespace hetseq {

namespace {

constexpr int most_digits = 15;
constexpr double largest_smooth_value = 1e6;
constexpr std::size_t many_tokenized_lines = 100;  // sacreBLEU warns of as many

struct ScoringOptions {
    bool bleu = false;
    bool chrf = false;
    BleuOptions bleu_options;
    ChrfOptions chrf_options;
    bool sentence_level = false;
    bool score_only = false;
    bool json = false;
    int width = 1;  // digits after the point
};

struct ScoredText {
    std::vector<std::string> hypotheses;
    std::vector<std::vector<std::string>> references;  // by file

    std::vector<std::string_view> references_of(std::size_t segment) const {
        std::vector<std::string_view> result;
        for (const std::vector<std::string>& lines : references)
            result.emplace_back(lines[segment]);
        return result;
    }
};

// The place of an option's value among `names`.
std::size_t choice_of(const CommandWords& words,
                      const std::string& option,
                      const std::vector<std::string>& names) {
    const std::string& value = words.text(option);
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == value)
            return i;
    throw BadConfig("--" + option + ": there is no '" + value + "'", "", suggestion(value, names));
}

std::optional<double> smooth_value_of(const CommandWords& words, BleuSmoothing smoothing) {
    if (words.text("smooth-value").empty())
        return std::nullopt;
    if (smoothing != BleuSmoothing::floor && smoothing != BleuSmoothing::add_k)
        throw BadConfig("--smooth-value has no effect",
                        "--smooth-method is " + words.text("smooth-method"),
                        "leave it out, or give --smooth-method floor or add-k");
    try {
        return option_value::number(words.text("smooth-value"), 0, largest_smooth_value);
    } catch (const Error& error) {
        throw BadConfig(std::string("--smooth-value: ") + error.what());
    }
}

ScoringOptions scoring_options(const CommandWords& words) {
    ScoringOptions options;
    for (const std::string& metric : split(words.text("metrics"), ',')) {
        if (metric != "bleu" && metric != "chrf")
            throw BadConfig(
                "--metrics: there is no '" + metric + "'", "", "give bleu, chrf or both");
        (metric == "bleu" ? options.bleu : options.chrf) = true;
    }
    if (!options.bleu && !options.chrf)
        throw BadConfig("--metrics names no metric", "", "give bleu, chrf or both");
    options.sentence_level = words.has("sentence-level");
    options.score_only = words.has("score-only");
    options.json = words.options.count("json") != 0;
    options.width = static_cast<int>(words.whole_number("width", 0, most_digits));
    if (options.sentence_level && options.bleu && options.chrf)
        throw BadConfig("--sentence-level takes one metric", "", "give --metrics bleu or chrf");
    if (options.score_only && options.json)
        throw BadConfig("--score-only and --json exclude each other", "", "give one of them");

    BleuOptions& bleu = options.bleu_options;
    bleu.tokenizer =
        static_cast<BleuTokenizer>(choice_of(words, "tokenize", bleu_tokenizer_names()));
    bleu.smoothing =
        static_cast<BleuSmoothing>(choice_of(words, "smooth-method", bleu_smoothing_names()));
    bleu.smooth_value = smooth_value_of(words, bleu.smoothing);
    bleu.lowercase = words.has("lowercase");
    bleu.effective_order = options.sentence_level;
    options.chrf_options.word_order =
        static_cast<int>(words.whole_number("chrf-word-order", 0, ChrfOptions::most_words));
    options.chrf_options.lowercase = words.has("chrf-lowercase");
    return options;
}

std::vector<std::string> read_hypotheses(const std::string& input) {
    if (!input.empty())
        return read_text_lines(input);
    if (::isatty(STDIN_FILENO) == 1)
        log::info("reading the translations from the terminal: Ctrl-D ends them");
    return read_text_lines(std::cin, "standard input");
}

ScoredText read_scored_text(const CommandWords& words) {
    ScoredText text;
    for (const std::string& path : words.arguments)
        text.references.push_back(read_text_lines(path));
    const std::string& input = words.text("input");
    text.hypotheses = read_hypotheses(input);
    const std::string name = input.empty() ? "standard input" : input;
    for (std::size_t i = 0; i < text.references.size(); ++i)
        if (text.references[i].size() != text.hypotheses.size())
            throw BadData(words.arguments[i] + " and " + name + " do not fit together",
                          "they have " + std::to_string(text.references[i].size()) + " and " +
                              std::to_string(text.hypotheses.size()) + " lines",
                          "give files with the same segments, one a line");
    if (text.hypotheses.empty())
        throw BadData(name + " holds no translations", "it is empty", "give one line a segment");
    return text;
}

void warn_of_tokenized(const std::vector<std::string>& hypotheses) {
    std::size_t count = 0;
    for (const std::string& line : hypotheses)
        count += line.ends_with(" .") ? 1 : 0;
    if (count >= many_tokenized_lines)
        log::warn(count_text(static_cast<std::int64_t>(count), "translation") +
                  " end in ' .' (they look tokenized, and are tokenized again): detokenize them, "
                  "or give --tokenize none and tokenized references");
}

std::vector<MetricScore> scores_of(const ScoredText& text,
                                   const ScoringOptions& options,
                                   std::size_t begin,
                                   std::size_t end) {
    BleuStatistics bleu;
    ChrfStatistics chrf;
    for (std::size_t i = begin; i < end; ++i) {
        const std::vector<std::string_view> references = text.references_of(i);
        if (options.bleu)
            bleu += bleu_statistics(text.hypotheses[i], references, options.bleu_options);
        if (options.chrf)
            chrf += chrf_statistics(text.hypotheses[i], references, options.chrf_options);
    }
    std::vector<MetricScore> scores;
    if (options.bleu)
        scores.push_back(as_metric(
            bleu_score(bleu, options.bleu_options), options.bleu_options, text.references.size()));
    if (options.chrf)
        scores.push_back(as_metric(chrf_score(chrf), options.chrf_options, text.references.size()));
    return scores;
}

std::string shown(const std::vector<MetricScore>& scores, const ScoringOptions& options) {
    if (options.json && options.sentence_level)
        return score_json(scores.front(), options.width, JsonForm::one_line) + "\n";
    if (options.json)
        return score_json(scores, options.width);
    if (!options.score_only)
        return score_lines(scores, options.width);
    std::string text;
    for (const MetricScore& score : scores)
        text += score_text(score, options.width) + "\n";
    return text;
}

}  // namespace

int bleu_command(const CommandContext& context) {
    const ScoringOptions options = scoring_options(context.words);
    const ScoredText text = read_scored_text(context.words);
    if (options.bleu && options.bleu_options.tokenizer != BleuTokenizer::none)
        warn_of_tokenized(text.hypotheses);
    const std::size_t segments = text.hypotheses.size();
    const std::size_t step = options.sentence_level ? 1 : segments;
    for (std::size_t begin = 0; begin < segments; begin += step)
        write_output(shown(scores_of(text, options, begin, begin + step), options));
    return 0;
}

}  // namespace hetseq
