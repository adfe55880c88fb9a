#include "own_files.hpp"

#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/model/files/tensor_types.hpp"

namespace hetseq {

std::vector<SafetensorEntry> entries_of(const CheckpointFile& file) {
    std::vector<SafetensorEntry> entries;
    for (const CheckpointTensor& tensor : file.tensors)
        entries.push_back(
            {.name = tensor.name, .type = file_type_of(tensor.type), .shape = tensor.shape});
    return entries;
}

std::vector<std::size_t> order_in_file(const CheckpointFile& file) {
    std::vector<SafetensorType> types;
    for (const CheckpointTensor& tensor : file.tensors)
        types.push_back(file_type_of(tensor.type));
    return safetensors_order(types);
}

std::map<std::string, std::string> written_by() {
    return {{"format", "pt"}};
}

OwnFiles::OwnFiles(std::span<const CheckpointFile> files,
                   std::filesystem::path folder,
                   std::span<const int> writers,
                   int rank)
    : files_(files),
      folder_{std::move(folder)},
      writers_(writers),
      rank_{rank},
      digests_(files.size()) {}

void OwnFiles::write(std::size_t file, std::span<const std::byte> bytes) {
    while (begun_ <= file)
        begin_next();
    HETSEQ_ASSERT(open_ && begun_ == file + 1);
    open_->write(bytes.data(), bytes.size());
}

std::vector<FileDigest> OwnFiles::finish() {
    while (begun_ < files_.size())
        begin_next();
    end();
    return digests_;
}

void OwnFiles::begin_next() {
    end();
    const CheckpointFile& file = files_[begun_];
    if (writers_[begun_] == rank_)
        open_.emplace(folder_ / file.name, entries_of(file), written_by());
    ++begun_;
}

void OwnFiles::end() {
    if (open_)
        digests_[begun_ - 1] = open_->finish();
    open_.reset();
}

}  // namespace hetseq
