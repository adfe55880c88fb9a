#include "classified_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/utf8.hpp"
#include "hetseq/data/files/text_reader.hpp"

namespace hetseq {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

constexpr std::size_t most_digits = 9;  // a longer one is a name

bool is_number(const std::string& column) {
    return column.size() <= most_digits &&
           column.find_first_not_of("0123456789") == std::string::npos;
}

TableFormat format_of(const std::string& path) {
    return path.ends_with(".csv") || path.ends_with(".csv.gz") ? TableFormat::csv
                                                               : TableFormat::tsv;
}

class ClassifiedReader {
public:
    ClassifiedReader(const std::string& path, const ClassifiedColumns& columns)
        : path_{path},
          columns_{columns},
          table_{columns.format.value_or(format_of(path))},
          expects_header_{columns.has_header || !is_number(columns.text) ||
                          !is_number(columns.pair) || !is_number(columns.label)} {}

    std::vector<ClassifiedText> read() {
        TextReader reader{path_};
        for (std::string_view line; reader.next(line);) {
            ++line_;
            check(line);
            if (line_ == 1 && line.starts_with(byte_order_mark))
                line.remove_prefix(byte_order_mark.size());
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

    void add(const std::vector<std::string>& row) {
        if (std::exchange(expects_header_, false)) {
            names_ = row;
            return;
        }
        if (row.size() == 1)
            throw BadData(place(row_line_) + " has one column",
                          "a text and its label are expected",
                          "separate the columns by tabs, or by commas in a file named .csv");
        ClassifiedText& text = texts_.emplace_back();
        text.text = column(row, columns_.text, "--text-column");
        if (!columns_.pair.empty())
            text.pair = column(row, columns_.pair, "--pair-column");
        text.label = column(row, columns_.label, "--label-column");
        if (text.label.empty())
            throw BadData(
                place(row_line_) + " has no label", "its column is empty", "correct the line");
        if (columns_.is_number && !finite_number(text.label))
            throw BadData(place(row_line_) + " has the label '" + text.label + "'",
                          "--numbers expects finite numbers such as 3.25",
                          "correct the line, or leave --numbers out");
    }

    const std::string& column(const std::vector<std::string>& row,
                              const std::string& which,
                              const std::string& option) const {
        const std::size_t number = which == "0" ? row.size() : number_of(which, option);
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
    bool expects_header_;
    std::vector<std::string> names_;  // of the header
    std::int64_t line_ = 0, row_line_ = 0;
    std::vector<ClassifiedText> texts_;
};

}  // namespace

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
