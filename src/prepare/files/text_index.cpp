#include "hetseq/prepare/files/text_index.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/blank_line.hpp"
#include "hetseq/text/utf8.hpp"
#include "hetseq/data/files/first_failure.hpp"
#include "hetseq/data/files/shard_spec.hpp"

namespace hetseq {

namespace {

constexpr const char* name_texts = "name text files, plain or gzip";

// What the places are.
enum class Places { lines, documents };

struct Pass {
    Places places = Places::lines;
    std::int64_t piece = 0;  // [bytes] that a rank reads at once
    std::int64_t step = 0;   // [bytes] between places
};

// A stretch of one file that one rank reads.
struct TextStretch {
    std::size_t file = 0;
    std::int64_t begin = 0;  // [bytes]: lines that begin from here
    std::int64_t end = 0;    // to here
};

enum class LineFault : std::int64_t { none, not_utf8, carriage_return };

LineFault fault_of(std::string_view line, Places places) {
    if (holds_carriage_return(line))
        return LineFault::carriage_return;
    const bool is_bad = places == Places::lines && valid_utf8_bytes(line) != line.size();
    return is_bad ? LineFault::not_utf8 : LineFault::none;
}

// What was found in a stretch. Its lines are counted from 0.
struct TextFindings {
    std::vector<LinePlace> places{};
    std::int64_t lines = 0;
    std::int64_t documents = 0;
    std::int64_t end = 0;               // [bytes]: where its last line ends
    LineFault fault = LineFault::none;  // else `lines` is the number of the bad line

    // A place where the next line begins, if the last one lies far enough before.
    void add_place(std::int64_t step) {
        if (places.empty() || end >= places.back().offset + step)
            places.push_back({lines, end});
    }
};

std::vector<TextStretch> stretches_of(const std::vector<std::string>& paths, std::int64_t piece) {
    std::vector<TextStretch> stretches;
    for (std::size_t file = 0; file < paths.size(); ++file) {
        const std::int64_t bytes = stamp_readable_file(paths[file], name_texts).bytes;
        const bool is_one = is_gzip_file(paths[file]);
        const std::int64_t step = is_one ? std::max<std::int64_t>(bytes, 1) : piece;
        for (std::int64_t begin = 0; begin < bytes; begin += step)
            stretches.push_back(
                {file, begin, is_one ? std::numeric_limits<std::int64_t>::max() : begin + step});
    }
    return stretches;
}

// The same stretches on all ranks, even where a file is still growing.
std::vector<TextStretch> agreed_stretches(const HostComm& world,
                                          const std::vector<std::string>& paths,
                                          std::int64_t piece) {
    std::vector<TextStretch> stretches =
        agree_on(world, [&] { return stretches_of(paths, piece); });
    std::string bytes(reinterpret_cast<const char*>(stretches.data()),
                      stretches.size() * sizeof(TextStretch));
    bytes = world.broadcast(std::move(bytes), 0);
    stretches.resize(bytes.size() / sizeof(TextStretch));
    std::memcpy(stretches.data(), bytes.data(), bytes.size());
    return stretches;
}

void read_lines(TextReader& reader,
                const TextStretch& stretch,
                const Pass& pass,
                TextFindings& found) {
    std::string_view line;
    while (found.end < stretch.end && reader.next(line)) {
        found.add_place(pass.step);
        found.fault = fault_of(line, pass.places);
        if (found.fault != LineFault::none)
            break;
        ++found.lines;
        found.end = reader.offset();
    }
}

// A document belongs to the stretch in which the line before it begins.
void read_documents(TextReader& reader,
                    const TextStretch& stretch,
                    const Pass& pass,
                    TextFindings& found) {
    std::string_view line;
    const bool is_first = stretch.begin == 0;
    bool follows_blank = is_first;
    if (is_first)
        found.add_place(pass.step);  // blank or not: a cursor needs it
    while (reader.next(line)) {
        const bool is_blank = is_blank_line(line);
        if (follows_blank && !is_blank) {
            ++found.documents;
            found.add_place(pass.step);
        }
        if (found.end >= stretch.end)
            return;
        found.fault = fault_of(line, pass.places);
        if (found.fault != LineFault::none)
            return;
        follows_blank = is_blank;
        ++found.lines;
        found.end = reader.offset();
    }
}

// At the first line that begins in the stretch.
TextReader reader_of(const std::string& path, const TextStretch& stretch) {
    TextReader reader{path};
    if (stretch.begin > 0) {  // the line that the byte before belongs to is of the stretch before
        std::string_view line;
        reader.seek(stretch.begin - 1);
        reader.next(line);
    }
    return reader;
}

TextFindings read_stretch(const std::string& path, const TextStretch& stretch, const Pass& pass) {
    TextReader reader = reader_of(path, stretch);
    TextFindings found{.end = reader.offset()};
    if (pass.places == Places::lines)
        read_lines(reader, stretch, pass, found);
    else if (found.end < stretch.end)
        read_documents(reader, stretch, pass, found);
    return found;
}

// The number, from 1, of the line that begins at `offset`. Reads all before it.
std::int64_t line_at(const std::string& path, std::int64_t offset) {
    TextReader reader{path};
    std::string_view line;
    std::int64_t number = 1;
    while (reader.offset() < offset && reader.next(line))
        ++number;
    return number;
}

// Numbers, to send.
void append(std::vector<std::int64_t>& numbers, std::size_t stretch, const TextFindings& found) {
    numbers.insert(numbers.end(),
                   {static_cast<std::int64_t>(stretch),
                    found.lines,
                    found.documents,
                    found.end,
                    static_cast<std::int64_t>(found.fault),
                    std::ssize(found.places)});
    for (const LinePlace& place : found.places)
        numbers.insert(numbers.end(), {place.line, place.offset});
}

// By stretch; from all ranks.
std::vector<TextFindings> gather(const HostComm& world,
                                 const std::vector<std::int64_t>& mine,
                                 std::size_t stretches) {
    std::vector<TextFindings> all(stretches);
    for (const std::string& bytes : world.all_gather(std::string(
             reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(std::int64_t)))) {
        std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
        std::memcpy(numbers.data(), bytes.data(), bytes.size());
        for (auto next = numbers.begin(); next != numbers.end();) {
            TextFindings& found = all[static_cast<std::size_t>(*next++)];
            found.lines = *next++;
            found.documents = *next++;
            found.end = *next++;
            found.fault = static_cast<LineFault>(*next++);
            found.places.resize(static_cast<std::size_t>(*next++));
            for (LinePlace& place : found.places) {
                place.line = *next++;
                place.offset = *next++;
            }
        }
    }
    return all;
}

[[noreturn]] void throw_fault(LineFault fault, const std::string& path, std::int64_t line) {
    const std::string place = path + ", line " + std::to_string(line + 1);
    const Explanation explained =
        fault == LineFault::carriage_return
            ? carriage_return_fault(place)
            : Explanation{place + " is not UTF-8",
                          "",
                          "convert the file (iconv -t UTF-8), or remove the line from both files"};
    throw BadData(explained.problem, explained.why, explained.what_to_do);
}

std::vector<TextIndex> text_indexes(const std::vector<std::string>& paths,
                                    const std::vector<TextStretch>& stretches,
                                    const std::vector<TextFindings>& findings) {
    std::vector<TextIndex> texts;
    for (const std::string& path : paths)
        texts.push_back({.path = path});
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        TextIndex& text = texts[stretches[i].file];
        for (const LinePlace& place : findings[i].places)
            text.places.push_back({text.lines + place.line, place.offset});
        text.lines += findings[i].lines;
        text.documents += findings[i].documents;
        text.bytes = std::max(text.bytes, findings[i].end);
        if (findings[i].fault != LineFault::none)
            throw_fault(findings[i].fault, text.path, text.lines);
    }
    for (const TextIndex& text : texts)
        if (text.lines == 0)
            throw BadData(text.path + " is empty", "", name_texts);
    return texts;
}

// Collective. Calls `read(i)` for this rank's part of `stretches`. The first one that fails ends it
// on all ranks.
template <class Read>
void read_among_ranks(const HostComm& world, std::size_t stretches, Read&& read) {
    std::optional<OrderedFailure> failure;
    const auto step = static_cast<std::size_t>(world.size());
    for (auto i = static_cast<std::size_t>(world.rank()); i < stretches && !failure; i += step) {
        try {
            read(i);
        } catch (...) {
            failure = OrderedFailure{static_cast<std::int64_t>(i), std::current_exception()};
        }
    }
    agree_on_first(world, failure);
}

std::vector<TextIndex> run_pass(const HostComm& world,
                                const std::vector<std::string>& paths,
                                const Pass& pass) {
    const std::vector<TextStretch> stretches = agreed_stretches(world, paths, pass.piece);
    std::vector<std::int64_t> mine;
    read_among_ranks(world, stretches.size(), [&](std::size_t i) {
        append(mine, i, read_stretch(paths[stretches[i].file], stretches[i], pass));
    });
    return text_indexes(paths, stretches, gather(world, mine, stretches.size()));
}

}  // namespace

std::vector<TextIndex> index_texts(const HostComm& world,
                                   const std::vector<std::string>& paths,
                                   std::int64_t piece) {
    return run_pass(world, paths, {Places::lines, piece, piece});
}

std::vector<TextIndex> index_documents(const HostComm& world,
                                       const std::vector<std::string>& paths,
                                       std::int64_t piece,
                                       std::int64_t step) {
    std::vector<TextIndex> texts = run_pass(world, paths, {Places::documents, piece, step});
    for (const TextIndex& text : texts)
        if (text.documents == 0)
            throw BadData(text.path + " has no document",
                          "all of its " + std::to_string(text.lines) + " lines are blank",
                          "name text with a sentence in each line and a blank line between "
                          "documents");
    return texts;
}

void read_lines_among_ranks(const HostComm& world,
                            const std::vector<std::string>& paths,
                            const std::function<void(std::string_view)>& take,
                            std::int64_t piece) {
    const std::vector<TextStretch> stretches = agreed_stretches(world, paths, piece);
    read_among_ranks(world, stretches.size(), [&](std::size_t i) {
        TextReader reader = reader_of(paths[stretches[i].file], stretches[i]);
        const std::string& path = paths[stretches[i].file];
        std::string_view line;
        for (std::int64_t begin = 0;
             (begin = reader.offset()) < stretches[i].end && reader.next(line);
             take(line))
            check_line_end(line,
                           [&] { return path + ", line " + std::to_string(line_at(path, begin)); });
    });
}

std::int64_t total_lines(std::span<const TextIndex> texts) {
    return std::accumulate(
        texts.begin(), texts.end(), std::int64_t{0}, [](std::int64_t sum, const TextIndex& text) {
            return sum + text.lines;
        });
}

void TextCursor::open(std::size_t file) {
    file_ = file;
    line_ = 0;
    reader_.emplace(texts_[file].path);
}

void TextCursor::move_to(std::int64_t line) {
    std::size_t file = 0;
    while (file + 1 < texts_.size() && line >= texts_[file].lines)
        line -= texts_[file++].lines;
    if (!reader_ || file != file_)
        open(file);
    const std::vector<LinePlace>& places = texts_[file].places;
    const auto behind = std::upper_bound(
        places.begin(), places.end(), line, [](std::int64_t wanted, const LinePlace& place) {
            return wanted < place.line;
        });
    const LinePlace& place = *std::prev(behind);
    if (line_ > line || line_ < place.line) {
        reader_->seek(place.offset);
        line_ = place.line;
    }
    while (line_ < line)
        next();
}

std::string_view TextCursor::next() {
    if (!reader_)
        open(0);
    if (line_ == texts_[file_].lines && file_ + 1 < texts_.size())
        open(file_ + 1);
    std::string_view line;
    if (!reader_->next(line))
        throw BadData(texts_[file_].path + " changed while it was read",
                      "it ended before line " + std::to_string(line_ + 1),
                      "start again once the file is complete");
    ++line_;
    return line;
}

}  // namespace hetseq
