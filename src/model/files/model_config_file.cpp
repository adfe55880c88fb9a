#include "model_config_file.hpp"

#include <fstream>
#include <limits>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"

namespace hetseq::detail {

using nlohmann::json;

ModelConfigFile::ModelConfigFile(const std::filesystem::path& path,
                                 std::string network,
                                 const std::string& presets)
    : path_{path}, network_{std::move(network)} {
    if (!std::filesystem::exists(path))
        throw MissingInput("there is no model configuration " + path.string(),
                           "",
                           "give a preset (" + presets + ") or the path of a config.json");
    check_text_file(path);
    std::ifstream file{path};
    root_ = parse_json_or_discard<json>(file);
    if (!root_.is_object())
        throw BadData(path.string() + " is not a model configuration",
                      "it holds no JSON object",
                      "give a config.json as hetseq or Hugging Face writes it");
}

void ModelConfigFile::read(const char* key, std::int64_t& value) const {
    if (const json* found = find(key)) {
        if (!found->is_number_integer() || *found > std::numeric_limits<std::int64_t>::max())
            fail(key, "it is not a whole number");
        value = found->get<std::int64_t>();
    }
}

void ModelConfigFile::read(const char* key, double& value) const {
    if (const json* found = find(key)) {
        if (!found->is_number())
            fail(key, "it is not a number");
        value = found->get<double>();
    }
}

void ModelConfigFile::read(const char* key, std::optional<double>& value) const {
    if (find(key) != nullptr)
        read(key, value.emplace());
}

void ModelConfigFile::read(const char* key, std::string& value) const {
    if (const json* found = find(key)) {
        if (!found->is_string())
            fail(key, "it is not a text");
        value = found->get<std::string>();
    }
}

void ModelConfigFile::read(const char* key, bool& value) const {
    if (const json* found = find(key)) {
        if (!found->is_boolean())
            fail(key, "it is neither true nor false");
        value = found->get<bool>();
    }
}

void ModelConfigFile::read(const char* key, std::vector<std::string>& values) const {
    const json* const found = find(key);
    if (found == nullptr)
        return;
    if (!found->is_object())
        fail(key, "it is not a list of texts by number");
    values.clear();
    while (values.size() < found->size()) {
        const auto value = found->find(std::to_string(values.size()));
        if (value == found->end() || !value->is_string())
            fail(key, "it has no text of number " + std::to_string(values.size()));
        values.push_back(value->get<std::string>());
    }
}

void ModelConfigFile::read_first(const char* key, std::string& value) const {
    const json* const found = find(key);
    if (found == nullptr || (found->is_array() && found->empty()))
        return;
    if (!found->is_array() || !found->front().is_string())
        fail(key, "it is not a list of texts");
    value = found->front().get<std::string>();
}

bool ModelConfigFile::is_null(const char* key) const {
    const auto found = root_.find(key);
    return found != root_.end() && found->is_null();
}

void ModelConfigFile::require(const char* key, const json& only) const {
    const json* found = find(key);
    if (found != nullptr && *found != only)
        fail(key, "hetseq's " + network_ + " has " + json_text(only));
}

const json* ModelConfigFile::find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
}

void ModelConfigFile::fail(const std::string& key, const std::string& why) const {
    throw BadConfig(path_.string() + ": " + key + " is " + brief_json(root_.at(key)),
                    why,
                    "use another model configuration");
}

void require(bool condition,
             const std::string& origin,
             const std::string& problem,
             const std::string& why) {
    if (!condition)
        throw BadConfig(origin + ": " + problem, why, "change the model configuration");
}

}  // namespace hetseq::detail
