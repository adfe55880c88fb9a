#include "line_batches.hpp"

#include <optional>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

#include "app/lines/byte_stream.hpp"

namespace hetseq {

std::string to_bytes(const LineBatch& batch) {
    ByteWriter writer;
    writer.put(batch.number);
    writer.put(static_cast<std::int64_t>(batch.rows.size()));
    for (const LineRow& row : batch.rows) {
        writer.put(row.ids);
        writer.put(row.marks);
    }
    return writer.take();
}

std::string to_bytes(const AnsweredBatch& batch) {
    ByteWriter writer;
    writer.put(batch.number);
    writer.put(static_cast<std::int64_t>(batch.answers.size()));
    for (const LineAnswer& answer : batch.answers) {
        writer.put(answer.labels);
        writer.put(answer.numbers);
    }
    return writer.take();
}

LineBatch line_batch_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    LineBatch batch;
    batch.number = reader.get<std::int64_t>();
    batch.rows.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
    for (LineRow& row : batch.rows) {
        row.ids = reader.get_vector<std::int32_t>();
        row.marks = reader.get_vector<std::int32_t>();
    }
    return batch;
}

AnsweredBatch answers_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    AnsweredBatch batch;
    batch.number = reader.get<std::int64_t>();
    batch.answers.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
    for (LineAnswer& answer : batch.answers) {
        answer.labels = reader.get_vector<std::int32_t>();
        answer.numbers = reader.get_vector<float>();
    }
    return batch;
}

void AnsweredLines::add(const std::string& line) {
    std::optional<LineRow> row;
    try {
        row = answering_.row_of(line);
    } catch (const BadData& error) {
        throw BadData("line " + std::to_string(lines() + 1) + ": " + error.what());
    }
    const std::int64_t number = begin_line();
    if (!row) {
        answer(number, "\n");
        return;
    }
    if (row->is_cut)
        note_cut(number);
    size_ += row->size;
    texts_[number] = line;
    const std::int64_t length = std::ssize(row->ids);
    enqueue(number, std::move(*row), length);
}

void AnsweredLines::put(const AnsweredBatch& batch) {
    const std::vector<std::int64_t> lines = lines_of(batch.number, batch.answers.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto text = texts_.extract(lines[i]);
        answer(lines[i], answering_.text_of(text.mapped(), batch.answers[i]) + '\n');
    }
}

std::string AnsweredLines::size_text() const {
    return count_text(size_, answering_.unit());
}

}  // namespace hetseq
