#include "hetseq/text/blank_line.hpp"

#include <algorithm>
#include <string>

#include "hetseq/text/bert/valid_characters.hpp"
#include "hetseq/text/code_points.hpp"

namespace hetseq {

bool is_blank_line(std::string_view line) {
    while (!line.empty() && static_cast<unsigned char>(line.front()) < 0x80) {
        if (!is_blank(static_cast<unsigned char>(line.front())))
            return false;
        line.remove_prefix(1);
    }
    if (line.empty())
        return true;
    const std::u32string characters = decode_valid_characters(line);
    return std::all_of(characters.begin(), characters.end(), is_blank);
}

}  // namespace hetseq
