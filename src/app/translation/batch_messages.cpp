#include "batch_messages.hpp"

#include "app/lines/byte_stream.hpp"

namespace hetseq {

std::string to_bytes(const TranslationBatch& batch) {
    ByteWriter writer;
    writer.put(batch.number);
    writer.put(static_cast<std::int64_t>(batch.sources.size()));
    for (const std::vector<std::int32_t>& source : batch.sources)
        writer.put(source);
    return writer.take();
}

std::string to_bytes(const TranslatedBatch& batch) {
    ByteWriter writer;
    writer.put(batch.number);
    writer.put(static_cast<std::int64_t>(batch.translations.size()));
    for (const std::vector<Hypothesis>& hypotheses : batch.translations) {
        writer.put(static_cast<std::int64_t>(hypotheses.size()));
        for (const Hypothesis& hypothesis : hypotheses) {
            writer.put(hypothesis.tokens);
            writer.put(hypothesis.log_probability);
            writer.put(hypothesis.score);
        }
    }
    return writer.take();
}

TranslationBatch batch_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    TranslationBatch batch;
    batch.number = reader.get<std::int64_t>();
    batch.sources.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
    for (std::vector<std::int32_t>& source : batch.sources)
        source = reader.get_vector<std::int32_t>();
    return batch;
}

TranslatedBatch translated_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    TranslatedBatch batch;
    batch.number = reader.get<std::int64_t>();
    batch.translations.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
    for (std::vector<Hypothesis>& hypotheses : batch.translations) {
        hypotheses.resize(static_cast<std::size_t>(reader.get<std::int64_t>()));
        for (Hypothesis& hypothesis : hypotheses) {
            hypothesis.tokens = reader.get_vector<std::int32_t>();
            hypothesis.log_probability = reader.get<double>();
            hypothesis.score = reader.get<double>();
        }
    }
    return batch;
}

}  // namespace hetseq
