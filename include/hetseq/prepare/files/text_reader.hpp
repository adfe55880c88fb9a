#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hetseq {

/// Lines of a text file, plain or gzip, one after the other. Offsets are those of the text, not of
/// its compressed form. Keeps one buffer, which holds the longest line.
class TextReader {
public:
    /// Throws MissingInput or IoError.
    explicit TextReader(const std::string& path);
    ~TextReader();
    TextReader(TextReader&&) noexcept;
    TextReader& operator=(TextReader&&) noexcept;

    /// The next line without its end ("\n", "\r\n" or the end of the file), until the next call;
    /// false at the end. The first one is without a byte order mark. A CR within a line is left to
    /// the caller. Throws BadData where gzip data are damaged, a line is longer than 16 MiB or the
    /// text begins as UTF-16 does.
    bool next(std::string_view& line);
    /// Where the next line begins [bytes].
    std::int64_t offset() const noexcept;
    /// Goes to a line that begins at `offset`. A gzip file is read up to there, from its beginning
    /// if `offset` lies behind.
    void seek(std::int64_t offset);

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// True if the file begins as a gzip file does. Throws what the constructor throws.
bool is_gzip_file(const std::string& path);

}  // namespace hetseq
