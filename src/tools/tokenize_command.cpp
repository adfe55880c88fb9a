#include "hetseq/tools/tokenize_command.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/util/process/standard_streams.hpp"

namespace hetseq {

namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 20;
constexpr const char* input_name = "standard input";

// What stands for each id in a line, and the blank behind it.
std::vector<std::string> words_by_id(const WordPiece& pieces, bool as_pieces) {
    std::vector<std::string> words;
    for (std::int32_t id = 0; id < pieces.size(); ++id)
        words.push_back((as_pieces ? pieces.piece(id) : std::to_string(id)) + ' ');
    return words;
}

// Appends what standard input has now; false at its end.
bool read_more(std::string& text) {
    const std::size_t before = text.size();
    text.resize(before + read_bytes);
    ssize_t count = 0;
    do {
        count = ::read(STDIN_FILENO, text.data() + before, read_bytes);
    } while (count < 0 && errno == EINTR);
    if (count < 0)
        throw IoError("cannot read standard input", std::strerror(errno), "give lines of text");
    text.resize(before + static_cast<std::size_t>(count));
    return count > 0;
}

class LineTokenizer {
public:
    LineTokenizer(const WordPiece& pieces, const BertTokenizerOptions& options, bool as_pieces)
        : tokenizer_{pieces, options}, words_{words_by_id(pieces, as_pieces)} {}

    // Prints one line for each of `text`, which ends with the end of a line.
    void print(std::string_view text) {
        printed_.clear();
        try {
            append(text);
        } catch (const BadData&) {
            write_output(printed_);  // of the lines before
            throw;
        }
        write_output(printed_);
    }

private:
    void append(std::string_view text) {
        while (!text.empty()) {
            std::string_view line = take_line(text);
            if (++lines_ == 1)
                line = begin_of_text(line, input_name);
            check_line_end(line, [this] {
                return std::string(input_name) + ", line " + std::to_string(lines_);
            });
            const std::size_t begin = printed_.size();
            for (const std::int32_t id : tokenizer_.encode(line))
                printed_ += words_[static_cast<std::size_t>(id)];
            if (printed_.size() > begin)
                printed_.back() = '\n';
            else
                printed_.push_back('\n');
        }
    }

    BertTokenizer tokenizer_;
    std::vector<std::string> words_;
    std::string printed_;
    std::int64_t lines_ = 0;
};

}  // namespace

int tokenize_command(const CommandWords& words) {
    const TokenizeOptions options = words.read(tokenize_options());
    LineTokenizer tokenizer{
        WordPiece::read(options.vocabulary), options.tokenizer, options.as_pieces};
    const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
    if (is_terminal)
        log::info("reading lines from the terminal: Ctrl-D ends them");
    std::string text;  // lines not printed yet
    while (read_more(text)) {
        const std::size_t end = text.rfind('\n') + 1;  // 0: no whole line
        tokenizer.print(std::string_view{text}.substr(0, end));
        text.erase(0, end);
        if (is_terminal)
            flush_output();
    }
    if (!text.empty())
        tokenizer.print(text + '\n');
    return 0;
}

}  // namespace hetseq
