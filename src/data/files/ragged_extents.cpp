#include "hetseq/data/files/ragged_extents.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/files/first_failure.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t piece_rows = std::int64_t{1} << 16;  // read at a time
constexpr std::size_t most_open_shards = 16;
constexpr std::int64_t any_length = std::numeric_limits<std::int64_t>::max();

// Collects the extents of this rank's samples.
class ExtentsPass {
public:
    ExtentsPass(const ShardSet& shards, std::int64_t block_length, std::int64_t max_length)
        : shards_{shards},
          block_length_{block_length},
          max_length_{max_length > 0 ? max_length : any_length},
          units_{units_index(shards)} {
        for (const std::size_t field : shards.ragged_fields()) {
            const FieldSchema& schema = shards.schema().fields[field];
            position_values_.push_back(schema.sets_lengths ? schema.position_values : 0);
        }
        const auto blocks =
            static_cast<std::size_t>((shards.samples() + block_length - 1) / block_length);
        extents.borders.resize(shards.ragged_fields().size());
        for (auto& borders : extents.borders)
            borders.assign(blocks + 1, 0);
        extents.longest.assign(shards.ragged_fields().size(), 0);
        extents.squares.assign(shards.ragged_fields().size(), 0);
        extents.block_samples.assign(blocks, 0);
        extents.block_units.assign(blocks, 0);
        extents.first_too_long = std::numeric_limits<std::int64_t>::max();
        for (const std::size_t field : shards.ragged_fields()) {
            const std::int64_t most = shards.schema().fields[field].max_row_length;
            if (most > 0 && most < max_length_) {
                max_length_ = most;
                extents.is_models_limit = true;
            }
        }
        extents.max_length = max_length_ < any_length ? max_length_ : 0;
    }

    // Adds `rows` of a shard. Their offsets are good.
    void add(const ShardRows& rows, const RowOffsets& offsets) {
        const Shard& shard = shards_.shards()[rows.shard];
        std::int64_t row = rows.begin;
        while (row < rows.end) {
            const std::int64_t sample = shard.offset + row;
            const auto block = static_cast<std::size_t>(sample / block_length_);
            const std::int64_t left = block_length_ - sample % block_length_;
            const auto first = static_cast<std::size_t>(row - rows.begin);
            if (left == block_length_) {
                for (std::size_t k = 0; k < offsets.size(); ++k)
                    extents.borders[k][block] = shard.value_offsets[k] + offsets[k][first];
            }
            const std::int64_t end = std::min(row + left, rows.end);
            for (std::size_t i = first; i < static_cast<std::size_t>(end - rows.begin); ++i)
                add_sample(
                    shard.offset + rows.begin + static_cast<std::int64_t>(i), block, offsets, i);
            row = end;
        }
    }

    RaggedExtents extents;

private:
    static std::optional<std::size_t> units_index(const ShardSet& shards) {
        const auto field = find_field(shards.schema(), shards.schema().units_field);
        const auto& ragged = shards.ragged_fields();
        if (!field)
            return std::nullopt;
        return static_cast<std::size_t>(std::find(ragged.begin(), ragged.end(), *field) -
                                        ragged.begin());
    }

    void add_sample(std::int64_t sample,
                    std::size_t block,
                    const RowOffsets& offsets,
                    std::size_t row) {
        const auto length = [&](std::size_t k) {
            const std::int64_t of_position = position_values_[k];
            return of_position == 0 ? 0 : (offsets[k][row + 1] - offsets[k][row]) / of_position;
        };
        std::int64_t longest = 0;
        for (std::size_t k = 0; k < offsets.size(); ++k)
            longest = std::max(longest, length(k));
        if (longest > max_length_) {
            ++extents.too_long;
            extents.first_too_long = std::min(extents.first_too_long, sample);
            return;
        }
        for (std::size_t k = 0; k < offsets.size(); ++k) {
            extents.longest[k] = std::max(extents.longest[k], length(k));
            extents.squares[k] += length(k) * length(k);
        }
        ++extents.block_samples[block];
        extents.block_units[block] += units_ ? length(*units_) : 1;
    }

    const ShardSet& shards_;
    std::int64_t block_length_;
    std::int64_t max_length_;
    std::optional<std::size_t> units_;           // among the ragged fields
    std::vector<std::int64_t> position_values_;  // by ragged field; 0: its lengths do not count
};

// A shard has one place more than it has rows, since its last offset is checked too, also in a
// shard without rows.
std::int64_t place_of(const ShardSet& shards, std::size_t shard, std::int64_t row) {
    return shards.shards()[shard].offset + static_cast<std::int64_t>(shard) + row;
}

void read_shard_rows(const ShardSet& shards,
                     const ShardRows& rows,
                     ExtentsPass& pass,
                     std::optional<OrderedFailure>& failure) {
    std::int64_t begin = rows.begin;
    try {
        const OffsetsFile file{shards, rows.shard};
        do {
            const ShardRows piece{rows.shard, begin, std::min(begin + piece_rows, rows.end)};
            const RowOffsets offsets = file.read_any(piece.begin, piece.end);
            if (const auto bad = first_bad_row(shards, piece, offsets)) {
                begin = bad->row;
                throw bad->error;
            }
            pass.add(piece, offsets);
            begin = piece.end;
        } while (begin < rows.end);
    } catch (...) {
        const std::int64_t place = place_of(shards, rows.shard, begin);
        if (!failure || place < failure->place)
            failure = OrderedFailure{place, std::current_exception()};
    }
}

// Rank r reads the r-th part of the blocks and some of the shards without samples.
std::optional<OrderedFailure> read_part(const HostComm& world,
                                        const ShardSet& shards,
                                        std::int64_t block_length,
                                        ExtentsPass& pass) {
    const auto blocks = static_cast<std::int64_t>(pass.extents.block_samples.size());
    const auto border = [&](std::int64_t rank) {
        return std::min(blocks * rank / world.size() * block_length, shards.samples());
    };
    std::optional<OrderedFailure> failure;
    for (const ShardRows& rows : shards.rows(border(world.rank()), border(world.rank() + 1))) {
        if (!failure)
            read_shard_rows(shards, rows, pass, failure);
    }
    const auto ranks = static_cast<std::size_t>(world.size());
    for (auto i = static_cast<std::size_t>(world.rank()); i < shards.shards().size(); i += ranks) {
        if (shards.shards()[i].samples() == 0)
            read_shard_rows(shards, {i, 0, 0}, pass, failure);
    }
    return failure;
}

void reduce(const HostComm& world, RaggedExtents& extents) {
    for (auto& borders : extents.borders)
        world.all_reduce(borders, ReduceOp::sum);
    world.all_reduce(extents.longest, ReduceOp::max);
    world.all_reduce(extents.squares, ReduceOp::sum);
    world.all_reduce(extents.block_samples, ReduceOp::sum);
    world.all_reduce(extents.block_units, ReduceOp::sum);
    extents.too_long = world.all_reduce(extents.too_long, ReduceOp::sum);
    extents.first_too_long = world.all_reduce(extents.first_too_long, ReduceOp::min);
    if (extents.too_long == 0)
        extents.first_too_long = -1;
}

}  // namespace

RaggedExtents read_extents(const HostComm& world,
                           const ShardSet& shards,
                           std::int64_t block_length,
                           std::int64_t max_length) {
    HETSEQ_ASSERT(block_length >= 1);
    initialize_hdf5();
    ExtentsPass pass{shards, block_length, max_length};
    agree_on_first(world, read_part(world, shards, block_length, pass));
    reduce(world, pass.extents);
    for (std::size_t k = 0; k < shards.ragged_fields().size(); ++k)
        pass.extents.borders[k].back() = shards.values(shards.ragged_fields()[k]);
    return std::move(pass.extents);
}

std::string too_long_text(const ShardSet& shards, const RaggedExtents& extents) {
    return std::to_string(extents.too_long) + " of " + std::to_string(shards.samples()) +
           " samples are longer than " + std::to_string(extents.max_length) +
           (extents.is_models_limit ? ", the model's limit" : "");
}

BadData too_long_error(const ShardSet& shards,
                       const RaggedExtents& extents,
                       const std::string& what_to_do) {
    const ShardRows first = shards.rows(extents.first_too_long, extents.first_too_long + 1).front();
    return BadData(too_long_text(shards, extents),
                   "the first is row " + std::to_string(first.begin) + " of " +
                       shards.shards()[first.shard].path,
                   what_to_do);
}

void check_fits_model(const ShardSet& shards, const RaggedExtents& extents) {
    if (extents.too_long > 0)
        throw too_long_error(
            shards, extents, "prepare shorter sequences, or use a model that takes longer ones");
}

// Of all ragged fields.
LengthReader::LengthReader(const ShardSet& shards) : LengthReader(shards, shards.ragged_fields()) {}

LengthReader::LengthReader(const ShardSet& shards, std::vector<std::size_t> fields)
    : shards_{shards}, fields_{std::move(fields)} {}

const OffsetsFile& LengthReader::open(std::size_t shard) {
    const auto found = std::find_if(
        open_.begin(), open_.end(), [&](const OffsetsFile& file) { return file.shard() == shard; });
    if (found != open_.end()) {
        open_.splice(open_.begin(), open_, found);
        return open_.front();
    }
    if (open_.size() >= most_open_shards)
        open_.pop_back();
    return open_.emplace_front(shards_, shard);
}

std::size_t LengthReader::offsets_place(std::size_t field) const {
    const std::vector<std::size_t>& ragged = shards_.ragged_fields();
    return static_cast<std::size_t>(std::find(ragged.begin(), ragged.end(), field) -
                                    ragged.begin());
}

RowLengths LengthReader::read(std::int64_t begin, std::int64_t end) {
    RowLengths lengths(fields_.size());
    for (auto& of_field : lengths)
        of_field.reserve(static_cast<std::size_t>(end - begin));
    for (const ShardRows& rows : shards_.rows(begin, end)) {
        const Shard& shard = shards_.shards()[rows.shard];
        check_unchanged(shard.path, shard.stamp);
        const RowOffsets offsets = open(rows.shard).read(rows.begin, rows.end);
        for (std::size_t k = 0; k < fields_.size(); ++k) {
            const std::vector<std::int64_t>& own = offsets[offsets_place(fields_[k])];
            const std::int64_t of_position = shards_.schema().fields[fields_[k]].position_values;
            for (std::size_t i = 0; i + 1 < own.size(); ++i)
                lengths[k].push_back(
                    static_cast<std::int32_t>((own[i + 1] - own[i]) / of_position));
        }
    }
    return lengths;
}

}  // namespace hetseq
