#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "counter_dropout.hpp"
#include "dropout_loops.hpp"

namespace hetseq::detail {

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
    constexpr std::int64_t block_rows = DropoutMatrices::block_rows;
    const std::int64_t blocks = places.row_blocks();
    const std::int64_t columns = places.columns;
    const auto* ids = sample_ids.const_data_ptr<std::int64_t>();
    const std::int64_t grain = 8192 / (block_rows * columns) + 1;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "matrix_dropout", [&] {
        const auto* from = x.const_data_ptr<scalar_t>();
        auto* to = out.mutable_data_ptr<scalar_t>();
        const std::int64_t all = sample_ids.numel() * places.matrices * blocks;
        at::parallel_for(0, all, grain, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const auto block = static_cast<std::uint32_t>(i % blocks);
                const auto matrix = static_cast<std::uint32_t>(i / blocks % places.matrices);
                const std::int64_t first_row = block * block_rows;
                const std::int64_t offset = (i / blocks * places.rows + first_row) * columns;
                DropoutMask of_block = mask;
                of_block.key = places.key_of(mask.key, matrix, block);
                const DropoutRows rows{
                    static_cast<std::uint64_t>(ids[i / blocks / places.matrices]),
                    static_cast<int>(std::min(block_rows, places.rows - first_row)),
                    columns};
                drop_rows(of_block, rows, from + offset, to + offset);
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
