#include "hetseq/text/tokenizer_config.hpp"

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

}  // namespace hetseq
