#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hetseq/util/files/safetensors.hpp"

namespace hetseq {

/// The tensors of one safetensors file, or of the files that an index lists
/// (model.safetensors.index.json, as transformers writes it beside model-00001-of-00002.safetensors
/// and so on).
class TensorFiles {
public:
    /// Reads and checks the headers. Throws MissingInput, IoError, or BadData that names the file;
    /// for a file of pickled weights (.bin, .pt) the error tells how to convert it.
    explicit TensorFiles(const std::filesystem::path& path);

    /// The file or the index.
    const std::filesystem::path& path() const noexcept { return path_; }
    std::size_t size() const noexcept { return places_.size(); }
    /// Sorted by their names.
    std::vector<const SafetensorEntry*> entries() const;
    /// nullptr: none of this name.
    const SafetensorEntry* find(const std::string& name) const noexcept;
    /// Copies the tensor's bytes to `out`; `entry` is one of these. Throws IoError.
    void read(const SafetensorEntry& entry, void* out);

private:
    struct Place {
        std::size_t file = 0;  // index into files_
        const SafetensorEntry* entry = nullptr;
    };

    void read_file();
    void read_index();

    std::filesystem::path path_;
    std::vector<SafetensorsReader> files_;
    std::map<std::string, Place> places_;
};

/// The file of weights in the folder: model.safetensors, its index if it is not there, otherwise a
/// file of weights in another format, which `TensorFiles` refuses with the way to convert it; where
/// none of these is there, model.safetensors.
std::filesystem::path weights_in(const std::filesystem::path& folder);

}  // namespace hetseq
