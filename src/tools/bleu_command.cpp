#include "hetseq/tools/bleu_command.hpp"

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/standard_streams.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/scores/metric_score.hpp"
#include "hetseq/text/text_lines.hpp"

namespace hetseq {

namespace {

constexpr std::size_t many_tokenized_lines = 100;  // sacreBLEU warns of as many

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

void check(const ScoringOptions& options) {
    const BleuOptions& bleu = options.bleu_options;
    const bool takes_value =
        bleu.smoothing == BleuSmoothing::floor || bleu.smoothing == BleuSmoothing::add_k;
    if (bleu.smooth_value && !takes_value)
        throw BadConfig("--smooth-value has no effect",
                        "--smooth-method is " +
                            bleu_smoothing_names().at(static_cast<std::size_t>(bleu.smoothing)),
                        "leave it out, or give --smooth-method floor or add-k");
    if (options.sentence_level && options.metrics.bleu && options.metrics.chrf)
        throw BadConfig("--sentence-level takes one metric", "", "give --metrics bleu or chrf");
    if (options.score_only && options.json)
        throw BadConfig("--score-only and --json exclude each other", "", "give one of them");
}

std::vector<std::string> read_hypotheses(const std::string& input) {
    if (!input.empty())
        return read_text_lines(input);
    if (::isatty(STDIN_FILENO) == 1)
        log::info("reading the translations from the terminal: Ctrl-D ends them");
    return read_text_lines(std::cin, "standard input");
}

ScoredText read_scored_text(const std::vector<std::string>& references, const std::string& input) {
    ScoredText text;
    for (const std::string& path : references)
        text.references.push_back(read_text_lines(path));
    text.hypotheses = read_hypotheses(input);
    const std::string name = input.empty() ? "standard input" : input;
    for (std::size_t i = 0; i < text.references.size(); ++i)
        if (text.references[i].size() != text.hypotheses.size())
            throw BadData(references[i] + " and " + name + " do not fit together",
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
        if (options.metrics.bleu)
            bleu += bleu_statistics(text.hypotheses[i], references, options.bleu_options);
        if (options.metrics.chrf)
            chrf += chrf_statistics(text.hypotheses[i], references, options.chrf_options);
    }
    std::vector<MetricScore> scores;
    if (options.metrics.bleu)
        scores.push_back(as_metric(
            bleu_score(bleu, options.bleu_options), options.bleu_options, text.references.size()));
    if (options.metrics.chrf)
        scores.push_back(as_metric(chrf_score(chrf), options.chrf_options, text.references.size()));
    return scores;
}

std::string shown(const std::vector<MetricScore>& scores, const ScoringOptions& options) {
    const int width = static_cast<int>(options.width);
    if (options.json && options.sentence_level)
        return score_json(scores.front(), width, JsonForm::one_line) + "\n";
    if (options.json)
        return score_json(scores, width);
    if (!options.score_only)
        return score_lines(scores, width);
    std::string text;
    for (const MetricScore& score : scores)
        text += score_text(score, width) + "\n";
    return text;
}

}  // namespace

int bleu_command(const CommandWords& words) {
    ScoringOptions options = words.read(scoring_options());
    check(options);
    options.bleu_options.effective_order = options.sentence_level;
    const ScoredText text = read_scored_text(words.arguments, options.input);
    if (options.metrics.bleu && options.bleu_options.tokenizer != BleuTokenizer::none)
        warn_of_tokenized(text.hypotheses);
    const std::size_t segments = text.hypotheses.size();
    const std::size_t step = options.sentence_level ? 1 : segments;
    for (std::size_t begin = 0; begin < segments; begin += step)
        write_output(shown(scores_of(text, options, begin, begin + step), options));
    return 0;
}

}  // namespace hetseq
