#pragma once

#include <cstdint>
#include <string>

namespace hetseq {

/// The line on the terminal while text is prepared: how much is done, the rate and the time that is
/// left.
class PreparationProgress {
public:
    PreparationProgress();
    ~PreparationProgress();
    PreparationProgress(const PreparationProgress&) = delete;
    PreparationProgress& operator=(const PreparationProgress&) = delete;

    /// `done` and `total`: bytes of text. Draws at most five times a second.
    void show(std::int64_t done, std::int64_t total);

private:
    int columns_;  // of the terminal; 0: none
    double begin_s_;
    double drawn_s_ = 0;
};

/// "34 % of 1,200 MB  12.5 MB/s  ETA 1:03" after `seconds`.
std::string preparation_text(std::int64_t done, std::int64_t total, double seconds);

}  // namespace hetseq
