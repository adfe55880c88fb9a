#include "hetseq/text/tokenizer_config.hpp"

#include "hetseq/util/error.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

std::string tokenizer_config_json(const BasicTokenizerOptions& options) {
    nlohmann::ordered_json config{{"tokenizer_class", "BertTokenizer"},
                                  {"do_lower_case", options.lower_case}};
    // Hugging Face's tokenizers take accents away where case goes, unless this says otherwise.
    if (options.strip_accents != options.lower_case)
        config["strip_accents"] = options.strip_accents;
    return config.dump(2) + "\n";
}

BasicTokenizerOptions parse_tokenizer_config(const std::string& text, const std::string& origin) {
    const auto config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
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
