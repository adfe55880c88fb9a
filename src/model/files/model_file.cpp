#include "hetseq/model/files/model_file.hpp"

#include <map>
#include <set>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/model/files/tensor_files.hpp"
#include "hetseq/model/files/tensor_types.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/model/model.hpp"

#include "model_config_file.hpp"

namespace hetseq {

namespace {

/// Which of a file's tensors belongs to which of the model's.
struct Match {
    std::string stored_name;
    at::Tensor target;
    SafetensorEntry source;
};

/// Whether a file may have other heads than the model.
enum class FileHeads { same, other };

class Matcher {
public:
    Matcher(const TensorFiles& file, const Model& model, FileHeads heads)
        : file_{file}, model_{model}, heads_{heads}, aliases_{model.tensor_aliases()} {}

    std::vector<Match> match() {
        std::vector<Match> matches;
        std::set<std::string> known;
        for (const NamedTensor& stored : model_.stored_tensors()) {
            known.insert(stored.name);
            const SafetensorEntry* const source = source_of(stored.name);
            if (source != nullptr && is_new_head(stored.name)) {
                differences_.drawn.push_back(stored.name);
                differences_.unread.push_back(source->name);
            } else if (source != nullptr)
                matches.push_back({stored.name, stored.tensor, checked(stored, *source)});
            else if (may_differ(stored.name))
                differences_.drawn.push_back(stored.name);
            else
                fail(path() + " lacks the model's tensor '" + stored.name + "'",
                     "its shape would be " + shape_text(stored.tensor.sizes()));
        }
        for (const SafetensorEntry* entry : file_.entries())
            if (known.count(entry->name) == 0 && aliases_.count(entry->name) == 0)
                leave(*entry, known.size());
        return matches;
    }

    const OtherHeads& differences() const { return differences_; }

private:
    [[noreturn]] static void fail(const std::string& problem, const std::string& why) {
        throw BadData(problem, why, "check that this configuration belongs to the file");
    }

    std::string path() const { return file_.path().string(); }

    bool may_differ(const std::string& name) const {
        return heads_ == FileHeads::other && model_.is_head(name);
    }

    bool is_new_head(const std::string& name) const {
        return heads_ == FileHeads::other && model_.is_new_head(name);
    }

    // A tensor of the file that is not the model's.
    void leave(const SafetensorEntry& entry, std::size_t of_model) {
        if (!may_differ(entry.name))
            fail("tensor '" + entry.name + "' " + shape_text(entry.shape) + " of " + path() +
                     " is not one of the model's",
                 "the model has " + std::to_string(of_model) + " tensors, the file " +
                     std::to_string(file_.size()));
        differences_.unread.push_back(entry.name);
    }

    const SafetensorEntry* source_of(const std::string& stored_name) const {
        const SafetensorEntry* entry = file_.find(stored_name);
        for (const auto& [alias, name] : aliases_)
            if (entry == nullptr && name == stored_name)
                entry = file_.find(alias);
        return entry;
    }

    const SafetensorEntry& checked(const NamedTensor& stored, const SafetensorEntry& entry) const {
        if (stored.tensor.sizes() != at::IntArrayRef(entry.shape))
            fail("tensor '" + stored.name + "' of " + path() + " does not fit the model",
                 "its shape is " + shape_text(entry.shape) + ", the model's is " +
                     shape_text(stored.tensor.sizes()));
        check_type(stored, entry);
        return entry;
    }

    // Precision is converted. Nothing else is: no rounding can be meant there.
    void check_type(const NamedTensor& stored, const SafetensorEntry& entry) const {
        const at::ScalarType type = stored.tensor.scalar_type();
        const at::ScalarType in_file = scalar_type_of(entry.type);
        if (type != in_file && !(at::isFloatingType(type) && at::isFloatingType(in_file)))
            fail("tensor '" + entry.name + "' of " + path() + " is of type " + name_of(entry.type),
                 at::isFloatingType(type)
                     ? std::string("parameters are F64, F32, F16 or BF16")
                     : std::string("the model's is ") + name_of(file_type_of(type)));
    }

    const TensorFiles& file_;
    const Model& model_;
    FileHeads heads_;
    std::map<std::string, std::string> aliases_;  // to stored names
    OtherHeads differences_;
};

OtherHeads fill_from(const std::filesystem::path& path, Model& model, FileHeads heads) {
    const at::NoGradGuard no_grad;
    TensorFiles file{path};
    Matcher matcher{file, model, heads};
    const std::vector<Match> matches = matcher.match();
    const NamedTensors held{model.held_tensors()};
    for (const auto& [name, target, source] : matches) {
        if (!held.contains(name))
            continue;
        const at::Tensor values = at::empty(target.sizes(), scalar_type_of(source.type));
        file.read(source, values.mutable_data_ptr());
        target.copy_(values);
    }
    return matcher.differences();
}

}  // namespace

std::filesystem::path model_file(const std::string& file_or_folder) {
    const std::filesystem::path path = file_or_folder;
    const bool is_file =
        path.extension() == ".safetensors" || std::filesystem::is_regular_file(path);
    return is_file ? path : weights_in(path);
}

std::filesystem::path checked_model_file(const std::string& file_or_folder) {
    const std::filesystem::path file = model_file(file_or_folder);
    const std::filesystem::path folder = file.parent_path();
    if (!std::filesystem::exists(folder / Manifest::file_name))
        return file;
    const std::map<std::string, FileDigest> digests = read_manifest(folder).files;
    if (const auto digest = digests.find(file.filename().string()); digest != digests.end())
        verify_file(folder, digest->first, digest->second);
    return file;
}

std::filesystem::path model_config_file(const std::string& file_or_folder) {
    return model_file(file_or_folder).parent_path() / "config.json";
}

std::string model_type_in(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "config.json";
    std::string type;
    if (std::filesystem::exists(path))
        detail::ModelConfigFile{path, "a model", ""}.read("model_type", type);
    return type;
}

void save_model(const std::filesystem::path& path,
                const Model& model,
                const std::function<void()>& before_naming) {
    HETSEQ_ASSERT(model.held_tensors().size() == model.stored_tensors().size());
    std::vector<at::Tensor> copies;  // keep the data alive
    std::vector<SafetensorData> tensors;
    for (const NamedTensor& stored : model.stored_tensors()) {
        copies.push_back(stored.tensor.detach().cpu().contiguous());
        tensors.push_back({stored.name,
                           file_type_of(stored.tensor.scalar_type()),
                           stored.tensor.sizes().vec(),
                           copies.back().const_data_ptr()});
    }
    write_safetensors(path, tensors, {{"format", "pt"}}, before_naming);
}

void load_model(const std::filesystem::path& path, Model& model) {
    fill_from(path, model, FileHeads::same);
}

OtherHeads load_pretrained(const std::filesystem::path& path, Model& model, std::uint64_t seed) {
    OtherHeads differences = fill_from(path, model, FileHeads::other);
    initialise_parameters(model, seed, differences.drawn);
    return differences;
}

}  // namespace hetseq
