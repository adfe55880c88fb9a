#include "checkpoint_export.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/files/staged_folder.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/state/existing_folder.hpp"
#include "hetseq/tools/checkpoint_report.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/files/tensor_files.hpp"
#include "hetseq/model/files/tensor_types.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/app/commands/checkpoint/checkpoint_average.hpp"

#include "app/commands/model_choice.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::string config_name = "config.json";
const std::string weights_name = "model.safetensors";
const std::string vocabulary_name = "vocab.txt";
const std::string tokenizer_name = "tokenizer_config.json";

// Files of a tokenizer, and of the way text is generated, that transformers reads beside a model.
const std::set<std::string> text_file_names{vocabulary_name,
                                            tokenizer_name,
                                            "tokenizer.json",
                                            "special_tokens_map.json",
                                            "added_tokens.json",
                                            "merges.txt",
                                            "vocab.json",
                                            "spiece.model",
                                            "generation_config.json"};

/// The folder that describes a model, and the files that hold its tensors: one, or several whose
/// mean is meant.
struct ExportSource {
    fs::path folder;
    std::vector<fs::path> files;
};

fs::path without_last_slash(const fs::path& path) {
    return path.has_filename() ? path : path.parent_path();
}

bool is_checkpoint(const fs::path& folder) {
    return fs::exists(folder / Manifest::file_name);
}

ExportSource source_of(const ExportOptions& options) {
    const fs::path run = without_last_slash(options.run);
    check_folder(run);
    if (is_checkpoint(run)) {
        if (!options.checkpoint.empty())
            throw BadConfig("--checkpoint " + options.checkpoint + " chooses among a run's",
                            run.string() + " is a checkpoint",
                            "give the run's folder, or leave the option out");
        const fs::path folder = fs::absolute(run).parent_path().parent_path();
        return {folder, {model_file(run.string())}};
    }
    return {run, chosen_model_files(run, options.checkpoint)};
}

void check_output(const fs::path& output, const ExportSource& source, bool overwrites) {
    if (!fs::exists(output))
        return;
    if (!fs::is_directory(output))
        throw BadConfig(output.string() + " is a file", "", "name a folder to write to");
    if (fs::equivalent(output, source.folder))
        throw BadConfig(output.string() + " is the folder of the run itself",
                        "its files would be replaced",
                        "name another folder");
    if (!overwrites && !fs::is_empty(output))
        throw BadConfig(output.string() + " exists already",
                        "the model in it is replaced with --overwrite alone",
                        "name another folder");
}

Json config_of_transformers(const fs::path& folder) {
    const fs::path path = folder / config_name;
    const std::optional<std::string> text = read_file_text(path);
    if (!text)
        throw BadConfig("transformers has no model like that of " + folder.string(),
                        "there is no " + path.string(),
                        "its tensors have the names of the model's own parts: read them in Python "
                        "by safetensors.torch.load_file");
    Json config = parse_json_or_discard<Json>(*text);
    if (!config.is_object())
        throw BadData(path.string() + " holds no JSON object", "", "write it again");
    if (!config.contains("model_type") || !config["model_type"].is_string())
        throw BadConfig("transformers has no model like that of " + folder.string(),
                        path.string() + " has no model_type",
                        "use a model of transformers");
    return config;
}

NamedTensor read_tensor_of(TensorFiles& file, const SafetensorEntry& entry) {
    const at::Tensor values = at::empty(entry.shape, scalar_type_of(entry.type));
    file.read(entry, values.mutable_data_ptr());
    return {entry.name, values};
}

std::vector<NamedTensor> tensors_of(const std::vector<fs::path>& files) {
    if (files.size() > 1) {
        std::vector<fs::path> checkpoints;
        for (const fs::path& file : files)
            checkpoints.push_back(file.parent_path());
        return mean_parameters(checkpoints);
    }
    TensorFiles file{checked_model_file(files.front().string())};
    std::vector<NamedTensor> tensors;
    for (const SafetensorEntry* entry : file.entries())
        tensors.push_back(read_tensor_of(file, *entry));
    return tensors;
}

// A file that the user names may be another model's.
void check_same_model(const ExportSource& source, const std::vector<NamedTensor>& tensors) {
    fs::path of_run = model_file(source.folder.string());
    if (!fs::exists(of_run)) {
        const std::vector<fs::path> checkpoints = checkpoints_at(source.folder);
        if (checkpoints.empty())
            return;
        of_run = model_file(checkpoints.front().string());
    }
    const TensorFiles expected{of_run};
    for (const NamedTensor& tensor : tensors) {
        const SafetensorEntry* entry = expected.find(tensor.name);
        if (entry == nullptr || tensor.tensor.sizes() != at::IntArrayRef(entry->shape) ||
            tensors.size() != expected.size())
            throw BadData(
                source.files.front().string() + " belongs to another model than " + of_run.string(),
                "tensor '" + tensor.name + "', or their number, differs",
                "give a file of this run's model");
    }
}

// transformers 5 takes the weights in this type.
void describe_type(const std::vector<NamedTensor>& tensors, Json& config) {
    static const std::map<at::ScalarType, std::string> names{{at::kDouble, "float64"},
                                                             {at::kFloat, "float32"},
                                                             {at::kHalf, "float16"},
                                                             {at::kBFloat16, "bfloat16"}};
    config.erase("torch_dtype");
    for (const NamedTensor& tensor : tensors)
        if (const auto name = names.find(tensor.tensor.scalar_type()); name != names.end()) {
            config["dtype"] = name->second;
            return;
        }
}

std::vector<CompanionFile> text_files_in(const fs::path& folder) {
    std::vector<CompanionFile> files;
    for (const std::string& name : text_file_names)
        if (const auto text = read_file_text(folder / name))
            files.push_back({name, *text});
    return files;
}

ExportedModel model_of(const ExportSource& source, const Parts& parts) {
    Json config = config_of_transformers(source.folder);
    const auto type = config["model_type"].get<std::string>();
    const ExportPart part = parts.exports.has(type) ? parts.exports.get(type) : ExportPart{};
    if (part.check)
        part.check(source.folder);
    ExportedModel model{json_text(config), tensors_of(source.files), text_files_in(source.folder)};
    check_same_model(source, model.tensors);
    if (part.change) {
        part.change(source.folder, model);
        config = parse_json<Json>(model.config);
    }
    std::sort(model.tensors.begin(), model.tensors.end(), [](const auto& a, const auto& b) {
        return a.name < b.name;
    });
    describe_type(model.tensors, config);
    model.config = json_text(config, 2) + "\n";
    return model;
}

void write_weights(const fs::path& path, const std::vector<NamedTensor>& tensors) {
    std::vector<SafetensorData> data;
    for (const NamedTensor& tensor : tensors)
        data.push_back({tensor.name,
                        file_type_of(tensor.tensor.scalar_type()),
                        tensor.tensor.sizes().vec(),
                        tensor.tensor.const_data_ptr()});
    write_safetensors(path, data, {{"format", "pt"}});
}

void write(const ExportedModel& model, const fs::path& output) {
    StagedFolder folder{output};
    write_weights(folder.path() / weights_name, model.tensors);
    write_atomically(folder.path() / config_name, model.config);
    for (const CompanionFile& file : model.text_files)
        write_atomically(folder.path() / file.name, file.content);
    std::set<std::string> outdated = text_file_names;
    outdated.insert(weights_name + ".index.json");
    folder.commit(outdated);
}

std::string summary_of(const ExportedModel& model,
                       const ExportSource& source,
                       const fs::path& output) {
    std::vector<std::string> from, names{config_name, weights_name};
    for (const fs::path& file : source.files)
        from.push_back(file.string());
    for (const CompanionFile& file : model.text_files)
        names.push_back(file.name);
    std::int64_t parameters = 0;
    for (const NamedTensor& tensor : model.tensors)
        parameters += tensor.tensor.numel();
    const Json config = parse_json<Json>(model.config);
    std::string network = config["model_type"].get<std::string>();
    if (const auto classes = config.find("architectures");
        classes != config.end() && classes->is_array())
        for (const Json& name : *classes)
            network += ", " + (name.is_string() ? name.get<std::string>() : json_text(name));
    return format_table(std::vector<std::vector<std::string>>{
        {"model", (from.size() > 1 ? "mean of " : "") + join(from, ", ")},
        {"network", network},
        {"tensors",
         std::to_string(model.tensors.size()) + " of " + std::to_string(parameters) + " values"},
        {"folder", output.string()},
        {"files", join(names, ", ")}});
}

}  // namespace

std::string export_for_transformers(const ExportOptions& options, const Parts& parts) {
    const ExportSource source = source_of(options);
    check_output(options.output, source, options.overwrites);
    const ExportedModel model = model_of(source, parts);
    write(model, options.output);
    if (model.text_files.empty())
        log::warn(
            source.folder.string() +
            " has no vocabulary (its data came without one): copy the one that they were made "
            "with to " +
            options.output.string());
    return summary_of(model, source, options.output);
}

}  // namespace hetseq
