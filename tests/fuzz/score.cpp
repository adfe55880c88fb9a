// A translation, then its references, one a line: scores of any text are sound, and scored against
// itself it is perfect.
#include <sstream>

#include "hetseq/text/scores/bleu.hpp"
#include "hetseq/text/scores/chrf.hpp"
#include "hetseq/text/text_lines.hpp"

#include "fuzz/fuzz.hpp"

using namespace hetseq;

namespace {

constexpr double most = 100 * (1 + 1e-12);

void check_bleu(const std::vector<std::string_view>& lines, const BleuOptions& options) {
    const std::string_view hypothesis = lines.front();
    const BleuStatistics statistics = bleu_statistics(hypothesis, lines, options);
    FUZZ_CHECK(statistics.hypothesis_length() == statistics.reference_length());
    for (std::size_t order = 1; order <= BleuStatistics::orders; ++order)
        FUZZ_CHECK(statistics.matches(order) == statistics.ngrams(order));
    const std::span references = std::span{lines}.subspan(lines.size() > 1 ? 1 : 0);
    const BleuScore score = bleu_score(bleu_statistics(hypothesis, references, options), options);
    FUZZ_CHECK(score.score >= 0 && score.score <= most);
}

void check_chrf(const std::vector<std::string_view>& lines, const ChrfOptions& options) {
    const std::span references = std::span{lines}.subspan(1);
    const double score = chrf_score(chrf_statistics(lines.front(), lines, options));
    FUZZ_CHECK(score == 0 || score == 100);
    if (!references.empty())
        FUZZ_CHECK(chrf_score(chrf_statistics(lines.front(), references, options)) <= score);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::istringstream text{std::string(fuzz::text_of(data, size))};
    const auto lines = fuzz::parsed([&] { return read_text_lines(text, "input"); });
    if (!lines || lines->empty())
        return 0;
    const std::vector<std::string_view> segments(lines->begin(), lines->end());
    for (std::size_t i = 0; i < bleu_tokenizer_names().size(); ++i)
        for (std::size_t j = 0; j < bleu_smoothing_names().size(); ++j)
            check_bleu(segments,
                       {.tokenizer = static_cast<BleuTokenizer>(i),
                        .lowercase = j % 2 == 0,
                        .smoothing = static_cast<BleuSmoothing>(j),
                        .effective_order = size % 2 == 0});
    for (int order = 0; order <= ChrfOptions::most_words; ++order)
        check_chrf(segments, {.word_order = order, .lowercase = size % 2 == 0});
    return 0;
}
