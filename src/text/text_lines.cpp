#include "hetseq/text/text_lines.hpp"

#include <fstream>
#include <istream>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/text/utf8.hpp"

namespace hetseq {

std::vector<std::string> read_text_lines(std::istream& text, const std::string& name) {
    std::vector<std::string> lines;
    for (std::string read; std::getline(text, read);) {
        std::string_view line = read;
        if (lines.empty())
            line = begin_of_text(line, name);
        line = without_line_end(line);
        const auto place = [&] { return name + " line " + std::to_string(lines.size() + 1); };
        if (const std::size_t valid = valid_utf8_bytes(line); valid != line.size())
            throw BadData(place() + " is not UTF-8",
                          "byte " + std::to_string(valid + 1) + " of the line begins no character",
                          "convert the file, for example with iconv -f LATIN1 -t UTF-8");
        check_line_end(line, place);
        lines.emplace_back(line);
    }
    if (text.bad())
        throw IoError("cannot read " + name, "reading failed", "check that it is a file of text");
    return lines;
}

std::vector<std::string> read_text_lines(const std::string& path) {
    check_text_file(path);
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw MissingInput(
            "cannot read " + path, "it does not exist or cannot be opened", "check the path");
    return read_text_lines(file, path);
}

}  // namespace hetseq
