#include "text_tagging.hpp"

#include <locale>
#include <sstream>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr const char* no_label = "?";  // of a word that the model has no position for

std::vector<std::string> words_in(const std::string& line) {
    std::istringstream text{line};
    text.imbue(std::locale::classic());
    std::vector<std::string> words;
    for (std::string word; text >> word;)
        words.push_back(word);
    return words;
}

}  // namespace

// A line without words is its own answer.
void TextTagging::add(const std::string& line) {
    const std::int64_t number = lines_++;
    std::vector<std::string> words = words_in(line);
    if (words.empty()) {
        done_[number] = "\n";
        return;
    }
    WordPieces pieces = encoder_.encode(words);
    if (pieces.words.size() < words.size() && cut_lines_++ == 0)
        first_cut_line_ = number + 1;
    words_ += std::ssize(words);
    words_of_[number] = std::move(words);
    window_.push_back({number, {std::move(pieces.ids), std::move(pieces.words)}});
    cut(false);
}

void TextTagging::cut(bool all) {
    if (window_.empty() || (!all && std::ssize(window_) < options_.window))
        return;
    std::vector<std::int64_t> lengths;
    for (const Uncut& uncut : window_)
        lengths.push_back(std::ssize(uncut.row.ids));
    for (const std::vector<std::size_t>& indices : cut_batches(lengths, options_.caps)) {
        TextBatch& batch = batches_.emplace_back();
        batch.number = next_batch_++;
        for (const std::size_t i : indices) {
            under_way_[batch.number].push_back(window_[i].line);
            batch.rows.push_back(std::move(window_[i].row));
        }
    }
    window_.clear();
}

TextBatch TextTagging::take_batch() {
    TextBatch batch = std::move(batches_.front());
    batches_.pop_front();
    return batch;
}

void TextTagging::put(const AnsweredBatch& batch) {
    const auto found = under_way_.find(batch.number);
    HETSEQ_ASSERT(found != under_way_.end() && found->second.size() == batch.answers.size());
    for (std::size_t i = 0; i < batch.answers.size(); ++i) {
        const std::vector<std::int32_t>& labels = batch.answers[i].labels;
        const auto words = words_of_.extract(found->second[i]);
        std::string& text = done_[words.key()];
        for (std::size_t k = 0; k < words.mapped().size(); ++k) {
            text += (k == 0 ? "" : "\t") + words.mapped()[k] + " ";
            text += k < labels.size() ? options_.labels.at(static_cast<std::size_t>(labels[k]))
                                      : no_label;
        }
        text += '\n';
    }
    under_way_.erase(found);
}

void TextTagging::write(std::string& out) {
    for (; !done_.empty() && done_.begin()->first == written_; ++written_) {
        out += done_.begin()->second;
        done_.erase(done_.begin());
    }
}

}  // namespace hetseq
