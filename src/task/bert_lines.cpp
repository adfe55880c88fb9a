#include "bert_lines.hpp"

#include <charconv>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/text/blank_line.hpp"
#include "hetseq/text/subwords/sequence_pieces.hpp"
#include "hetseq/text/subwords/word_pieces.hpp"
#include "hetseq/text/text_lines.hpp"
#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"

#include "bert_setup.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

BasicTokenizerOptions tokenizer_in(const fs::path& folder) {
    const fs::path path = folder / bert_tokenizer_name;
    const std::optional<std::string> text = read_file_text(path);
    if (!text)
        throw MissingInput("there is no " + path.string(), "", "name the folder of a whole run");
    return parse_tokenizer_config(*text, path.string());
}

// What the run's files say of its lines, for an `Encoder` of words or of sentences.
template <class Encoder>
struct LineFiles {
    LineFiles(const fs::path& folder, const PartOptions& options)
        : encoder{WordPiece::read(folder / bert_vocabulary_name),
                  tokenizer_in(folder),
                  bert_config_of(options).max_position_embeddings},
          labels{read_text_lines((folder / labels_name).string())} {}

    const std::string& label(std::int32_t number) const {
        return labels.at(static_cast<std::size_t>(number));
    }

    Encoder encoder;
    std::vector<std::string> labels;
};

constexpr const char* no_label = "?";  // of a word that the model has no position for

std::vector<std::string> words_in(const std::string& line) {
    std::istringstream text{line};
    text.imbue(std::locale::classic());
    std::vector<std::string> words;
    for (std::string word; text >> word;)
        words.push_back(word);
    return words;
}

class Tagging final : public LineAnswering {
public:
    Tagging(const fs::path& folder, const PartOptions& options) : files_{folder, options} {}

    std::optional<LineRow> row_of(const std::string& line) override {
        const std::vector<std::string> words = words_in(line);
        if (words.empty())
            return std::nullopt;
        WordPieces pieces = files_.encoder.encode(words);
        const bool is_cut = pieces.words.size() < words.size();
        return LineRow{std::move(pieces.ids), std::move(pieces.words), std::ssize(words), is_cut};
    }

    TensorDict fields_of(std::span<const LineRow> rows) const override {
        TensorDict fields;
        put_ragged_field(fields, "input_ids", rows, &LineRow::ids);
        put_ragged_field(fields, "words", rows, &LineRow::marks);
        return fields;
    }

    std::vector<LineAnswer> answers_of(std::span<const LineRow> rows,
                                       const std::vector<Prediction>& predictions) const override {
        const at::Tensor labels = predictions.front().values.to(at::kCPU, at::kInt).contiguous();
        const auto* label = labels.const_data_ptr<std::int32_t>();
        std::vector<LineAnswer> answers;
        for (const LineRow& row : rows) {
            answers.push_back({{label, label + row.marks.size()}});
            label += row.marks.size();
        }
        return answers;
    }

    std::string text_of(const std::string& line, const LineAnswer& answer) const override {
        std::string text;
        std::size_t k = 0;
        for (const std::string& word : words_in(line)) {
            text += (k == 0 ? "" : "\t") + word + " ";
            text += k < answer.labels.size() ? files_.label(answer.labels[k]) : no_label;
            ++k;
        }
        return text;
    }

    std::string unit() const override { return "word"; }
    std::string note_on_cut() const override {
        return "the words that did not fit have the label ?";
    }

private:
    LineFiles<WordEncoder> files_;
};

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

class Classifying final : public LineAnswering {
public:
    Classifying(const fs::path& folder, const PartOptions& options)
        : files_{folder, options}, segments_{bert_config_of(options).type_vocab_size} {}

    std::optional<LineRow> row_of(const std::string& line) override {
        if (is_blank_line(line))
            return std::nullopt;
        const std::size_t tab = line.find('\t');
        if (tab != std::string::npos && segments_ < 2)
            throw BadData("it holds a tab, which divides two texts",
                          "the model has one type of segment (type_vocab_size)",
                          "remove the tab");
        SequencePieces row = files_.encoder.encode(
            line.substr(0, tab),
            tab == std::string::npos ? std::nullopt : std::optional{line.substr(tab + 1)});
        const std::int64_t size = std::ssize(row.ids);
        return LineRow{
            std::move(row.ids), {static_cast<std::int32_t>(row.second)}, size, row.cut > 0};
    }

    TensorDict fields_of(std::span<const LineRow> rows) const override {
        TensorDict fields;
        put_ragged_field(fields, "input_ids", rows, &LineRow::ids);
        std::vector<std::int32_t> seconds;
        for (const LineRow& row : rows)
            seconds.push_back(row.marks.front());
        fields["second_segments"] = at::tensor(seconds, at::kInt);
        return fields;
    }

    std::vector<LineAnswer> answers_of(std::span<const LineRow> rows,
                                       const std::vector<Prediction>& predictions) const override {
        const bool has_labels = predictions.front().name == "labels";
        const at::Tensor labels =
            has_labels ? predictions[0].values.to(at::kCPU, at::kInt).contiguous() : at::Tensor{};
        const std::vector<float> numbers = numbers_in(
            has_labels ? std::get<0>(predictions[1].values.max(1)) : predictions[0].values);
        std::vector<LineAnswer> answers(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (has_labels)
                answers[i].labels.push_back(labels.const_data_ptr<std::int32_t>()[i]);
            answers[i].numbers.push_back(numbers[i]);
        }
        return answers;
    }

    std::string text_of(const std::string&, const LineAnswer& answer) const override {
        const std::string label =
            answer.labels.empty() ? "" : files_.label(answer.labels.front()) + '\t';
        return label + shortest_text(answer.numbers.at(0));
    }

    std::string unit() const override { return "piece"; }
    std::string note_on_cut() const override { return "their ends were left out"; }

private:
    LineFiles<SequenceEncoder> files_;
    std::int64_t segments_;  // types of them
};

}  // namespace

std::unique_ptr<LineAnswering> make_tagging(const fs::path& folder, const PartOptions& options) {
    return std::make_unique<Tagging>(folder, options);
}

std::unique_ptr<LineAnswering> make_classifying(const fs::path& folder,
                                                const PartOptions& options) {
    return std::make_unique<Classifying>(folder, options);
}

}  // namespace hetseq
