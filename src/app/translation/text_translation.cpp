#include "text_translation.hpp"

#include <cstdio>
#include <utility>

namespace hetseq {

namespace {

std::string score_text(double score) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4f\t", score);
    return text;
}

}  // namespace

// A line without tokens is its own translation.
void TextTranslation::add(const std::string& line) {
    const std::int64_t number = begin_line();
    std::vector<std::int32_t> ids;
    source_.encode(line, ids);
    if (ids.empty()) {
        answer(number, text_of({Hypothesis{}}));
        return;
    }
    const auto longest = static_cast<std::size_t>(options_.max_positions - 1);
    if (ids.size() > longest) {
        ids.resize(longest);
        note_cut(number);
    }
    ids.push_back(source_.end());
    const std::int64_t length = std::ssize(ids);
    enqueue(number, std::move(ids), length);
}

std::string TextTranslation::text_of(const std::vector<Hypothesis>& hypotheses) {
    std::string text;
    for (std::int64_t i = 0; i < options_.hypotheses; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool is_there = at < hypotheses.size();
        if (options_.print_scores)
            text += is_there ? score_text(hypotheses[at].score) : "\t";
        if (is_there)
            text += target_.decode(hypotheses[at].tokens);
        text += '\n';
    }
    return text;
}

void TextTranslation::put(const TranslatedBatch& batch) {
    const std::vector<std::int64_t> lines = lines_of(batch.number, batch.translations.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::vector<Hypothesis>& hypotheses = batch.translations[i];
        answer(lines[i], text_of(hypotheses));
        if (!hypotheses.empty())
            tokens_ += static_cast<std::int64_t>(hypotheses.front().tokens.size()) + 1;
    }
}

}  // namespace hetseq
