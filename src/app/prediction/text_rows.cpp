#include "text_rows.hpp"

#include <ATen/ATen.h>

#include "hetseq/data/schema.hpp"

#include "app/lines/byte_stream.hpp"

namespace hetseq {

std::string to_bytes(const TextBatch& batch) {
    ByteWriter writer;
    writer.put(batch.number);
    writer.put(static_cast<std::int64_t>(batch.rows.size()));
    for (const TextRow& row : batch.rows) {
        writer.put(row.ids);
        writer.put(row.marks);
    }
    return writer.take();
}

std::string to_bytes(const AnsweredBatch& batch) {
    ByteWriter writer;
    writer.put(batch.number);
    writer.put(static_cast<std::int64_t>(batch.answers.size()));
    for (const TextAnswer& answer : batch.answers) {
        writer.put(answer.labels);
        writer.put(answer.numbers);
    }
    return writer.take();
}

TextBatch text_batch_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    TextBatch batch;
    batch.number = reader.get<std::int64_t>();
    batch.rows.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
    for (TextRow& row : batch.rows) {
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
    for (TextAnswer& answer : batch.answers) {
        answer.labels = reader.get_vector<std::int32_t>();
        answer.numbers = reader.get_vector<float>();
    }
    return batch;
}

void put_ragged_field(TensorDict& fields,
                      const std::string& name,
                      const TextBatch& batch,
                      std::vector<std::int32_t> TextRow::*values) {
    std::vector<std::int32_t> all;
    std::vector<std::int64_t> offsets{0};
    for (const TextRow& row : batch.rows) {
        all.insert(all.end(), (row.*values).begin(), (row.*values).end());
        offsets.push_back(static_cast<std::int64_t>(all.size()));
    }
    fields[name] = at::tensor(all, at::kInt);
    fields[offsets_name(name)] = at::tensor(offsets, at::kLong);
}

}  // namespace hetseq
