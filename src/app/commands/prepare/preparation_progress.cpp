#include "preparation_progress.hpp"

#include <algorithm>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/status_line.hpp"
#include "hetseq/util/process/terminal.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr double seconds_between = 0.2;

}  // namespace

std::string preparation_text(std::int64_t done, std::int64_t total, double seconds) {
    const double share =
        static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(total, 1));
    std::string text =
        percent_text(share) + " of " + format_number(static_cast<double>(total) / 1e6, 3) + " MB";
    if (done > 0 && seconds > 0)
        text += "  " + format_number(static_cast<double>(done) / 1e6 / seconds, 3) + " MB/s  ETA " +
                format_duration(seconds / share * (1 - share));
    return text;
}

PreparationProgress::PreparationProgress()
    : columns_{columns_of_terminal()}, begin_s_{monotonic_seconds()} {}

PreparationProgress::~PreparationProgress() {
    if (columns_ > 0)
        status_line::erase();
}

void PreparationProgress::show(std::int64_t done, std::int64_t total) {
    const double now_s = monotonic_seconds();
    if (columns_ == 0 || now_s - drawn_s_ < seconds_between)
        return;
    drawn_s_ = now_s;
    status_line::show(preparation_text(done, total, now_s - begin_s_)
                          .substr(0, static_cast<std::size_t>(columns_ - 1)));
}

}  // namespace hetseq
