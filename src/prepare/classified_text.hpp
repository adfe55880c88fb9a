#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/text/table_reader.hpp"

namespace hetseq {

/// A row of a table: one text or two, and what is said of them.
struct ClassifiedText {
    std::string text;
    std::optional<std::string> pair;
    std::string label;
};

/// Columns by their number, from 1, or by the name that the first row gives; "0" is the last one.
struct ClassifiedColumns {
    std::string text = "1";
    std::string pair{};  // empty: there is none
    std::string label = "0";
    bool is_number = false;   // labels are numbers
    bool has_header = false;  // the first row has names; so it is where a column has a name
    std::optional<TableFormat> format{};  // otherwise CSV for names ending in .csv or .csv.gz
};

/// Whether it is column 0, the last one.
bool is_last_column(const std::string& column);

/// The number that is all of `text`; nothing where it is none, or not finite.
std::optional<double> finite_number(const std::string& text);

/// The rows of a table, plain or gzip. Throws MissingInput, IoError, or BadData that names file and
/// line.
std::vector<ClassifiedText> read_classified_text(const std::string& path,
                                                 const ClassifiedColumns& columns);

}  // namespace hetseq
