#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hetseq {

/// Writes a shard of integers whose rows have one length, as h5py writes them with
/// compression="gzip": the same chunks, gzip level 4. Memory holds the rows of a chunk of each
/// field. The same rows give the same bytes. The file appears under its name by `commit`; before,
/// it lies beside it, and without `commit` it is removed. All members throw IoError.
class FixedShardWriter {
public:
    struct Field {
        std::string name;
        int bytes = 4;                // of an integer: 1 or 4
        std::int64_t row_length = 0;  // 0: a row is a number, and the dataset has one dimension
    };

    /// `rows`: how many each field will get.
    FixedShardWriter(std::filesystem::path path,
                     std::int64_t rows,
                     const std::vector<Field>& fields);
    ~FixedShardWriter();
    FixedShardWriter(FixedShardWriter&&) noexcept;

    /// The next row of the field with this index. What is missing of its length is 0.
    void append(std::size_t field, std::span<const std::int32_t> row);
    /// An attribute of the file: text in UTF-8, not empty.
    void attach_text(const std::string& name, const std::string& text);

    /// All rows are given: the file is written and synced to disk. Returns its size [bytes].
    std::int64_t finish();
    /// The finished file gets its name.
    void commit();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hetseq
