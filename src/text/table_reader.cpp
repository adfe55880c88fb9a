#include "hetseq/text/table_reader.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"

namespace hetseq {

bool TableReader::add(std::string_view line, const std::string& at) {
    if (!within_quotes_) {
        row_.clear();
        if (line.find_first_not_of(" \t\r") == std::string_view::npos)
            return false;
    }
    if (format_ == TableFormat::csv)
        return add_fields(line, at);
    check_line_end(line, [&] { return at; });
    add_columns(line);
    return true;
}

void TableReader::add_columns(std::string_view line) {
    for (std::size_t begin = 0;;) {
        const std::size_t end = line.find('\t', begin);
        row_.emplace_back(line.substr(begin, end - begin));
        if (end == std::string_view::npos)
            return;
        begin = end + 1;
    }
}

// Appends to the last field, which is in quotes; returns what stands behind the closing quote.
std::string_view TableReader::add_quoted(std::string_view rest, const std::string& at) {
    for (;;) {
        const std::size_t quote = rest.find('"');
        row_.back() += rest.substr(0, quote);
        std::replace(row_.back().begin(), row_.back().end(), '\r', '\n');
        if (quote == std::string_view::npos) {
            row_.back() += '\n';
            within_quotes_ = true;
            return {};
        }
        rest.remove_prefix(quote + 1);
        if (!rest.starts_with('"'))
            break;
        row_.back() += '"';
        rest.remove_prefix(1);
    }
    within_quotes_ = false;
    if (!rest.empty() && rest.front() != ',')
        throw BadData(at + " has text behind a closing quote",
                      "a quote within quotes is written twice, as in \"a \"\"b\"\" c\"",
                      "correct the line, or give a file with tabs between columns");
    return rest;
}

bool TableReader::add_fields(std::string_view line, const std::string& at) {
    std::string_view rest = line;
    bool is_next_field = true;
    if (within_quotes_) {
        rest = add_quoted(rest, at);
        is_next_field = rest.starts_with(',');
        rest.remove_prefix(is_next_field ? 1 : 0);
    }
    while (is_next_field) {
        row_.emplace_back();
        if (rest.starts_with('"')) {
            rest = add_quoted(rest.substr(1), at);
        } else {
            const std::size_t end = std::min(rest.find(','), rest.size());
            row_.back() = rest.substr(0, end);
            check_line_end(row_.back(), [&] { return at; });
            rest.remove_prefix(end);
        }
        is_next_field = rest.starts_with(',');
        rest.remove_prefix(is_next_field ? 1 : 0);
    }
    return !within_quotes_;
}

}  // namespace hetseq
