#include "bert_setup.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/model/files/model_file.hpp"

namespace hetseq {

namespace {

// `models`: the vocab.txt beside --init-model, if it has one.
void check_vocabulary(const std::string& of_data,
                      const std::optional<std::string>& models,
                      const PartOptions& options,
                      const BertConfig& config) {
    const std::int64_t pieces = WordPiece::parse(of_data, options.data).size();
    if (pieces > config.vocab_size)
        throw BadConfig(
            "the model is for a vocabulary of " + std::to_string(config.vocab_size) + " pieces",
            "that of " + options.data + " has " + std::to_string(pieces),
            "use the data and the model that belong together");
    if (models && WordPiece::parse(*models, options.init_model).lines() != of_data)
        throw BadConfig("the vocabulary of " + options.init_model + " is not that of the data",
                        options.data + " was prepared with another vocab.txt",
                        "prepare the data with the model's vocab.txt");
}

std::string describe(const BasicTokenizerOptions& options) {
    return std::string(options.lower_case ? "lower case" : "case is kept") +
           (options.strip_accents ? ", no accents" : ", accents are kept");
}

void check_tokenizer(const std::string& of_data,
                     const std::string& of_model,
                     const PartOptions& options) {
    const BasicTokenizerOptions data = parse_tokenizer_config(of_data, options.data);
    const BasicTokenizerOptions model = parse_tokenizer_config(of_model, options.init_model);
    if (data.lower_case != model.lower_case || data.strip_accents != model.strip_accents)
        throw BadConfig("the tokenizer of " + options.init_model + " is not that of the data",
                        "the model: " + describe(model) + "; the data: " + describe(data),
                        "prepare the data with the --cased and --accents of the model");
}

}  // namespace

BertConfig bert_config_of(const PartOptions& options) {
    BertConfig config;
    if (!options.init_model.empty() && options.model_config.empty())
        config = read_bert_config(model_config_file(options.init_model));
    else
        config = bert_config(options.model_config.empty() ? "base" : options.model_config);
    if (options.dropout) {
        config.hidden_dropout = *options.dropout;
        config.classifier_dropout.reset();
    }
    if (options.attention_dropout)
        config.attention_dropout = *options.attention_dropout;
    return config;
}

// Newer versions of transformers keep the vocabulary in tokenizer.json.
std::optional<std::string> text_beside_model(const PartOptions& options, const std::string& name) {
    if (options.init_model.empty())
        return std::nullopt;
    const std::filesystem::path folder = model_file(options.init_model).parent_path();
    std::optional<std::string> text = read_file_text(folder / name);
    if (text || name != bert_vocabulary_name)
        return text;
    const std::filesystem::path tokenizer = folder / "tokenizer.json";
    text = read_file_text(tokenizer);
    return text ? std::optional{vocabulary_of_tokenizer_json(*text, tokenizer.string())}
                : std::nullopt;
}

std::vector<CompanionFile> bert_text_files(const PartOptions& options, const BertConfig& config) {
    std::vector<CompanionFile> files;
    for (const char* name : {bert_vocabulary_name, bert_tokenizer_name}) {
        const std::optional<std::string> of_model = text_beside_model(options, name);
        std::optional<std::string> of_data;
        if (!options.data.empty())
            of_data = read_attached_text(options.data, name);
        if (of_data && std::string_view{name} == bert_vocabulary_name)
            check_vocabulary(*of_data, of_model, options, config);
        if (of_data && of_model && std::string_view{name} == bert_tokenizer_name)
            check_tokenizer(*of_data, *of_model, options);
        if (of_data || of_model)
            files.push_back({name, of_data ? *of_data : *of_model});
    }
    return files;
}

std::vector<AttachmentSchema> bert_text_attachments(const PartOptions& options) {
    std::vector<AttachmentSchema> attachments;
    if (options.data.empty())
        return attachments;
    for (const auto& [name, meaning] :
         {std::pair{bert_vocabulary_name, "the training data's vocabulary"},
          std::pair{bert_tokenizer_name, "the training data's tokenizer"}})
        if (const auto text = read_attached_text(options.data, name))
            attachments.push_back(
                {name, xxh64_of(*text), meaning, AttachmentSchema::Place::attribute});
    return attachments;
}

std::string meaning_of_ids(const BertConfig& config) {
    return "ids of the vocabulary (vocab_size " + std::to_string(config.vocab_size) + ")";
}

FieldSchema ragged_ids(const BertConfig& config) {
    return {.name = "input_ids",
            .is_ragged = true,
            .max_row_length = config.max_position_embeddings,
            .minimum = 0,
            .maximum = static_cast<double>(config.vocab_size - 1),
            .meaning = meaning_of_ids(config)};
}

}  // namespace hetseq
