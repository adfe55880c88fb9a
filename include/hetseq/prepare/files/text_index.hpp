#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetseq/prepare/files/text_reader.hpp"

namespace hetseq {

class HostComm;

/// Where a line of a text file begins.
struct LinePlace {
    std::int64_t line = 0;    // from 0
    std::int64_t offset = 0;  // [bytes] of the text, see TextReader
};

/// What one pass over a text file finds.
struct TextIndex {
    std::string path;
    std::int64_t lines = 0;
    std::int64_t bytes = 0;           // of the text
    std::vector<LinePlace> places{};  // in order, the first line's among them
    std::int64_t documents = 0;       // counted by index_documents
};

constexpr std::int64_t usual_text_piece = std::int64_t{1} << 22;  // [bytes]

/// Collective. Reads all of the files, plain ones in pieces that the ranks share, a gzip file on
/// one rank. Their lines are UTF-8 without CR, and every file has one. A place is kept for each
/// `piece` [bytes]. Where something is wrong all ranks throw the same, whatever their number:
/// MissingInput, IoError or BadData that names file and line.
std::vector<TextIndex> index_texts(const HostComm& world,
                                   const std::vector<std::string>& paths,
                                   std::int64_t piece = usual_text_piece);

constexpr std::int64_t usual_document_step = std::int64_t{1} << 13;  // [bytes]

/// Collective. The same for texts of documents with blank lines between them: the places are lines
/// with which documents begin, at least `step` [bytes] apart within a piece. Lines need not be
/// UTF-8, but hold no CR, and every file has a document.
std::vector<TextIndex> index_documents(const HostComm& world,
                                       const std::vector<std::string>& paths,
                                       std::int64_t piece = usual_text_piece,
                                       std::int64_t step = usual_document_step);

/// Collective. Each line of the files is given to `take` on one of the ranks, which share the files
/// as `index_texts` does. Lines need not be UTF-8, but hold no CR, and a file may be empty. All
/// ranks throw the same MissingInput, IoError or BadData.
void read_lines_among_ranks(const HostComm& world,
                            const std::vector<std::string>& paths,
                            const std::function<void(std::string_view)>& take,
                            std::int64_t piece = usual_text_piece);

/// The lines of all files together.
std::int64_t total_lines(std::span<const TextIndex> texts);

/// Gives the lines of files as if they were one, from any line on. Going forward reads a gzip file
/// once.
class TextCursor {
public:
    /// `texts` must outlive it.
    explicit TextCursor(std::span<const TextIndex> texts) : texts_{texts} {}

    /// The next one given is line `line` of all.
    void move_to(std::int64_t line);
    /// Throws BadData where a file changed since its index was made.
    std::string_view next();

private:
    void open(std::size_t file);

    std::span<const TextIndex> texts_;
    std::size_t file_ = 0;
    std::int64_t line_ = 0;  // next, of the file
    std::optional<TextReader> reader_;
};

}  // namespace hetseq
