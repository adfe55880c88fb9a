#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/files/event_file.hpp"

namespace hetseq {

/// One number of a curve.
struct Scalar {
    std::string tag;
    double value = 0;
};

/// RUN/tensorboard: the curves of metrics.jsonl for TensorBoard. Numbers that cannot be written
/// (disk full) are kept and tried again with the next ones, so that training goes on.
class ScalarEvents {
public:
    /// A new file in `folder`, for `first_update` and later ones: TensorBoard takes it instead of
    /// what files of earlier starts hold of them.
    ScalarEvents(std::filesystem::path folder, std::int64_t first_update)
        : folder_{std::move(folder)}, first_update_{first_update} {}

    void write(std::int64_t update, const std::vector<Scalar>& scalars);
    /// Reports what somebody removed.
    void finish();

private:
    void look_for_file(std::int64_t update, double now);

    std::filesystem::path folder_;
    std::int64_t first_update_;
    std::optional<EventFile> file_;  // from the first numbers on
    std::string problem_;            // empty: all is written
    bool was_removed_ = false;
};

}  // namespace hetseq
