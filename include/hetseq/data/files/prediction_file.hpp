#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/data/prediction.hpp"

namespace hetseq {

/// Writes a model's predictions for samples [0, n), which come piece by piece in any order. Each
/// prediction is a dataset NAME with a row for each sample. Rows of unequal length lie end to end,
/// and NAME_offsets says where each begins, as in a corpus. The same predictions give the same
/// bytes. What the datasets are is known from the first piece. The file appears by `commit`.
class PredictionFile {
public:
    /// Throws IoError.
    PredictionFile(std::filesystem::path path, std::int64_t samples);
    ~PredictionFile();

    /// An attribute of the file.
    void set_attribute(const std::string& name, const std::string& value);
    void set_attribute(const std::string& name, std::int64_t value);

    /// The predictions for samples [begin, begin + count), on the CPU. Throws BadConfig if they are
    /// not what a file can hold, or not like those of the first piece; IoError, also when the disk
    /// has no room for all samples.
    void write(std::int64_t begin, std::int64_t count, const std::vector<Prediction>& predictions);
    /// Samples written or held so far.
    std::int64_t samples() const noexcept;
    /// The rows of unequal length that wait for those of earlier samples [bytes].
    std::int64_t waiting_bytes() const noexcept;

    struct Dataset {
        std::string name;
        std::string type;                     // "float32"
        std::vector<std::int64_t> row_shape;  // -1 where rows have unequal lengths
    };
    /// In the model's order; empty before the first piece.
    std::vector<Dataset> datasets() const;

    /// All samples are written: closes the file and gives it its name. Throws IoError. Returns its
    /// size [bytes].
    std::int64_t commit();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hetseq
