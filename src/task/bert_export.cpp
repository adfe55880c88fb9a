#include "bert_export.hpp"

#include <algorithm>
#include <string>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/prepare/prepare_bert.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

template <class Named>
Named* find_named(std::vector<Named>& all, const std::string& name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

// An own decoder has one bias in hetseq. transformers 5 adds the decoder's, transformers 4 reads
// both and takes them for the same.
void repeat_decoder_bias(std::vector<NamedTensor>& tensors) {
    const std::string of_head = "cls.predictions.bias";
    const NamedTensor* of_decoder = find_named(tensors, "cls.predictions.decoder.bias");
    if (of_decoder != nullptr && find_named(tensors, of_head) == nullptr)
        tensors.push_back({of_head, of_decoder->tensor});
}

void describe_tokenizer(const std::filesystem::path& folder,
                        const Json& config,
                        std::vector<CompanionFile>& files) {
    if (find_named(files, bert_vocabulary_name) == nullptr)
        return;
    if (find_named(files, bert_tokenizer_name) == nullptr)
        files.push_back({bert_tokenizer_name, R"({"tokenizer_class": "BertTokenizer"})"});
    CompanionFile& file = *find_named(files, bert_tokenizer_name);
    Json tokenizer = parse_json_or_discard<Json>(file.content);
    if (!tokenizer.is_object())
        throw BadData((folder / bert_tokenizer_name).string() + " holds no JSON object",
                      "",
                      "write it again");
    if (!tokenizer.contains("model_max_length") && config.contains("max_position_embeddings"))
        tokenizer["model_max_length"] = config["max_position_embeddings"];
    file.content = json_text(tokenizer, 2) + "\n";
}

}  // namespace

void export_bert(const std::filesystem::path& folder, ExportedModel& exported) {
    repeat_decoder_bias(exported.tensors);
    describe_tokenizer(folder, parse_json<Json>(exported.config), exported.text_files);
}

}  // namespace hetseq
