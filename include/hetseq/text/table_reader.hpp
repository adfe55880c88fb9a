#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// Tabs between columns, taken as they are; or commas between columns, where a field in double
/// quotes may hold commas, doubled quotes and line ends (RFC 4180).
enum class TableFormat { tsv, csv };

/// Rows of a table, which is given line by line.
class TableReader {
public:
    explicit TableReader(TableFormat format) : format_{format} {}

    /// Takes the next line, without its end. True where it completes a row; blank lines complete
    /// none. A CR is a line end within quotes. Throws BadData for one elsewhere and for text behind
    /// a closing quote; `at` is what the error calls the line.
    bool add(std::string_view line, const std::string& at);
    /// The columns of the row that the last line completed.
    const std::vector<std::string>& row() const { return row_; }
    /// True while a field in quotes goes on in the next line.
    bool is_within_quotes() const { return within_quotes_; }

private:
    void add_columns(std::string_view line);
    bool add_fields(std::string_view line, const std::string& at);
    std::string_view add_quoted(std::string_view rest, const std::string& at);

    TableFormat format_;
    std::vector<std::string> row_;
    bool within_quotes_ = false;
};

}  // namespace hetseq
