#include "classified_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/utf8.hpp"
#include "hetseq/prepare/files/text_reader.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_digits = 9;  // a longer one is a name
constexpr std::size_t most_shown = 40;  // bytes of a text in a message

bool is_number(const std::string& column) {
    return column.size() <= most_digits &&
           column.find_first_not_of("0123456789") == std::string::npos;
}

TableFormat format_of(const std::string& path) {
    return path.ends_with(".csv") || path.ends_with(".csv.gz") ? TableFormat::csv
                                                               : TableFormat::tsv;
}

// What the first row of a table often calls a column of texts, and one of labels.
constexpr std::array<std::string_view, 12> names_of_texts{"text",
                                                          "texts",
                                                          "sentence",
                                                          "sentence1",
                                                          "question",
                                                          "question1",
                                                          "premise",
                                                          "review",
                                                          "comment",
                                                          "content",
                                                          "tweet",
                                                          "title"};
constexpr std::array<std::string_view, 12> names_of_labels{"label",
                                                           "labels",
                                                           "gold_label",
                                                           "class",
                                                           "category",
                                                           "sentiment",
                                                           "target",
                                                           "score",
                                                           "rating",
                                                           "tag",
                                                           "quality",
                                                           "is_duplicate"};

template <class Names>
bool is_among(const std::string& text, const Names& names) {
    return std::find(names.begin(), names.end(), to_lower(text)) != names.end();
}

// Whether the first of `texts` may be the names of the columns.
bool begins_with_names(const std::vector<ClassifiedText>& texts) {
    const ClassifiedText& first = texts.front();
    const bool others_are_numbers =
        texts.size() > 2 && std::all_of(texts.begin() + 1, texts.end(), [](const auto& text) {
            return finite_number(text.label).has_value();
        });
    return is_among(first.text, names_of_texts) || is_among(first.label, names_of_labels) ||
           (others_are_numbers && !finite_number(first.label));
}

class ClassifiedReader {
public:
    ClassifiedReader(const std::string& path, const ClassifiedColumns& columns)
        : path_{path},
          columns_{columns},
          table_{columns.format.value_or(format_of(path))},
          has_header_{columns.has_header || !is_number(columns.text) || !is_number(columns.pair) ||
                      !is_number(columns.label)},
          expects_header_{has_header_} {}

    std::vector<ClassifiedText> read() {
        TextReader reader{path_};
        for (std::string_view line; reader.next(line);) {
            ++line_;
            check(line);
            if (!table_.is_within_quotes())
                row_line_ = line_;
            if (table_.add(line, place(line_)))
                add(table_.row());
        }
        if (table_.is_within_quotes())
            throw BadData(place(row_line_) + " begins a quote that does not end",
                          "",
                          "correct the line, or give a file with tabs between columns");
        if (texts_.empty())
            throw BadData(path_ + " holds no text",
                          "a row has a text and its label",
                          "give a table with tabs or commas between columns");
        if (!has_header_ && begins_with_names(texts_))
            log::warn(path_ + " is read without a header, and its first row, '" +
                      texts_.front().text.substr(0, most_shown) + "' with the label '" +
                      texts_.front().label.substr(0, most_shown) +
                      "', looks like names of columns: give --header if it is one");
        return std::move(texts_);
    }

private:
    std::string place(std::int64_t line) const { return path_ + ", line " + std::to_string(line); }

    void check(std::string_view line) const {
        if (const std::size_t valid = valid_utf8_bytes(line); valid < line.size())
            throw BadData(place(line_) + " is not UTF-8",
                          "byte " + std::to_string(valid + 1) + " of it",
                          "convert the text, for example with iconv -t UTF-8");
    }

    // A row with another number of columns has a border too many or too few, and its label may be
    // part of its text.
    void check_width(const std::vector<std::string>& row) {
        if (columns_of_first_row_ == 0)
            columns_of_first_row_ = row.size();
        if (row.size() != columns_of_first_row_)
            throw BadData(place(row_line_) + " has " + count_text(std::ssize(row), "column"),
                          "the first row has " + std::to_string(columns_of_first_row_),
                          "look for a tab in a text, or for a comma outside of quotes");
    }

    void add(const std::vector<std::string>& row) {
        if (std::exchange(expects_header_, false)) {
            names_ = row;
            check_width(row);
            return;
        }
        if (row.size() == 1)
            throw BadData(place(row_line_) + " has one column",
                          "a text and its label are expected",
                          "separate the columns by tabs, or by commas in a file named .csv");
        check_width(row);
        ClassifiedText& text = texts_.emplace_back();
        text.text = column(row, columns_.text, "--text-column");
        if (!columns_.pair.empty())
            text.pair = column(row, columns_.pair, "--pair-column");
        text.label = column(row, columns_.label, "--label-column");
        if (text.label.empty())
            throw BadData(
                place(row_line_) + " has no label", "its column is empty", "correct the line");
        if (text.label.find_first_of("\n\t") != std::string::npos)
            throw BadData(place(row_line_) + " has a label of several lines or columns",
                          "labels.txt has a line for each label",
                          "remove the line end or tab from that cell");
        if (columns_.is_number && !finite_number(text.label))
            throw BadData(place(row_line_) + " has the label '" + text.label + "'",
                          "--numbers expects finite numbers such as 3.25",
                          texts_.size() == 1 && !has_header_
                              ? "give --header if the line names the columns"
                              : "correct the line, or leave --numbers out");
    }

    const std::string& column(const std::vector<std::string>& row,
                              const std::string& which,
                              const std::string& option) const {
        const std::size_t number = is_last_column(which) ? row.size() : number_of(which, option);
        if (number > row.size())
            throw BadData(place(row_line_) + " has no column " + which,
                          std::to_string(row.size()) + " columns",
                          "correct the line, or choose another column by " + option);
        return row[number - 1];
    }

    std::size_t number_of(const std::string& name, const std::string& option) const {
        if (is_number(name))
            return std::stoull(name);
        const auto found = std::find(names_.begin(), names_.end(), name);
        if (found == names_.end())
            throw BadData(path_ + " has no column named '" + name + "'",
                          option + " asks for it; the first row names the columns",
                          suggestion(name, names_));
        return static_cast<std::size_t>(found - names_.begin()) + 1;
    }

    const std::string& path_;
    const ClassifiedColumns& columns_;
    TableReader table_;
    bool has_header_;
    bool expects_header_;  // as the next row
    std::size_t columns_of_first_row_ = 0;
    std::vector<std::string> names_;  // of the header
    std::int64_t line_ = 0, row_line_ = 0;
    std::vector<ClassifiedText> texts_;
};

}  // namespace

bool is_last_column(const std::string& column) {
    return !column.empty() && column.find_first_not_of('0') == std::string::npos;
}

std::optional<double> finite_number(const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, value);
    const bool is_whole = error == std::errc{} && last == end;
    return is_whole && std::isfinite(value) ? std::optional{value} : std::nullopt;
}

std::vector<ClassifiedText> read_classified_text(const std::string& path,
                                                 const ClassifiedColumns& columns) {
    return ClassifiedReader{path, columns}.read();
}

}  // namespace hetseq
