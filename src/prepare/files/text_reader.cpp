#include "hetseq/prepare/files/text_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/data/files/shard_spec.hpp"

#include "gzip_file.hpp"

namespace hetseq {

namespace {

constexpr std::size_t first_buffer = std::size_t{1} << 18;  // [bytes]
constexpr std::size_t most_line = std::size_t{1} << 24;     // [bytes]

GzipFile open_text(const std::string& path) {
    stamp_readable_file(path, "name text files, plain or gzip");
    GzipFile file{gzopen(path.c_str(), "rb")};
    if (!file)
        throw IoError("cannot read " + path, std::strerror(errno), "check the file");
    gzbuffer(file.get(), first_buffer);
    return file;
}

}  // namespace

struct TextReader::State {
    std::string path;
    GzipFile file;
    std::vector<char> buffer = std::vector<char>(first_buffer);
    std::size_t begin = 0;    // of what was read and not given, in `buffer`
    std::size_t end = 0;      // behind it
    std::int64_t offset = 0;  // of `begin` in the text
    bool at_end = false;      // nothing more can be read

    std::string_view rest() const { return {buffer.data() + begin, end - begin}; }

    // Makes room and reads on.
    void fill() {
        std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(begin),
                  buffer.begin() + static_cast<std::ptrdiff_t>(end),
                  buffer.begin());
        end -= begin;
        begin = 0;
        if (end == buffer.size() && end >= most_line)
            throw BadData(path + " has a line of more than 16 MiB",
                          "it begins at byte " + std::to_string(offset),
                          "name text with one sentence in a line");
        if (end == buffer.size())
            buffer.resize(2 * end);
        const int count =
            gzread(file.get(), buffer.data() + end, static_cast<unsigned>(buffer.size() - end));
        check(count);
        at_end = count == 0;
        end += static_cast<std::size_t>(count);
    }

    void check(int count) const {
        int error = Z_OK;
        const std::string message = gzerror(file.get(), &error);
        if (error == Z_ERRNO)
            throw IoError("cannot read " + path, std::strerror(errno), "check the file");
        if (count < 0 || error != Z_OK)
            throw BadData(path + " is truncated or damaged", message, "copy the file again");
    }

    std::string_view take(std::size_t bytes) {
        const std::string_view taken = rest().substr(0, bytes);
        begin += bytes;
        offset += static_cast<std::int64_t>(bytes);
        return taken;
    }
};

TextReader::TextReader(const std::string& path)
    : state_{std::make_unique<State>(State{.path = path, .file = open_text(path)})} {}

TextReader::~TextReader() = default;
TextReader::TextReader(TextReader&&) noexcept = default;
TextReader& TextReader::operator=(TextReader&&) noexcept = default;

bool TextReader::next(std::string_view& line) {
    std::size_t searched = 0;
    for (;;) {
        const std::string_view rest = state_->rest();
        const std::size_t end = rest.find('\n', searched);
        if (end == std::string_view::npos && !state_->at_end) {
            searched = rest.size();
            state_->fill();
            continue;
        }
        if (rest.empty())
            return false;
        const bool is_first = state_->offset == 0;
        line = state_->take(end == std::string_view::npos ? rest.size() : end + 1);
        if (is_first)
            line = begin_of_text(line, state_->path);
        if (line.ends_with('\n'))
            line.remove_suffix(1);
        line = without_line_end(line);
        return true;
    }
}

std::int64_t TextReader::offset() const noexcept {
    return state_->offset;
}

void TextReader::seek(std::int64_t offset) {
    State& state = *state_;
    const std::int64_t read = state.offset + static_cast<std::int64_t>(state.rest().size());
    if (offset >= state.offset && offset <= read) {
        state.take(static_cast<std::size_t>(offset - state.offset));
        return;
    }
    gzdirect(state.file.get());  // zlib then knows that a plain file need not be read up to there
    if (gzseek(state.file.get(), offset, SEEK_SET) < 0)
        state.check(-1);
    state.begin = state.end = 0;
    state.offset = offset;
    state.at_end = false;
}

bool is_gzip_file(const std::string& path) {
    const GzipFile file = open_text(path);
    return gzdirect(file.get()) == 0;
}

}  // namespace hetseq
