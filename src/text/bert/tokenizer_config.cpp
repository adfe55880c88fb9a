#include "hetseq/text/bert/tokenizer_config.hpp"

#include <cstdint>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::json;

constexpr std::size_t most_json_bytes = std::size_t{16} << 20;  // 5 s

[[noreturn]] void refuse_tokenizer(const std::string& origin, const std::string& why) {
    throw BadData(origin + " holds no vocabulary of WordPiece",
                  why,
                  "give a vocab.txt, or the tokenizer.json of a BERT");
}

void require_text(const Json& model, const char* key, const char* only, const std::string& origin) {
    if (model.contains(key) && model[key] != only)
        refuse_tokenizer(
            origin, std::string(key) + " is " + brief_json(model[key]) + ", not \"" + only + "\"");
}

}  // namespace

std::string vocabulary_of_tokenizer_json(std::string_view bytes, const std::string& origin) {
    if (bytes.size() > most_json_bytes)
        refuse_tokenizer(origin, "it has more than 16 MiB");
    const Json root = parse_json_or_discard<Json>(bytes);
    if (!root.is_object() || !root.contains("model") || !root["model"].is_object())
        refuse_tokenizer(origin, "it is no JSON object with an object 'model'");
    const Json& model = root["model"];
    require_text(model, "type", "WordPiece", origin);
    require_text(model, "continuing_subword_prefix", "##", origin);
    require_text(model, "unk_token", "[UNK]", origin);
    if (!model.contains("vocab") || !model["vocab"].is_object())
        refuse_tokenizer(origin, "its model has no object 'vocab'");
    const auto count = static_cast<std::int64_t>(model["vocab"].size());
    std::vector<std::string> pieces(model["vocab"].size());
    for (const auto& [piece, value] : model["vocab"].items()) {
        const bool is_id = value.is_number_integer() && value >= 0 && value < count;
        std::string* place = is_id ? &pieces[value.get<std::size_t>()] : nullptr;
        if (place == nullptr || !place->empty() || piece.find('\n') != std::string::npos)
            refuse_tokenizer(origin, "the ids of its pieces are not 0, 1, 2 and so on");
        *place = piece;
    }
    std::string lines;
    for (const std::string& piece : pieces)
        lines += piece + '\n';
    return lines;
}

std::string tokenizer_config_json(const BasicTokenizerOptions& options) {
    nlohmann::ordered_json config{{"tokenizer_class", "BertTokenizer"},
                                  {"do_lower_case", options.lower_case}};
    // Hugging Face's tokenizers take accents away where case goes, unless this says otherwise.
    if (options.strip_accents != options.lower_case)
        config["strip_accents"] = options.strip_accents;
    return json_text(config, 2) + "\n";
}

BasicTokenizerOptions parse_tokenizer_config(const std::string& text, const std::string& origin) {
    const auto config = parse_json_or_discard<nlohmann::json>(text);
    const auto read = [&](const char* key, bool otherwise) {
        const auto found = config.find(key);
        if (found == config.end() || found->is_null())
            return otherwise;
        if (!found->is_boolean())
            throw BadData(origin + ": " + key + " is neither true nor false");
        return found->get<bool>();
    };
    if (!config.is_object())
        throw BadData(origin + " is no tokenizer_config.json", "it holds no JSON object");
    BasicTokenizerOptions options;
    options.lower_case = read("do_lower_case", true);
    options.strip_accents = read("strip_accents", options.lower_case);
    return options;
}

}  // namespace hetseq
