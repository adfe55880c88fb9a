#include "hetseq/model/model_file.hpp"

#include <set>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/safetensors.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/model/tensor_types.hpp"

namespace hetseq {

namespace {

/// Which of a file's tensors belongs to which of the model's.
struct Match {
    at::Tensor target;
    SafetensorEntry source;
};

class Matcher {
public:
    /// `heads`: where tensors of unlike heads are noted; null: they are errors.
    Matcher(const SafetensorsReader& file, const Model& model, UnlikeHeads* heads)
        : file_{file}, model_{model}, aliases_{model.tensor_aliases()}, heads_{heads} {}

    std::vector<Match> match() const {
        std::vector<Match> matches;
        std::set<std::string> known;
        for (const NamedTensor& stored : model_.stored_tensors()) {
            known.insert(stored.name);
            const SafetensorEntry* source = find(stored.name);
            if (source == nullptr && heads_ != nullptr && model_.is_of_head(stored.name))
                heads_->missing.push_back(stored.name);
            else
                matches.push_back({stored.tensor, fitting(stored, source)});
        }
        for (const SafetensorEntry& entry : file_.entries()) {
            if (known.count(entry.name) != 0 || aliases_.count(entry.name) != 0)
                continue;
            if (heads_ != nullptr && model_.is_of_head(entry.name))
                heads_->unused.push_back(entry.name);
            else
                fail("tensor '" + entry.name + "' " + shape_text(entry.shape) + " of " + path() +
                         " is not one of the model's",
                     "the model has " + std::to_string(known.size()) + " tensors, the file " +
                         std::to_string(file_.entries().size()));
        }
        return matches;
    }

private:
    [[noreturn]] static void fail(const std::string& problem, const std::string& why) {
        throw BadData(problem, why, "check that this configuration belongs to the file");
    }

    std::string path() const { return file_.path().string(); }

    // Null where the file has it under no name.
    const SafetensorEntry* find(const std::string& stored) const {
        const SafetensorEntry* entry = file_.find(stored);
        for (const auto& [alias, name] : aliases_)
            if (entry == nullptr && name == stored)
                entry = file_.find(alias);
        return entry;
    }

    const SafetensorEntry& fitting(const NamedTensor& stored, const SafetensorEntry* entry) const {
        if (entry == nullptr)
            fail(path() + " lacks the model's tensor '" + stored.name + "'",
                 "its shape would be " + shape_text(stored.tensor.sizes()));
        if (stored.tensor.sizes() != at::IntArrayRef(entry->shape))
            fail("tensor '" + stored.name + "' of " + path() + " does not fit the model",
                 "its shape is " + shape_text(entry->shape) + ", the model's is " +
                     shape_text(stored.tensor.sizes()));
        check_type(stored, *entry);
        return *entry;
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

    const SafetensorsReader& file_;
    const Model& model_;
    std::map<std::string, std::string> aliases_;  // to stored names
    UnlikeHeads* heads_;
};

void load(const std::filesystem::path& path, Model& model, UnlikeHeads* heads) {
    const at::NoGradGuard no_grad;
    SafetensorsReader file{path};
    for (const auto& [target, source] : Matcher{file, model, heads}.match()) {
        const at::Tensor values = at::empty(target.sizes(), scalar_type_of(source.type));
        file.read(source, values.mutable_data_ptr());
        target.copy_(values);
    }
}

}  // namespace

std::filesystem::path model_file(const std::string& file_or_folder) {
    const std::filesystem::path path = file_or_folder;
    return path.extension() == ".safetensors" ? path : path / "model.safetensors";
}

std::filesystem::path model_config_file(const std::string& file_or_folder) {
    return model_file(file_or_folder).parent_path() / "config.json";
}

void save_model(const std::filesystem::path& path, const Model& model) {
    std::vector<at::Tensor> copies;  // keep the data alive
    std::vector<SafetensorData> tensors;
    for (const NamedTensor& stored : model.stored_tensors()) {
        copies.push_back(stored.tensor.detach().cpu().contiguous());
        tensors.push_back({stored.name,
                           file_type_of(stored.tensor.scalar_type()),
                           stored.tensor.sizes().vec(),
                           copies.back().const_data_ptr()});
    }
    write_safetensors(path, tensors, {{"format", "pt"}});
}

void load_model(const std::filesystem::path& path, Model& model) {
    load(path, model, nullptr);
}

UnlikeHeads load_shared_network(const std::filesystem::path& path, Model& model) {
    UnlikeHeads heads;
    load(path, model, &heads);
    return heads;
}

}  // namespace hetseq
