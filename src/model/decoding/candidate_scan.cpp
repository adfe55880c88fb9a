#include "candidate_scan.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <ATen/Parallel.h>

#include "model/kernels/candidate_loops.hpp"

namespace hetseq::detail {

namespace {

constexpr std::int64_t cached_weights = 512 * 1024;  // bytes of the output layer in one chunk
constexpr std::int64_t block_rows = 40;              // whose scores of a chunk are held at once

template <class T>
class VocabularyScan {
public:
    VocabularyScan(const PackedLinear<T>& output,
                   const T* x,
                   std::int64_t rows,
                   const CandidateRule& rule,
                   const RuleSymbols& symbols)
        : output_{output}, x_{x}, rows_{rows}, rule_{rule}, symbols_{symbols} {
        const std::int64_t panel_bytes =
            output.inputs() * panel_width<T> * static_cast<std::int64_t>(sizeof(T));
        chunk_panels_ = std::max<std::int64_t>(1, cached_weights / panel_bytes / 2) * 2;
        chunks_ = (output.panels() + chunk_panels_ - 1) / chunk_panels_;
        sums_.resize(static_cast<std::size_t>(rows * chunks_));
        ends_.resize(static_cast<std::size_t>(rows));
    }

    void run(Candidates& candidates);

private:
    using Largest = std::vector<LargestValues<T>>;  // by row

    struct Scratch {
        AlignedArray<T> scores;  // (block_rows, columns of a chunk)
        std::vector<T> highest;  // of a row, as `power_sum` gives them
    };

    void scan(std::int64_t chunk, Scratch& scratch, Largest& largest);
    void scan_row(std::int64_t row,
                  std::int64_t chunk,
                  std::int64_t columns,
                  T* scores,
                  std::vector<T>& highest,
                  LargestValues<T>& largest);
    void write(std::int64_t row, const LargestValues<T>& largest, Candidates& candidates) const;
    std::int64_t first_column(std::int64_t chunk) const {
        return chunk * chunk_panels_ * panel_width<T>;
    }

    const PackedLinear<T>& output_;
    const T* x_;
    std::int64_t rows_;
    const CandidateRule& rule_;
    const RuleSymbols& symbols_;
    std::int64_t chunk_panels_ = 0, chunks_ = 0;
    std::vector<PowerSum> sums_;  // (rows, chunks): the same whatever thread computed them
    std::vector<T> ends_;         // the end symbol's scores, by row
};

template <class T>
void VocabularyScan<T>::scan_row(std::int64_t row,
                                 std::int64_t chunk,
                                 std::int64_t columns,
                                 T* scores,
                                 std::vector<T>& highest,
                                 LargestValues<T>& largest) {
    const std::int64_t first = first_column(chunk);
    const auto column_of = [&](std::int32_t symbol) {
        return symbol >= first && symbol < first + columns ? symbol - first : -1;
    };
    sums_[static_cast<std::size_t>(row * chunks_ + chunk)] =
        power_sum(scores, columns, highest.data());
    if (const std::int64_t end = column_of(symbols_.end); end >= 0) {
        ends_[static_cast<std::size_t>(row)] = scores[end];
        if (!rule_.may_end)
            scores[end] = -std::numeric_limits<T>::infinity();
    }
    if (const std::int64_t unknown = column_of(symbols_.unknown); unknown >= 0) {
        scores[unknown] -= static_cast<T>(rule_.unknown_penalty);
        T& high = highest[static_cast<std::size_t>(highest_index(unknown))];
        high = std::max(high, scores[unknown]);
    }
    take_largest(scores, columns, highest.data(), static_cast<std::int32_t>(first), largest);
}

template <class T>
void VocabularyScan<T>::scan(std::int64_t chunk, Scratch& scratch, Largest& largest) {
    const std::int64_t stride = chunk_panels_ * panel_width<T>;
    const std::int64_t first = chunk * chunk_panels_;
    const std::int64_t last = std::min(first + chunk_panels_, output_.panels());
    const std::int64_t columns =
        std::min(last * panel_width<T>, output_.outputs()) - first_column(chunk);
    T* scores = scratch.scores.room_for(block_rows * stride);
    scratch.highest.resize(static_cast<std::size_t>(highest_count(columns)));
    for (std::int64_t row = 0; row < rows_; row += block_rows) {
        const std::int64_t count = std::min(block_rows, rows_ - row);
        output_.apply_panels(
            x_ + row * whole_groups<T>(output_.inputs()), count, first, last, scores, stride);
        for (std::int64_t i = 0; i < count; ++i)
            scan_row(row + i,
                     chunk,
                     columns,
                     scores + i * stride,
                     scratch.highest,
                     largest[static_cast<std::size_t>(row + i)]);
    }
}

template <class T>
void VocabularyScan<T>::write(std::int64_t row,
                              const LargestValues<T>& largest,
                              Candidates& candidates) const {
    const double total = log_sum(sums_.data() + row * chunks_, chunks_);
    const auto count = static_cast<std::size_t>(rule_.count);
    const std::size_t begin = static_cast<std::size_t>(row) * count;
    for (std::size_t i = 0; i < count; ++i) {
        candidates.tokens[begin + i] = largest.ids()[i];
        candidates.log_probabilities[begin + i] = static_cast<double>(largest.values()[i]) - total;
    }
    candidates.end[static_cast<std::size_t>(row)] =
        static_cast<double>(ends_[static_cast<std::size_t>(row)]) - total;
}

template <class T>
void VocabularyScan<T>::run(Candidates& candidates) {
    std::mutex mutex;
    std::map<std::int64_t, Largest> parts;  // by their first chunk
    at::parallel_for(0, chunks_, 1, [&](std::int64_t begin, std::int64_t end) {
        Largest largest(static_cast<std::size_t>(rows_), LargestValues<T>(rule_.count));
        Scratch scratch;
        for (std::int64_t chunk = begin; chunk < end; ++chunk)
            scan(chunk, scratch, largest);
        const std::lock_guard lock(mutex);
        parts.emplace(begin, std::move(largest));
    });
    const std::size_t count = static_cast<std::size_t>(rows_ * rule_.count);
    candidates.tokens.resize(count);
    candidates.log_probabilities.resize(count);
    candidates.end.resize(static_cast<std::size_t>(rows_));
    for (std::int64_t row = 0; row < rows_; ++row) {
        const auto at = static_cast<std::size_t>(row);
        LargestValues<T>& largest = parts.begin()->second[at];
        for (auto part = std::next(parts.begin()); part != parts.end(); ++part)
            largest.insert(part->second[at]);
        write(row, largest, candidates);
    }
}

}  // namespace

template <class T>
void scan_vocabulary(const PackedLinear<T>& output,
                     const T* x,
                     std::int64_t rows,
                     const CandidateRule& rule,
                     const RuleSymbols& symbols,
                     Candidates& candidates) {
    VocabularyScan<T>(output, x, rows, rule, symbols).run(candidates);
}

template void scan_vocabulary(const PackedLinear<float>&,
                              const float*,
                              std::int64_t,
                              const CandidateRule&,
                              const RuleSymbols&,
                              Candidates&);
template void scan_vocabulary(const PackedLinear<double>&,
                              const double*,
                              std::int64_t,
                              const CandidateRule&,
                              const RuleSymbols&,
                              Candidates&);

}  // namespace hetseq::detail
