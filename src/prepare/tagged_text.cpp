#include "tagged_text.hpp"

#include <string_view>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/text/blank_line.hpp"
#include "hetseq/text/scores/entities.hpp"
#include "hetseq/text/utf8.hpp"
#include "hetseq/prepare/files/text_reader.hpp"

namespace hetseq {

namespace {

std::vector<std::string_view> columns_of(std::string_view line) {
    const bool has_tabs = line.find('\t') != std::string_view::npos;
    std::vector<std::string_view> columns;
    for (std::size_t begin = 0; begin <= line.size();) {
        const std::size_t found = line.find(has_tabs ? '\t' : ' ', begin);
        const std::size_t end = found == std::string_view::npos ? line.size() : found;
        if (has_tabs || end > begin)
            columns.push_back(line.substr(begin, end - begin));
        begin = end + 1;
    }
    return columns;
}

class TaggedReader {
public:
    TaggedReader(const std::string& path, const TaggedColumns& columns)
        : path_{path}, columns_{columns} {}

    std::vector<TaggedSentence> read() {
        TextReader reader{path_};
        for (std::string_view line; reader.next(line);) {
            ++line_;
            add(line);
        }
        end_sentence();
        if (sentences_.empty())
            throw BadData(path_ + " holds no sentence",
                          "a line has a word and its tag",
                          "give a file of columns");
        return std::move(sentences_);
    }

private:
    void add(std::string_view line) {
        if (const std::size_t valid = valid_utf8_bytes(line); valid < line.size())
            fail("is not UTF-8",
                 "byte " + std::to_string(valid + 1) + " of it",
                 "convert the text, for example with iconv -t UTF-8");
        check_line_end(line, [this] { return place(); });
        if (is_blank_line(line)) {
            end_sentence();
            return;
        }
        const std::vector<std::string_view> columns = columns_of(line);
        if (columns.front() == "-DOCSTART-")
            return;
        const std::string_view word = column(columns, columns_.word_column);
        if (word.empty())
            fail("has no word", "column " + std::to_string(columns_.word_column) + " is empty");
        const std::string_view tag = column(columns, columns_.tag_column);
        if (columns.size() == 1)
            fail("has one column", "a word and its tag are expected");
        if (!is_iob2_tag(tag))
            fail("has the tag '" + std::string(tag) + "'", "tags of IOB2 are O, B-TYPE and I-TYPE");
        sentence_.words.emplace_back(word);
        sentence_.tags.emplace_back(tag);
    }

    std::string_view column(const std::vector<std::string_view>& columns, std::int64_t number) {
        if (number > std::ssize(columns))
            fail("has no column " + std::to_string(number),
                 std::to_string(columns.size()) + " columns between tabs, or between blanks",
                 "choose others by --word-column and --tag-column");
        return number == 0 ? columns.back() : columns[static_cast<std::size_t>(number - 1)];
    }

    void end_sentence() {
        if (!sentence_.words.empty())
            sentences_.push_back(std::exchange(sentence_, {}));
    }

    std::string place() const { return path_ + ", line " + std::to_string(line_); }

    [[noreturn]] void fail(const std::string& problem,
                           const std::string& why,
                           const std::string& what_to_do = "correct the line") const {
        throw BadData(place() + " " + problem, why, what_to_do);
    }

    const std::string& path_;
    const TaggedColumns& columns_;
    std::int64_t line_ = 0;
    TaggedSentence sentence_;
    std::vector<TaggedSentence> sentences_;
};

}  // namespace

std::vector<TaggedSentence> read_tagged_text(const std::string& path,
                                             const TaggedColumns& columns) {
    return TaggedReader{path, columns}.read();
}

}  // namespace hetseq
