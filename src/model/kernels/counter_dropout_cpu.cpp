#include <algorithm>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "counter_dropout.hpp"
#include "dropout_loops.hpp"

namespace hetseq::detail {

namespace {

/// The same for all samples: of each block of each matrix, in the order of memory.
std::vector<PhiloxKey> block_keys(PhiloxKey key, const DropoutMatrices& places) {
    std::vector<PhiloxKey> keys;
    keys.reserve(std::size_t{places.matrices} * places.row_blocks());
    for (std::uint32_t matrix = 0; matrix < places.matrices; ++matrix)
        for (std::uint32_t block = 0; block < places.row_blocks(); ++block)
            keys.push_back(places.key_of(key, matrix, block));
    return keys;
}

}  // namespace

void counter_dropout_cpu(const at::Tensor& x,
                         const at::Tensor& out,
                         const DropoutMask& mask,
                         const DropoutLayout& layout,
                         const at::Tensor& sample_ids) {
    constexpr std::int64_t chunk = DropoutMask::chunk;
    if (x.numel() == 0)
        return;
    const std::int64_t chunks = layout.row_chunks();
    const std::int64_t rows = sample_ids.numel() * layout.rows;  // of all samples
    const auto* ids = sample_ids.const_data_ptr<std::int64_t>();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "counter_dropout", [&] {
        const auto* from = x.const_data_ptr<scalar_t>();
        auto* to = out.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, rows * chunks, 64, [&](std::int64_t begin, std::int64_t end) {
            while (begin < end) {
                const std::int64_t row = begin / chunks;
                const std::int64_t first = begin % chunks;
                const std::int64_t last = std::min(chunks, first + end - begin);
                const std::int64_t offset = row * layout.columns + first * chunk;
                const DropoutPiece piece{
                    static_cast<std::uint64_t>(ids[row / layout.rows]),
                    layout.first_chunk(row % layout.rows) + static_cast<std::uint32_t>(first),
                    std::min(layout.columns, last * chunk) - first * chunk};
                drop(mask, piece, from + offset, to + offset);
                begin += last - first;
            }
        });
    });
}

void matrix_dropout_cpu(const at::Tensor& x,
                        const at::Tensor& out,
                        const DropoutMask& mask,
                        const DropoutMatrices& places,
                        const at::Tensor& sample_ids) {
    if (x.numel() == 0)
        return;
    const std::vector<PhiloxKey> keys = block_keys(mask.key, places);
    const auto blocks = static_cast<std::int64_t>(keys.size());  // of a sample
    const std::int64_t columns = places.columns;
    const std::int64_t sample_size = x.numel() / sample_ids.numel();
    const auto* ids = sample_ids.const_data_ptr<std::int64_t>();
    const std::int64_t grain = 8192 / (DropoutMatrices::block_rows * columns) + 1;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "matrix_dropout", [&] {
        const auto* from = x.const_data_ptr<scalar_t>();
        auto* to = out.mutable_data_ptr<scalar_t>();
        const std::int64_t all = sample_ids.numel() * blocks;
        at::parallel_for(0, all, grain, [&](std::int64_t begin, std::int64_t end) {
            while (begin < end) {
                const std::int64_t sample = begin / blocks, first = begin % blocks;
                const std::int64_t count = std::min(blocks - first, end - begin);
                const std::int64_t offset =
                    sample * sample_size + places.rows_before(first) * columns;
                drop_blocks(mask,
                            {static_cast<std::uint64_t>(ids[sample]),
                             keys.data() + first,
                             count,
                             first % places.row_blocks(),
                             places.rows,
                             columns},
                            from + offset,
                            to + offset);
                begin += count;
            }
        });
    });
}

void token_dropout_cpu(const at::Tensor& x,
                       const at::Tensor& out,
                       const DropoutMask& mask,
                       const at::Tensor& sample_ids,
                       const at::Tensor& positions) {
    constexpr std::int64_t chunk = DropoutMask::chunk;
    if (x.numel() == 0)
        return;
    const std::int64_t columns = x.size(1);
    const auto* ids = sample_ids.const_data_ptr<std::int64_t>();
    const auto* places = positions.const_data_ptr<std::int64_t>();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "token_dropout", [&] {
        const auto* from = x.const_data_ptr<scalar_t>();
        auto* to = out.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, x.size(0), 32, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
                const std::int64_t first = places[row] * columns;
                const DropoutPiece piece{static_cast<std::uint64_t>(ids[row]),
                                         static_cast<std::uint32_t>(first / chunk),
                                         columns,
                                         first % chunk};
                drop(mask, piece, from + row * columns, to + row * columns);
            }
        });
    });
}

}  // namespace hetseq::detail
