#include "hetseq/data/corpus.hpp"

#include <algorithm>
#include <exception>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/data/data_weights.hpp"

#include "corpus_impl.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

ShardSet open_shards(DataContext::Impl& context,
                     const std::string& spec,
                     const CorpusSchema& schema) {
    // This runs on the I/O thread, since that may be reading for another corpus. Nobody else uses
    // this communicator meanwhile, because this thread waits.
    return context.io.run([&] { return open_shard_set(context.world, spec, schema); });
}

std::int64_t block_length_of(const ShardSet& shards,
                             const LocatedData& located,
                             const CorpusOptions& options) {
    if (options.block_length > 0)
        return options.block_length;
    return located.block_length > 0 ? located.block_length : default_block_length(shards);
}

RaggedExtents extents_of(DataContext::Impl& context,
                         const ShardSet& shards,
                         std::int64_t block_length,
                         const CorpusOptions& options) {
    if (shards.ragged_fields().empty())
        return {};
    // This runs on the I/O thread for the same reason as `open_shards`.
    return context.io.run(
        [&] { return read_extents(context.world, shards, block_length, options.max_length); });
}

void check_options(const CorpusOptions& options) {
    if (options.shuffle_blocks < 1)
        throw BadConfig("--shuffle-blocks " + std::to_string(options.shuffle_blocks),
                        "at least one block is read at a time",
                        "give 1 or more");
    if (options.block_length < 0)
        throw BadConfig("--block-length " + std::to_string(options.block_length),
                        "a block holds samples",
                        "give 1 or more, or 0 to have it chosen");
    HETSEQ_ASSERT(options.max_length >= 0);
}

// The weights fit the names or not on all ranks alike.
GlobalOrder::Geometry geometry_of(const DataContext::Impl& context,
                                  const ShardSet& shards,
                                  const BlockLayout& layout,
                                  const CorpusOptions& options) {
    return {.samples = shards.samples(),
            .block_length = layout.block_length,
            .shuffle_blocks = options.shuffle_blocks,
            .sets = agree_on(context.world, [&] {
                return weighted_sets(shards, options.data_weights, layout.block_length);
            })};
}

// The number of slots in the cache of this host: as many as fit, but no more than there are blocks.
std::int64_t slots_for(const GlobalOrder::Geometry& geometry,
                       const BlockLayout& layout,
                       const CorpusOptions& options) {
    const bool is_ragged = std::any_of(layout.fields.begin(),
                                       layout.fields.end(),
                                       [](const FieldLayout& field) { return field.is_ragged; });
    // A batch of samples of unequal length may take some that the group before it left over.
    const std::int64_t groups = is_ragged ? 2 : 1;
    const auto slot_bytes = static_cast<std::int64_t>(layout.slot_bytes);
    const std::int64_t fit = options.cache_mb * mib / std::max<std::int64_t>(slot_bytes, 1);
    const std::int64_t needed = std::min(groups * geometry.shuffle_blocks, geometry.blocks());
    if (fit < needed)
        throw BadConfig("--cache-mb " + std::to_string(options.cache_mb) + " is too little",
                        std::to_string(needed) + " blocks of " +
                            std::to_string(layout.block_length) + " samples are " +
                            (is_ragged ? "held" : "mixed") + " at once and need " +
                            std::to_string((needed * slot_bytes + mib - 1) / mib) + " MiB",
                        "raise --cache-mb to that or lower --shuffle-blocks");
    return std::min(fit, geometry.blocks());
}

constexpr std::size_t kept_windows = 4;  // the lengths of as many are kept

std::size_t blocks_mixed(const GlobalOrder::Geometry& geometry) {
    return static_cast<std::size_t>(std::min(geometry.shuffle_blocks, geometry.blocks()));
}

// The ragged fields that do not set lengths.
std::vector<std::size_t> other_ragged_fields(const CorpusSchema& schema) {
    std::vector<std::size_t> others = ragged_fields(schema);
    std::erase_if(others, [&](std::size_t field) { return schema.fields[field].sets_lengths; });
    return others;
}

// A sample that is too long would not fit all ranks.
void check_lengths(const ShardSet& shards,
                   const RaggedExtents& extents,
                   const CorpusOptions& options) {
    if (extents.too_long == 0)
        return;
    const bool some_are_used = shards.samples() > extents.too_long;
    if (options.skip_too_long && some_are_used) {
        log::warn(too_long_text(shards, extents) + (extents.is_models_limit ? "," : "") +
                  " and are left out (--skip-too-long)");
        return;
    }
    const std::string cure = extents.is_models_limit
                                 ? "use a model that takes longer ones, prepare shorter ones"
                                 : "raise --max-tokens (and --max-length where it is given)";
    throw too_long_error(
        shards, extents, some_are_used ? cure + ", or leave them out: --skip-too-long" : cure);
}

// Collective. The ranks of a host share one cache, so they must mean the same size.
std::int64_t agree_on_slots(const DataContext::Impl& context,
                            const GlobalOrder::Geometry& geometry,
                            const BlockLayout& layout,
                            const CorpusOptions& options) {
    const std::int64_t smallest = context.node.all_reduce(options.cache_mb, ReduceOp::min);
    return agree_on(context.world, [&] {
        if (smallest != options.cache_mb)
            throw BadConfig("--cache-mb differs among the ranks of a host",
                            std::to_string(options.cache_mb) + " here, " +
                                std::to_string(smallest) + " on another",
                            "give all ranks of a host the same");
        return slots_for(geometry, layout, options);
    });
}

}  // namespace

Corpus::Impl::Impl(DataContext::Impl& owner,
                   const std::string& name,
                   const CorpusSchema& schema,
                   const CorpusOptions& options)
    : context{owner},
      meeting{owner.meeting},
      located{locate(owner.world, name, schema)},
      shards{open_shards(owner, located.files, schema)},
      extents{extents_of(owner, shards, block_length_of(shards, located, options), options)},
      layout{make_block_layout(shards, block_length_of(shards, located, options), &extents)},
      data_weights{options.data_weights},
      geometry{geometry_of(owner, shards, layout, options)},
      schedule{agree_on_slots(owner, geometry, layout, options)},
      cache{owner.node, schedule.slots(), layout.slot_bytes},
      reader{shards,
             layout,
             owner.io_node,
             options.io,
             cache.shared() ? ReadShare::part : ReadShare::whole},
      max_length{extents.max_length} {
    if (shards.ragged_fields().empty())
        return;
    agree_on(context.world, [&] { check_lengths(shards, extents, options); });
    lengths = lengths_of(length_fields(shards.schema()));
    other_lengths = lengths_of(other_ragged_fields(shards.schema()));
}

std::unique_ptr<BlockLengths> Corpus::Impl::lengths_of(const std::vector<std::size_t>& fields) {
    if (fields.empty())
        return nullptr;
    return std::make_unique<BlockLengths>(
        shards, fields, context.io, layout.block_length, kept_windows * blocks_mixed(geometry));
}

void Corpus::Impl::enqueue(const std::vector<BlockLoad>& loads) {
    for (const BlockLoad& next : loads)
        context.io.post([self = shared_from_this(), next] { self->load(next); });
}

void Corpus::Impl::load(const BlockLoad& load) {
    std::exception_ptr error;
    try {
        cache.wait_for_release(load, meeting->abandoned());
        if (!meeting->all_go_on())
            return;
        reader.read(load.block, cache.slot(load.slot));
        ++blocks_read;
    } catch (...) {
        error = std::current_exception();
    }
    cache.publish(load, error);
}

Corpus::Corpus(DataContext& context,
               const std::string& spec,
               const CorpusSchema& schema,
               const CorpusOptions& options)
    : exceptions_at_start_{std::uncaught_exceptions()} {
    check_options(options);
    impl_ = std::make_shared<Impl>(context.impl(), spec, schema, options);
}

Corpus::~Corpus() {
    if (std::uncaught_exceptions() > exceptions_at_start_) {
        // Closing files and freeing shared memory would wait for ranks that may never come: the
        // process is about to end, so what the I/O thread uses stays.
        new std::shared_ptr<Impl>(std::move(impl_));
        return;
    }
    impl_->context.io.run([this] {
        impl_->reader.close();
        for (const auto* lengths : {&impl_->lengths, &impl_->other_lengths})
            if (*lengths)
                (*lengths)->close();
    });
}

std::int64_t Corpus::samples() const noexcept {
    return impl_->shards.samples();
}

std::int64_t Corpus::block_length() const noexcept {
    return impl_->layout.block_length;
}

GlobalOrder::Geometry Corpus::geometry() const noexcept {
    return impl_->geometry;
}

std::string Corpus::weights_report(std::span<const std::string> names) const {
    return data_weights_report(
        impl_->shards, impl_->data_weights, names, counts_units() ? "tokens" : "");
}

std::map<std::string, std::vector<std::int64_t>> Corpus::row_shapes() const {
    std::map<std::string, std::vector<std::int64_t>> shapes;
    const auto& fields = impl_->shards.schema().fields;
    for (std::size_t i = 0; i < fields.size(); ++i)
        shapes[fields[i].name] =
            fields[i].is_ragged ? std::vector<std::int64_t>{-1} : impl_->shards.row_shape(i);
    return shapes;
}

std::size_t Corpus::ragged_fields() const noexcept {
    return impl_->shards.ragged_fields().size();
}

bool Corpus::is_ragged() const {
    return !length_fields(impl_->shards.schema()).empty();
}

bool Corpus::counts_units() const noexcept {
    return !impl_->shards.schema().units_field.empty();
}

const RaggedExtents& Corpus::extents() const noexcept {
    return impl_->extents;
}

CorpusIdentity Corpus::identity(const CorpusIdentity* before) const {
    // This runs on the I/O thread for the same reason as `open_shards`.
    return impl_->context.io.run([&] {
        CorpusIdentity identity = identify_corpus(impl_->context.world, impl_->shards, before);
        const auto& of_data = impl_->located.identity;
        identity.datasets.insert(identity.datasets.end(), of_data.begin(), of_data.end());
        return identity;
    });
}

std::int64_t Corpus::blocks_read() const noexcept {
    return impl_->blocks_read;
}

std::int64_t Corpus::cache_bytes() const noexcept {
    return impl_->schedule.slots() * static_cast<std::int64_t>(impl_->layout.slot_bytes);
}

}  // namespace hetseq
