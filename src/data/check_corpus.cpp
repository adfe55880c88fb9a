#include "hetseq/data/check_corpus.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/files/content_check.hpp"
#include "hetseq/data/files/first_failure.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

namespace {

std::string stored_types(const ShardSet& shards, std::size_t field) {
    std::set<std::string> types;
    for (const Shard& shard : shards.shards())
        types.insert(shard.header.datasets[field].type.name());
    std::string text;
    for (const std::string& type : types)
        text += (text.empty() ? "" : ", ") + type;
    return text;
}

CorpusReport describe(const ShardSet& shards, const RaggedExtents& extents) {
    CorpusReport report;
    report.samples = shards.samples();
    for (const Shard& shard : shards.shards())
        report.shards.push_back({shard.path, shard.samples()});
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i)
        report.fields.push_back(
            {shards.schema().fields[i].name, stored_types(shards, i), shards.row_shape(i)});
    for (std::size_t k = 0; k < shards.ragged_fields().size(); ++k) {
        const std::size_t field = shards.ragged_fields()[k];
        report.fields[field].is_ragged = true;
        report.fields[field].row_shape = {-1};
        report.fields[field].values = shards.values(field);
        report.fields[field].longest = extents.longest[k];
    }
    return report;
}

using Summaries = std::vector<ValueSummary>;  // by field

void add_block(const BlockLayout& layout,
               std::span<const std::byte> slot,
               std::int64_t block,
               std::int64_t rows,
               Summaries& summaries) {
    for (std::size_t i = 0; i < layout.fields.size(); ++i) {
        const FieldLayout& field = layout.fields[i];
        const std::int64_t count = field.is_ragged ? field.values(block) : rows;
        const std::size_t bytes = field.row_bytes * static_cast<std::size_t>(count);
        add_values(summaries[i], slot.subspan(field.offset, bytes), field.type);
    }
}

// Reads blocks rank, rank + ranks, ... on this rank alone.
std::optional<OrderedFailure> read_blocks(const HostComm& world,
                                          const ShardSet& shards,
                                          const BlockLayout& layout,
                                          Summaries& summaries) {
    BlockReader reader{shards,
                       layout,
                       std::make_shared<HostComm>(HostComm::serial()),
                       IoMode::serial,
                       ReadShare::whole};
    std::vector<std::byte> slot(layout.slot_bytes);
    const std::int64_t length = layout.block_length;
    for (std::int64_t block = world.rank(); block * length < shards.samples();
         block += world.size()) {
        try {
            reader.read(block, slot);
        } catch (...) {
            return OrderedFailure{block, std::current_exception()};
        }
        const std::int64_t rows = std::min(length, shards.samples() - block * length);
        add_block(layout, slot, block, rows, summaries);
    }
    return std::nullopt;
}

template <class T>
void reduce(const HostComm& world, const SumAndBounds<T>& own, CorpusReport::Field& field) {
    const T minimum = world.all_reduce(own.minimum, ReduceOp::min);
    const T maximum = world.all_reduce(own.maximum, ReduceOp::max);
    field.sum = world.all_reduce(own.sum, ReduceOp::sum);
    field.minimum = minimum > maximum ? 0 : minimum;
    field.maximum = minimum > maximum ? 0 : maximum;
}

}  // namespace

CorpusReport check_corpus(const HostComm& world,
                          const std::string& spec,
                          const CorpusSchema& schema) {
    const ShardSet shards = open_shard_set(world, locate(world, spec, schema).files, schema);
    const std::int64_t length = default_block_length(shards);
    const RaggedExtents extents =
        shards.ragged_fields().empty() ? RaggedExtents{} : read_extents(world, shards, length, 0);
    check_fits_model(shards, extents);
    const BlockLayout layout = make_block_layout(shards, length, &extents);
    CorpusReport report = describe(shards, extents);
    Summaries summaries;
    for (const FieldSchema& field : schema.fields)
        summaries.push_back(empty_summary(field.type));
    agree_on_first(world, read_blocks(world, shards, layout, summaries));
    for (std::size_t i = 0; i < summaries.size(); ++i)
        std::visit([&](const auto& own) { reduce(world, own, report.fields[i]); }, summaries[i]);
    return report;
}

}  // namespace hetseq
