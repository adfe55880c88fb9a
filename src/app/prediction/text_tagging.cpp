#include "text_tagging.hpp"

#include <locale>
#include <sstream>
#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/quantity.hpp"

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
    const std::int64_t number = begin_line();
    std::vector<std::string> words = words_in(line);
    if (words.empty()) {
        answer(number, "\n");
        return;
    }
    WordPieces pieces = encoder_.encode(words);
    if (pieces.words.size() < words.size())
        note_cut(number);
    words_ += std::ssize(words);
    words_of_[number] = std::move(words);
    const std::int64_t length = std::ssize(pieces.ids);
    enqueue(number, {std::move(pieces.ids), std::move(pieces.words)}, length);
}

void TextTagging::put(const AnsweredBatch& batch) {
    const std::vector<std::int64_t> lines = lines_of(batch.number, batch.answers.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::vector<std::int32_t>& labels = batch.answers[i].labels;
        const auto words = words_of_.extract(lines[i]);
        std::string text;
        for (std::size_t k = 0; k < words.mapped().size(); ++k) {
            text += (k == 0 ? "" : "\t") + words.mapped()[k] + " ";
            text += k < labels.size() ? options_.labels.at(static_cast<std::size_t>(labels[k]))
                                      : no_label;
        }
        answer(lines[i], text + '\n');
    }
}

TensorDict TextTagging::fields_of(const TextBatch& batch) {
    TensorDict fields;
    put_ragged_field(fields, "input_ids", batch, &TextRow::ids);
    put_ragged_field(fields, "words", batch, &TextRow::marks);
    return fields;
}

std::vector<TextAnswer> TextTagging::answers_of(const TextBatch& batch,
                                                const std::vector<Prediction>& predictions) {
    const at::Tensor labels = predictions.front().values.to(at::kCPU, at::kInt).contiguous();
    const auto* label = labels.const_data_ptr<std::int32_t>();
    std::vector<TextAnswer> answers;
    for (const TextRow& row : batch.rows) {
        answers.push_back({{label, label + row.marks.size()}});
        label += row.marks.size();
    }
    return answers;
}

std::string TextTagging::size_text() const {
    return count_text(words_, "word");
}

}  // namespace hetseq
