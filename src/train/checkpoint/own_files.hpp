#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"

namespace hetseq {

/// The tensors of a file: names, types and shapes.
std::vector<SafetensorEntry> entries_of(const CheckpointFile& file);
/// Their indices in the order of the file's bytes.
std::vector<std::size_t> order_in_file(const CheckpointFile& file);
/// What the files say of themselves.
std::map<std::string, std::string> written_by();

/// Writes the files of a checkpoint that are this rank's, one after the other, from bytes that come
/// in their order. All members throw IoError.
class OwnFiles {
public:
    /// `writers`: of each file, perhaps of more; a rank. They and `files` outlive this.
    OwnFiles(std::span<const CheckpointFile> files,
             std::filesystem::path folder,
             std::span<const int> writers,
             int rank);

    /// The next bytes, of the file of this index. They belong to its tensors in the order in which
    /// it holds them.
    void write(std::size_t file, std::span<const std::byte> bytes);
    /// All bytes have come. Returns the digests by file, zeros for files of other ranks.
    std::vector<FileDigest> finish();

private:
    void begin_next();
    void end();

    std::span<const CheckpointFile> files_;
    std::filesystem::path folder_;
    std::span<const int> writers_;
    int rank_;
    std::size_t begun_ = 0;                  // files, those of other ranks too
    std::optional<SafetensorsWriter> open_;  // the last one begun, if it is this rank's
    std::vector<FileDigest> digests_;
};

}  // namespace hetseq
