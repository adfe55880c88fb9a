#include "hetseq/text/scores/chrf.hpp"

#include <string>
#include <vector>

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

constexpr double factor = 4;  // beta squared

bool is_ascii_punctuation(char32_t character) {
    return (character >= '!' && character <= '/') || (character >= ':' && character <= '@') ||
           (character >= '[' && character <= '`') || (character >= '{' && character <= '~');
}

// One punctuation mark is split off a word: the last character, or else the first.
std::vector<std::u32string_view> words_and_marks(std::u32string_view text) {
    std::vector<std::u32string_view> result;
    for (const std::u32string_view word : words_between_blanks(text)) {
        std::size_t cut = 0;
        if (word.size() > 1 && is_ascii_punctuation(word.back()))
            cut = word.size() - 1;
        else if (word.size() > 1 && is_ascii_punctuation(word.front()))
            cut = 1;
        if (cut > 0)
            result.push_back(word.substr(0, cut));
        result.push_back(word.substr(cut));
    }
    return result;
}

std::u32string chrf_text(std::string_view segment, const ChrfOptions& options) {
    const std::u32string text = decode_utf8(segment);
    return options.lowercase ? lower_case(text) : text;
}

// The n-grams of one segment, of each order in use.
class SegmentNgrams {
public:
    SegmentNgrams(const std::u32string& text, const ChrfOptions& options)
        : words_(words_and_marks(text)) {
        for (const std::u32string_view word : words_between_blanks(text))
            characters_ += word;
        for (std::size_t order = 1; order <= ChrfStatistics::character_orders; ++order)
            counts_.push_back(detail::count_character_ngrams(characters_, order));
        for (int order = 1; order <= options.word_order; ++order)
            counts_.push_back(words_.count_ngrams(static_cast<std::size_t>(order)));
    }
    SegmentNgrams(const SegmentNgrams&) = delete;  // the counts are views into it
    SegmentNgrams& operator=(const SegmentNgrams&) = delete;

    const std::vector<NgramCounts>& counts() const { return counts_; }

private:
    std::u32string characters_;  // without blanks
    WordSequence words_;
    std::vector<NgramCounts> counts_;
};

ChrfStatistics compared(const SegmentNgrams& hypothesis, const SegmentNgrams& reference) {
    ChrfStatistics statistics;
    for (std::size_t i = 0; i < hypothesis.counts().size(); ++i) {
        const NgramCounts& made = hypothesis.counts()[i];
        const NgramCounts& wanted = reference.counts()[i];
        statistics.values[3 * i] = wanted.empty() ? 0 : count_all(made);
        statistics.values[3 * i + 1] = count_all(wanted);
        statistics.values[3 * i + 2] = count_matches(made, wanted);
    }
    return statistics;
}

}  // namespace

ChrfStatistics& ChrfStatistics::operator+=(const ChrfStatistics& other) {
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += other.values[i];
    return *this;
}

ChrfStatistics chrf_statistics(std::string_view hypothesis,
                               std::span<const std::string_view> references,
                               const ChrfOptions& options) {
    HETSEQ_ASSERT(!references.empty() && options.word_order >= 0 &&
                  options.word_order <= ChrfOptions::most_words);
    const SegmentNgrams made(chrf_text(hypothesis, options), options);
    ChrfStatistics best;
    double best_score = -1;
    for (const std::string_view reference : references) {
        const SegmentNgrams wanted(chrf_text(reference, options), options);
        const ChrfStatistics statistics = compared(made, wanted);
        const double score = chrf_score(statistics);
        if (score > best_score) {
            best = statistics;
            best_score = score;
        }
    }
    return best;
}

double chrf_score(const ChrfStatistics& statistics) {
    double precision = 0;
    double recall = 0;
    int orders = 0;  // those that both sides have
    for (std::size_t i = 0; i < ChrfStatistics::orders; ++i) {
        const auto made = static_cast<double>(statistics.values[3 * i]);
        const auto wanted = static_cast<double>(statistics.values[3 * i + 1]);
        const auto matches = static_cast<double>(statistics.values[3 * i + 2]);
        if (made == 0 || wanted == 0)
            continue;
        precision += matches / made;
        recall += matches / wanted;
        ++orders;
    }
    if (precision + recall == 0)
        return 0;
    precision /= orders;
    recall /= orders;
    const double score = (1 + factor) * precision * recall / (factor * precision + recall);
    return 100 * score;
}

MetricScore as_metric(double chrf_score, const ChrfOptions& options, std::size_t references) {
    return {"chrF2" + std::string(static_cast<std::size_t>(options.word_order), '+'),
            chrf_score,
            {{"nrefs", std::to_string(references)},
             {"case", options.lowercase ? "lc" : "mixed"},
             {"eff", "yes"},
             {"nc", std::to_string(ChrfStatistics::character_orders)},
             {"nw", std::to_string(options.word_order)},
             {"space", "no"},
             {"version", sacrebleu_version}},
            ""};
}

}  // namespace hetseq
