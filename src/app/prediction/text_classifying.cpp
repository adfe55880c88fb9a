#include "text_classifying.hpp"

#include <charconv>
#include <optional>

#include <ATen/ATen.h>

#include "hetseq/util/quantity.hpp"
#include "hetseq/text/blank_line.hpp"

namespace hetseq {

namespace {

// The shortest text that gives `value` back.
std::string shortest_text(float value) {
    char text[32];
    const auto [end, error] = std::to_chars(std::begin(text), std::end(text), value);
    return {text, end};
}

std::vector<float> numbers_in(const at::Tensor& values) {
    const at::Tensor numbers = values.to(at::kCPU, at::kFloat).contiguous();
    const auto* begin = numbers.const_data_ptr<float>();
    return {begin, begin + numbers.numel()};
}

}  // namespace

// A blank line is its own answer.
void TextClassifying::add(const std::string& line) {
    const std::int64_t number = begin_line();
    if (is_blank_line(line)) {
        answer(number, "\n");
        return;
    }
    const std::size_t tab = line.find('\t');
    SequencePieces row = encoder_.encode(
        line.substr(0, tab),
        tab == std::string::npos ? std::nullopt : std::optional{line.substr(tab + 1)});
    if (row.cut > 0)
        note_cut(number);
    const std::int64_t length = std::ssize(row.ids);
    pieces_ += length;
    enqueue(number, {std::move(row.ids), {static_cast<std::int32_t>(row.second)}}, length);
}

void TextClassifying::put(const AnsweredBatch& batch) {
    const std::vector<std::int64_t> lines = lines_of(batch.number, batch.answers.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const TextAnswer& found = batch.answers[i];
        std::string text;
        if (!found.labels.empty())
            text = options_.labels.at(static_cast<std::size_t>(found.labels.front())) + '\t';
        answer(lines[i], text + shortest_text(found.numbers.at(0)) + '\n');
    }
}

TensorDict TextClassifying::fields_of(const TextBatch& batch) {
    TensorDict fields;
    put_ragged_field(fields, "input_ids", batch, &TextRow::ids);
    std::vector<std::int32_t> seconds;
    for (const TextRow& row : batch.rows)
        seconds.push_back(row.marks.front());
    fields["second_segments"] = at::tensor(seconds, at::kInt);
    return fields;
}

std::vector<TextAnswer> TextClassifying::answers_of(const TextBatch& batch,
                                                    const std::vector<Prediction>& predictions) {
    const bool has_labels = predictions.front().name == "labels";
    const at::Tensor labels =
        has_labels ? predictions[0].values.to(at::kCPU, at::kInt).contiguous() : at::Tensor{};
    const std::vector<float> numbers =
        numbers_in(has_labels ? std::get<0>(predictions[1].values.max(1)) : predictions[0].values);
    std::vector<TextAnswer> answers;
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        TextAnswer& answer = answers.emplace_back();
        if (has_labels)
            answer.labels.push_back(labels.const_data_ptr<std::int32_t>()[i]);
        answer.numbers.push_back(numbers[i]);
    }
    return answers;
}

std::string TextClassifying::size_text() const {
    return count_text(pieces_, "piece");
}

}  // namespace hetseq
