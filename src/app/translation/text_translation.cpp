#include "text_translation.hpp"

#include <cstdio>

#include "hetseq/util/error.hpp"

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
    Uncut uncut{lines_++, {}};
    source_.encode(line, uncut.ids);
    if (uncut.ids.empty()) {
        done_[uncut.line] = text_of({Hypothesis{}});
        return;
    }
    const auto longest = static_cast<std::size_t>(options_.max_positions - 1);
    if (uncut.ids.size() > longest) {
        uncut.ids.resize(longest);
        if (cut_lines_++ == 0)
            first_cut_line_ = uncut.line + 1;
    }
    uncut.ids.push_back(source_.end());
    source_tokens_ += static_cast<std::int64_t>(uncut.ids.size());
    window_.push_back(std::move(uncut));
    cut(false);
}

void TextTranslation::cut(bool all) {
    if (window_.empty() || (!all && static_cast<std::int64_t>(window_.size()) < options_.window))
        return;
    std::vector<std::int64_t> lengths;
    for (const Uncut& uncut : window_)
        lengths.push_back(static_cast<std::int64_t>(uncut.ids.size()));
    for (const std::vector<std::size_t>& indices : cut_batches(lengths, options_.caps)) {
        TranslationBatch& batch = batches_.emplace_back();
        batch.number = next_batch_++;
        for (const std::size_t i : indices) {
            UnderWay& under_way = under_way_[batch.number];
            under_way.lines.push_back(window_[i].line);
            under_way.source_tokens += lengths[i];
            batch.sources.push_back(std::move(window_[i].ids));
        }
    }
    window_.clear();
}

TranslationBatch TextTranslation::take_batch() {
    TranslationBatch batch = std::move(batches_.front());
    batches_.pop_front();
    return batch;
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
    const auto found = under_way_.find(batch.number);
    HETSEQ_ASSERT(found != under_way_.end() &&
                  found->second.lines.size() == batch.translations.size());
    for (std::size_t i = 0; i < batch.translations.size(); ++i) {
        const std::vector<Hypothesis>& hypotheses = batch.translations[i];
        done_[found->second.lines[i]] = text_of(hypotheses);
        if (!hypotheses.empty())
            tokens_ += static_cast<std::int64_t>(hypotheses.front().tokens.size()) + 1;
    }
    done_source_tokens_ += found->second.source_tokens;
    under_way_.erase(found);
}

void TextTranslation::write(std::string& out) {
    for (; !done_.empty() && done_.begin()->first == written_; ++written_) {
        out += done_.begin()->second;
        done_.erase(done_.begin());
    }
}

}  // namespace hetseq
