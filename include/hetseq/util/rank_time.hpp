#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace hetseq {

/// What each rank times in every update [ms]. A new one is named here and described below, and is
/// set where it is measured. Summary, report, `bench step` and --dry-run then have it.
enum class RankTime { data, compute, wait, reduce, optimizer };

struct RankTimeText {
    RankTime time;
    std::string_view key;      // in JSON
    std::string_view heading;  // of a table's column
    std::string_view meaning;  // in the report and in docs/outputs.md
    bool overlaps = false;     // with the others, so that their sum may exceed the update
};

/// In the order of tables.
inline constexpr std::array<RankTimeText, 5> rank_time_texts{{
    {RankTime::data, "data_ms", "data", "waiting for data"},
    {RankTime::compute, "compute_ms", "forward+backward", "forward and backward"},
    {RankTime::wait, "wait_ms", "wait", "waiting for the reduction, and for other stages"},
    {RankTime::reduce, "reduce_ms", "reduce", "all buckets, overlapped or not", true},
    {RankTime::optimizer, "optimizer_ms", "optimizer", "optimizer"},
}};

/// A value for each RankTime.
template <class T>
class ByRankTime {
public:
    ByRankTime() = default;
    ByRankTime(std::initializer_list<std::pair<RankTime, T>> values) {
        for (const auto& [time, value] : values)
            (*this)[time] = value;
    }

    T& operator[](RankTime time) noexcept { return values_[static_cast<std::size_t>(time)]; }
    const T& operator[](RankTime time) const noexcept {
        return values_[static_cast<std::size_t>(time)];
    }

private:
    std::array<T, rank_time_texts.size()> values_{};
};

/// Times of one rank. Absent: not measured.
using RankTimes = ByRankTime<std::optional<double>>;

/// Those that `measured` has replace the ones in `times`.
inline void take_measured(const RankTimes& measured, RankTimes& times) {
    for (const RankTimeText& text : rank_time_texts)
        if (measured[text.time])
            times[text.time] = measured[text.time];
}

}  // namespace hetseq
