#include "hetseq/model/files/tensor_files.hpp"

#include <algorithm>
#include <fstream>
#include <set>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

namespace fs = std::filesystem;

const std::string index_ending = ".safetensors.index.json";

// The first one found is meant: in a checkpoint of a run with --ema, the average of the weights.
// The other names are those that transformers gives to the weights of a folder.
constexpr const char* names_of_weights[] = {"ema.safetensors",
                                            "model.safetensors",
                                            "model.safetensors.index.json",
                                            "pytorch_model.bin",
                                            "pytorch_model.bin.index.json",
                                            "tf_model.h5",
                                            "flax_model.msgpack"};

bool has_ending(const fs::path& path, std::initializer_list<const char*> endings) {
    const std::string name = path.filename().string();
    return std::any_of(
        endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
}

// The commands are for a shell.
void refuse_other_formats(const fs::path& path) {
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    if (has_ending(path, {".bin", ".pt", ".pth", ".ckpt", ".pkl"}))
        throw BadData(
            path.string() + " is a pickle, which hetseq does not read",
            "loading one runs the code that it holds",
            "convert it once: python3 -c \"import torch, safetensors.torch as s; s.save_file({k: "
            "v.clone() for k, v in torch.load('" +
                path.string() + "', 'cpu', weights_only=True).items()}, '" + folder +
                "/model.safetensors', {'format': 'pt'})\"");
    if (has_ending(path, {".bin.index.json", ".h5", ".msgpack"}))
        throw BadData(path.string() + " is not a file of safetensors",
                      "hetseq reads no other weights",
                      "convert it once: python3 -c \"from transformers import AutoModel as M; "
                      "M.from_pretrained('" +
                          folder + "').save_pretrained('" + folder + "-safetensors')\"");
}

nlohmann::json parse_index(const fs::path& path) {
    require_regular_file(path);
    std::ifstream file{path};
    const nlohmann::json root = parse_json_or_discard<nlohmann::json>(file);
    const bool has_map =
        root.is_object() && root.contains("weight_map") && root["weight_map"].is_object();
    if (!has_map)
        throw BadData(path.string() + " is not an index of safetensors files",
                      "it has no object 'weight_map'",
                      "write or download it again");
    return root["weight_map"];
}

std::string file_of(const nlohmann::json& value, const std::string& tensor, const fs::path& index) {
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    if (name.empty() || fs::path{name}.filename() != name || !name.ends_with(".safetensors"))
        throw BadData(index.string() + ": tensor '" + tensor + "' is in " + brief_json(value),
                      "that is not the name of a safetensors file beside it",
                      "write or download it again");
    return name;
}

}  // namespace

TensorFiles::TensorFiles(const fs::path& path) : path_{path} {
    refuse_other_formats(path);
    if (path.string().ends_with(index_ending))
        read_index();
    else
        read_file();
}

void TensorFiles::read_file() {
    files_.emplace_back(path_);
    for (const SafetensorEntry& entry : files_.front().entries())
        places_[entry.name] = {0, &entry};
}

void TensorFiles::read_index() {
    const nlohmann::json weight_map = parse_index(path_);
    std::map<std::string, std::size_t> numbers;  // of the files
    for (const auto& [tensor, value] : weight_map.items()) {
        const std::string name = file_of(value, tensor, path_);
        const auto [number, is_new] = numbers.try_emplace(name, files_.size());
        if (is_new)
            files_.emplace_back(path_.parent_path() / name);
        places_[tensor].file = number->second;
    }
    for (auto& [tensor, place] : places_) {
        place.entry = files_[place.file].find(tensor);
        if (place.entry == nullptr)
            throw BadData(files_[place.file].path().string() + " lacks the tensor '" + tensor + "'",
                          path_.string() + " says that it is there",
                          "write or download the files again");
    }
}

std::vector<const SafetensorEntry*> TensorFiles::entries() const {
    std::vector<const SafetensorEntry*> entries;
    for (const auto& [name, place] : places_)
        entries.push_back(place.entry);
    return entries;
}

const SafetensorEntry* TensorFiles::find(const std::string& name) const noexcept {
    const auto place = places_.find(name);
    return place == places_.end() ? nullptr : place->second.entry;
}

void TensorFiles::read(const SafetensorEntry& entry, void* out) {
    files_[places_.at(entry.name).file].read(entry, out);
}

fs::path weights_in(const fs::path& folder) {
    for (const char* name : names_of_weights)
        if (fs::exists(folder / name))
            return folder / name;
    return folder / "model.safetensors";
}

}  // namespace hetseq
