#include "predicted_batch.hpp"

#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "app/lines/byte_stream.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_bytes = std::numeric_limits<std::int32_t>::max();

void put(ByteWriter& writer, const at::Tensor& tensor) {
    writer.put(static_cast<std::int8_t>(tensor.defined()));
    if (!tensor.defined())
        return;
    const at::Tensor values = tensor.contiguous();
    writer.put(static_cast<std::int8_t>(values.scalar_type()));
    writer.put(values.sizes().vec());
    writer.put_bytes(values.const_data_ptr(), values.nbytes());
}

at::Tensor get(ByteReader& reader) {
    if (reader.get<std::int8_t>() == 0)
        return {};
    const auto type = static_cast<at::ScalarType>(reader.get<std::int8_t>());
    const at::Tensor values = at::empty(reader.get_vector<std::int64_t>(), type);
    reader.take_bytes(values.mutable_data_ptr(), values.nbytes());
    return values;
}

void check_size(const PredictedBatch& batch) {
    std::size_t bytes = 4096;
    for (const Prediction& prediction : batch.predictions)
        bytes += prediction.values.defined() ? prediction.values.nbytes() : 0;
    if (bytes > most_bytes)
        throw BadConfig("the predictions for a batch of " + std::to_string(batch.samples) +
                            " samples are too large",
                        "they take " + std::to_string(bytes >> 20) +
                            " MiB, and a message between ranks holds 2048",
                        "lower --batch-size");
}

}  // namespace

std::string to_bytes(const PredictedBatch& batch) {
    check_size(batch);
    ByteWriter writer;
    writer.put(batch.begin);
    writer.put(batch.samples);
    writer.put(batch.seconds);
    writer.put(batch.ends_block);
    writer.put(static_cast<std::int64_t>(batch.predictions.size()));
    for (const Prediction& prediction : batch.predictions) {
        writer.put(prediction.name);
        put(writer, prediction.values);
        put(writer, prediction.row_lengths);
    }
    return writer.take();
}

PredictedBatch predicted_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    PredictedBatch batch;
    batch.begin = reader.get<std::int64_t>();
    batch.samples = reader.get<std::int64_t>();
    batch.seconds = reader.get<double>();
    batch.ends_block = reader.get<bool>();
    batch.predictions.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
    for (Prediction& prediction : batch.predictions) {
        prediction.name = reader.get_text();
        prediction.values = get(reader);
        prediction.row_lengths = get(reader);
    }
    return batch;
}

}  // namespace hetseq
