#include "hetseq/data/loading/batch_reader.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/files/first_shard.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"
#include "hetseq/data/row_lengths.hpp"

#include "data/blocks/row_copy.hpp"

namespace hetseq {

namespace {

// Enough that a rank of a tenth of the others' speed does not keep them waiting at the end.
constexpr std::int64_t blocks_of_rank = 32;

/// About as many batches as the files are best read in.
std::int64_t samples_of_block(const ShardSet& shards, std::int64_t batch_samples, int ranks) {
    const std::int64_t most = shards.samples() / (batch_samples * ranks * blocks_of_rank);
    const std::int64_t best = default_block_length(shards) / batch_samples;
    return batch_samples * std::max<std::int64_t>(std::min(best, most), 1);
}

BlockLayout layout_of(const HostComm& world, const ShardSet& shards, std::int64_t block_length) {
    const RaggedExtents extents = shards.ragged_fields().empty()
                                      ? RaggedExtents{}
                                      : read_extents(world, shards, block_length, 0);
    check_fits_model(shards, extents);
    return make_block_layout(shards, block_length, &extents);
}

// Opening and reading tell what is wrong with a file, and with its name.
std::vector<std::string> missing_datasets(const std::string& path,
                                          const std::vector<std::string>& names) {
    const Hdf5File file = try_open_hdf5(path);
    std::vector<std::string> missing;
    for (const std::string& name : names)
        if (file && H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) == 0)
            missing.push_back(name);
    return missing;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CorpusSchema without_missing_targets(const HostComm& world,
                                     const std::string& spec,
                                     CorpusSchema schema) {
    std::vector<std::string> targets;
    for (const FieldSchema& field : schema.fields)
        if (field.is_target)
            targets.push_back(field.name);
    if (targets.empty())
        return schema;
    const std::string on_first = agree_on(world, [&] {
        return world.rank() == 0 ? join(missing_datasets(first_shard(spec), targets), "\n")
                                 : std::string();
    });
    const std::vector<std::string> missing = split(world.broadcast(on_first, 0), '\n');
    std::erase_if(schema.fields,
                  [&](const FieldSchema& field) { return contains(missing, field.name); });
    for (FieldSchema& field : schema.fields)
        for (std::string* other : {&field.same_row_shape_as, &field.below_row_length_of})
            if (contains(missing, *other))
                other->clear();
    if (contains(missing, schema.units_field))
        schema.units_field.clear();
    return schema;
}

BatchReader::BatchReader(const HostComm& world,
                         const std::string& spec,
                         const CorpusSchema& schema,
                         std::int64_t batch_samples)
    : shards_{open_shard_set(world, spec, schema)},
      batch_samples_{batch_samples},
      layout_{layout_of(world, shards_, samples_of_block(shards_, batch_samples, world.size()))},
      reader_{shards_,
              layout_,
              std::make_shared<HostComm>(HostComm::serial()),
              IoMode::serial,
              ReadShare::whole},
      slot_(layout_.slot_bytes) {}

std::int64_t BatchReader::blocks() const noexcept {
    return (samples() + layout_.block_length - 1) / layout_.block_length;
}

std::vector<MicroBatch> BatchReader::read(std::int64_t block, const Collator& collator) {
    reader_.read(block, slot_);
    const std::int64_t first = block * layout_.block_length;
    const std::int64_t last = std::min(first + layout_.block_length, samples());
    std::vector<MicroBatch> batches;
    for (std::int64_t begin = first; begin < last; begin += batch_samples_)
        batches.push_back(
            make_batch(block, begin, std::min(begin + batch_samples_, last), collator));
    return batches;
}

// Of samples [begin, end) in `block`, which lies in the slot.
MicroBatch BatchReader::make_batch(std::int64_t block,
                                   std::int64_t begin,
                                   std::int64_t end,
                                   const Collator& collator) const {
    RowLengths lengths;
    for (const std::size_t field : shards_.ragged_fields()) {
        const auto* begins =
            reinterpret_cast<const std::int64_t*>(slot_.data() + layout_.fields[field].row_offsets);
        std::vector<std::int32_t>& own = lengths.emplace_back();
        for (std::int64_t sample = begin; sample < end; ++sample) {
            const std::int64_t row = sample - block * layout_.block_length;
            own.push_back(static_cast<std::int32_t>(begins[row + 1] - begins[row]));
        }
    }
    LoadedShare::Rows rows = make_rows(shards_, end - begin, lengths);
    std::vector<PlacedSample> samples;
    for (std::int64_t sample = begin; sample < end; ++sample)
        samples.push_back({sample, sample - begin});
    copy_rows(shards_, layout_, samples, {{block, slot_.data()}}, rows);
    MicroBatch batch = collated(collator, rows.fields, rows.sample_ids, {.predicts = true});
    batch.sample_ids = rows.sample_ids;
    batch.samples = batch.units = end - begin;
    return batch;
}

}  // namespace hetseq
