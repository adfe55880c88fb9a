#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "hetseq/data/schema.hpp"

#include "data/generated_corpus.hpp"

/// Corpora of ragged rows whose every length and value is a formula of the sample's number.
namespace hetseq::test {

// Pairs of sentences with a mark for each token of the second, places in the first, and labels.
constexpr std::int64_t longest_row = 500;  // of the source

/// 0 for some samples, 1 for others, once 500, up to 22 otherwise.
inline std::int64_t source_length(std::int64_t sample) {
    return sample == 37 ? longest_row : sample % 11 == 0 ? 0 : sample % 7 == 0 ? 1 : sample % 23;
}
inline std::int64_t target_length(std::int64_t sample) {
    return (sample * 5 + 3) % 17;
}
/// None where the source is empty, since they lie in it.
inline std::int64_t place_length(std::int64_t sample) {
    return source_length(sample) == 0 ? 0 : sample % 4;
}

inline std::int64_t source_value(std::int64_t sample, std::int64_t column) {
    return (sample * 13 + column * 7) % 1000;
}
inline std::int64_t target_value(std::int64_t sample, std::int64_t column) {
    return (sample * 17 + column * 3) % 900;
}
inline std::int64_t mark_value(std::int64_t sample, std::int64_t column) {
    return (sample + column) % 2;
}
inline std::int64_t place_value(std::int64_t sample, std::int64_t column) {
    return (sample + column) % std::max<std::int64_t>(source_length(sample), 1);
}
inline std::int64_t label_value(std::int64_t sample) {
    return sample % 5;
}

inline CorpusSchema ragged_schema() {
    return {.kind = "pairs",
            .fields = {{.name = "source",
                        .type = ElementType::int32,
                        .is_ragged = true,
                        .max_row_length = longest_row,
                        .minimum = 0,
                        .maximum = 999,
                        .meaning = "ids of the vocabulary"},
                       {.name = "labels", .type = ElementType::int64, .minimum = 0, .maximum = 4},
                       {.name = "target",
                        .type = ElementType::int32,
                        .is_ragged = true,
                        .minimum = 0,
                        .maximum = 899},
                       {.name = "marks",
                        .type = ElementType::int8,
                        .is_ragged = true,
                        .same_row_shape_as = "target",
                        .minimum = 0,
                        .maximum = 1},
                       {.name = "places",
                        .type = ElementType::uint8,
                        .is_ragged = true,
                        .minimum = 0,
                        .below_row_length_of = "source",
                        .meaning = "places in the source"}},
            .units_field = "target"};
}

/// A number in (0, 1) that only `key` decides.
inline double fraction(std::uint64_t key) {
    key = (key + 1) * 0x9E3779B97F4A7C15U;
    key = (key ^ (key >> 30U)) * 0xBF58476D1CE4E5B9U;
    key = (key ^ (key >> 27U)) * 0x94D049BB133111EBU;
    return (static_cast<double>((key ^ (key >> 31U)) >> 11U) + 0.5) / 9007199254740992.0;
}

/// A length that only `sample` decides: at least 1, at most `longest`, its logarithm normal with
/// standard deviation `spread`.
inline std::int64_t lognormal_length(std::int64_t sample,
                                     double median,
                                     double spread,
                                     std::int64_t longest) {
    const auto key = static_cast<std::uint64_t>(sample);
    const double z = std::sqrt(-2 * std::log(fraction(2 * key))) *
                     std::cos(2 * std::numbers::pi * fraction(2 * key + 1));
    return std::clamp<std::int64_t>(std::llround(median * std::exp(spread * z)), 1, longest);
}

/// A ragged field to write: `length(row)` and `value(row, column)` of a shard.
struct RaggedToWrite {
    std::string name;
    hid_t type = H5T_NATIVE_INT32;
    std::function<std::int64_t(std::int64_t row)> length;
    ValueFormula value;
};

/// The datasets of a ragged field, `chunk` values (0: contiguous) and as many offsets in a chunk.
inline std::vector<FilledDataset> ragged_datasets(const RaggedToWrite& field,
                                                  std::int64_t rows,
                                                  hsize_t chunk) {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int64_t> values;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < field.length(row); ++column)
            values.push_back(field.value(row, column));
        offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
    const auto chunks = [&](std::size_t count) {
        return chunk > 0 && count > 0 ? std::vector<hsize_t>{chunk} : std::vector<hsize_t>{};
    };
    return {{{field.name, field.type, {values.size()}, chunks(values.size())},
             [values](auto i, auto) { return values[static_cast<std::size_t>(i)]; }},
            {{offsets_name(field.name), H5T_STD_I64LE, {offsets.size()}, chunks(offsets.size())},
             [offsets](auto i, auto) { return offsets[static_cast<std::size_t>(i)]; }}};
}

/// Samples [first, first + samples) of the formulas, in `ragged_schema`'s order with each field's
/// offsets behind its values.
inline std::vector<FilledDataset> ragged_corpus_datasets(std::int64_t first,
                                                         std::int64_t samples,
                                                         Storage storage) {
    const auto shifted = [first](const ValueFormula& value) {
        return [=](std::int64_t row, std::int64_t column) { return value(first + row, column); };
    };
    const auto length = [first](std::int64_t (*of)(std::int64_t)) {
        return [=](std::int64_t row) { return of(first + row); };
    };
    const RaggedToWrite fields[] = {
        {"source", H5T_STD_I32LE, length(source_length), shifted(source_value)},
        {"target", H5T_STD_I64BE, length(target_length), shifted(target_value)},
        {"marks", H5T_STD_I8LE, length(target_length), shifted(mark_value)},
        {"places", H5T_STD_U8LE, length(place_length), shifted(place_value)}};
    std::vector<FilledDataset> datasets;
    hsize_t chunk = 5;
    for (const RaggedToWrite& field : fields) {
        for (FilledDataset& filled :
             ragged_datasets(field, samples, storage == Storage::gzip ? chunk : 0))
            datasets.push_back(std::move(filled));
        chunk += 8;  // unlike over the datasets
    }
    datasets.push_back({{"labels", H5T_STD_I8LE, {hsize_t(samples)}, {}},
                        [=](auto row, auto) { return label_value(first + row); }});
    return datasets;
}

/// Collective: rank 0 writes shards of these sizes, consecutive samples, and returns how many.
inline std::int64_t write_ragged_corpus(const HostComm& world,
                                        const SharedFolder& folder,
                                        const std::vector<std::int64_t>& sizes,
                                        Storage storage = Storage::gzip) {
    agree_on(world, [&] {
        std::int64_t first = 0;
        for (std::size_t i = 0; i < sizes.size() && world.rank() == 0; ++i) {
            write_datasets(folder / shard_name(i),
                           ragged_corpus_datasets(first, sizes[i], storage));
            first += sizes[i];
        }
    });
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

/// Sum over samples [begin, end) of a formula.
inline std::int64_t sum_over(std::int64_t begin,
                             std::int64_t end,
                             const std::function<std::int64_t(std::int64_t sample)>& formula) {
    std::int64_t sum = 0;
    for (std::int64_t sample = begin; sample < end; ++sample)
        sum += formula(sample);
    return sum;
}

}  // namespace hetseq::test
