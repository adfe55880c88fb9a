#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/nonzero.h>

#include "hetseq/util/error.hpp"
#include "hetseq/text/scores/bleu.hpp"
#include "hetseq/text/vocabulary.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/transformer/transformer.hpp"
#include "hetseq/task/parts.hpp"

#include "builtin_parts.hpp"
#include "task/scorers/translation_scorer.hpp"

namespace hetseq {

namespace {

const std::string source_vocabulary = "source_vocabulary";
const std::string target_vocabulary = "target_vocabulary";

const Option<double>& label_smoothing() {
    static const auto option = fraction_option(
        "label-smoothing", "0.1", "share of a target token's weight that all tokens get");
    return option;
}

const Option<double>& activation_dropout() {
    static const auto option = fraction_option(
        "activation-dropout", "0", "dropout inside the Transformer's feed-forward layers");
    return option;
}

const Option<std::string>& share_embeddings() {
    static const auto option = choice_option(
        "share-embeddings",
        {"auto", "none", "decoder", "all"},
        "auto",
        "tables of tokens that are one: the decoder's two (decoder), the encoder's too "
        "(all); auto: what the vocabularies allow");
    return option;
}

const Option<std::string>& positions() {
    static const auto option = choice_option(
        "positions", {"sinusoidal", "learned"}, "sinusoidal", "the Transformer's positions");
    return option;
}

const Option<bool>& pre_norm() {
    static const auto option =
        switch_option("pre-norm", "normalise before each part of a layer, not behind it");
    return option;
}

const Option<bool>& valid_bleu() {
    static const auto option =
        switch_option("valid-bleu",
                      "translate the validation data at each validation, and score it by BLEU")
            .changeable();
    return option;
}

const Option<std::int64_t>& valid_beam() {
    static const auto option =
        whole_number_option(
            "valid-beam", "5", "hypotheses that the search of --valid-bleu follows", 1, 100)
            .changeable();
    return option;
}

const Option<std::string>& valid_bleu_tokenize() {
    static const auto option =
        choice_option("valid-bleu-tokenize",
                      bleu_tokenizer_names(),
                      "13a",
                      "how --valid-bleu divides text into words; none: it is divided already")
            .changeable();
    return option;
}

struct Vocabularies {
    Vocabulary source, target;
    std::string origin;  // "the training data's"
};

// The vocabularies of --init-model if it has them, otherwise those of the training data.
Vocabularies vocabularies_of(const PartOptions& options) {
    namespace fs = std::filesystem;
    if (!options.init_model.empty()) {
        const fs::path folder = model_file(options.init_model).parent_path();
        if (fs::exists(folder / "source.vocabulary"))
            return {Vocabulary::read(folder / "source.vocabulary"),
                    Vocabulary::read(folder / "target.vocabulary"),
                    "--init-model's"};
    }
    if (options.data.empty())
        throw BadConfig("no data were given",
                        "--data: a translator's vocabularies are in its training data",
                        "give files that hetseq prepare translation made");
    const auto read = [&](const std::string& name) {
        return Vocabulary::parse(read_attachment(options.data, name),
                                 options.data + ": dataset '" + name + "'");
    };
    return {read(source_vocabulary), read(target_vocabulary), "the training data's"};
}

TransformerConfig::SharedEmbeddings shared_of(const PartOptions& options,
                                              const Vocabularies& vocabularies) {
    using Shared = TransformerConfig::SharedEmbeddings;
    const bool are_one = vocabularies.source.checksum() == vocabularies.target.checksum();
    const std::string text = options.get(share_embeddings());
    if (text == "auto")
        return are_one ? Shared::all : Shared::decoder;
    const Shared shared = shared_embeddings_from_text(text, "--share-embeddings");
    if (shared == Shared::all && !are_one)
        throw BadConfig("--share-embeddings all",
                        "the source's vocabulary is another than the target's",
                        "prepare the data with --joined, or give decoder or none");
    return shared;
}

void check_sizes(const TransformerConfig& config, const Vocabularies& vocabularies) {
    const std::pair<std::int64_t, std::int64_t> sizes[] = {
        {config.source_vocab_size, vocabularies.source.size()},
        {config.target_vocab_size, vocabularies.target.size()}};
    for (const auto& [of_model, of_vocabulary] : sizes)
        if (of_model != of_vocabulary)
            throw BadConfig(
                "the model is for a vocabulary of " + std::to_string(of_model) + " entries",
                vocabularies.origin + " has " + std::to_string(of_vocabulary),
                "use the data or the model that belong together");
}

// --init-model's config.json says what the network is; otherwise the options do.
TransformerConfig config_of(const PartOptions& options, const Vocabularies& vocabularies) {
    TransformerConfig config;
    const bool has_own = !options.init_model.empty() && options.model_config.empty() &&
                         std::filesystem::exists(model_config_file(options.init_model));
    if (has_own) {
        config = read_transformer_config(model_config_file(options.init_model));
        check_sizes(config, vocabularies);
    } else {
        config = transformer_config(options.model_config.empty() ? "base" : options.model_config);
        config.source_vocab_size = vocabularies.source.size();
        config.target_vocab_size = vocabularies.target.size();
        config.shared_embeddings = shared_of(options, vocabularies);
        config.positions = positions_from_text(options.get(positions()), "--positions");
        config.pre_norm = options.get(pre_norm());
        config.activation_dropout = options.get(activation_dropout());
        config.begin_id = vocabularies.target.begin();
        config.end_id = vocabularies.target.end();
    }
    if (options.dropout)
        config.dropout = *options.dropout;
    if (options.attention_dropout)
        config.attention_dropout = *options.attention_dropout;
    return config;
}

// 0: any number. Another model may mean something else by --model-config; what is wrong with a
// Transformer's, making it says.
std::int64_t positions_of_model(const PartOptions& options) {
    try {
        if (!options.init_model.empty() && options.model_config.empty() &&
            std::filesystem::exists(model_config_file(options.init_model)))
            return read_transformer_config(model_config_file(options.init_model)).max_positions;
        return transformer_config(options.model_config.empty() ? "base" : options.model_config)
            .max_positions;
    } catch (const Error&) {
        return 0;
    }
}

BleuOptions bleu_of(const PartOptions& options) {
    const std::vector<std::string>& names = bleu_tokenizer_names();
    const auto name = std::find(names.begin(), names.end(), options.get(valid_bleu_tokenize()));
    BleuOptions bleu;
    bleu.tokenizer = static_cast<BleuTokenizer>(name - names.begin());
    return bleu;
}

// Lengths as fairseq's users allow them where they validate by BLEU: a model that has learned
// nothing yet does not end its sentences.
BeamOptions search_of(const PartOptions& options) {
    return {.beam = options.get(valid_beam()), .length_factor = 1.2, .length_constant = 10};
}

std::shared_ptr<Model> make_translator(const PartOptions& options) {
    const Vocabularies vocabularies = vocabularies_of(options);
    TransformerSetup setup;
    setup.label_smoothing = options.get(label_smoothing());
    setup.vocabularies = {{"source.vocabulary", vocabularies.source.bytes()},
                          {"target.vocabulary", vocabularies.target.bytes()}};
    if (options.get(valid_bleu())) {
        setup.scores = {"bleu"};
        setup.make_scorer = [targets = vocabularies.target,
                             beam = search_of(options),
                             bleu = bleu_of(options)](const Transformer& model) {
            return make_translation_scorer(model, targets, beam, bleu);
        };
    }
    return make_transformer(config_of(options, vocabularies), std::move(setup));
}

// The shards of `hetseq prepare translation`.
CorpusSchema translation_schema(const PartOptions& options) {
    const Vocabularies vocabularies = vocabularies_of(options);
    const std::int64_t positions = positions_of_model(options);
    const auto tokens =
        [&](const std::string& name, const Vocabulary& vocabulary, std::int64_t least) {
            return FieldSchema{.name = name,
                               .is_ragged = true,
                               .max_row_length = positions,
                               .min_row_length = least,
                               .minimum = 0,
                               .maximum = static_cast<double>(vocabulary.size() - 1),
                               .meaning = "ids of the vocabulary (" +
                                          std::to_string(vocabulary.size()) + " entries)"};
        };
    return {.kind = "translation",
            .fields = {tokens("source", vocabularies.source, 1),
                       tokens("target", vocabularies.target, 0)},
            .units_field = "target",
            .attachments = {{source_vocabulary,
                             vocabularies.source.checksum(),
                             vocabularies.origin + " vocabulary of sources"},
                            {target_vocabulary,
                             vocabularies.target.checksum(),
                             vocabularies.origin + " vocabulary of targets"}}};
}

/// Weight: target tokens, end symbols included. Tensors as `Transformer` takes them.
class TranslationCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        const at::Tensor lengths = row_lengths(rows, "target");                     // (n)
        const at::Tensor target = padded_rows(rows, "target", 0, 1).to(at::kLong);  // (n, T)
        const std::int64_t longest = target.size(1);
        const at::Tensor is_token = at::arange(longest).unsqueeze(0) < lengths.unsqueeze(1);
        MicroBatch batch;
        batch.tensors["source"] = padded_rows(rows, "source", 0, 1).to(at::kLong);
        batch.tensors["source_lengths"] = row_lengths(rows, "source").to(at::kLong);
        batch.tensors["target_input"] =
            at::constant_pad_nd(target.narrow(1, 0, longest - 1), {1, 0}, begin_id);
        batch.tensors["positions"] = at::nonzero(is_token.flatten()).squeeze(1);  // (N)
        batch.tensors["labels"] = rows.at("target").to(at::kLong);                // (N)
        batch.weights = {static_cast<double>(rows.at("target").numel())};
        return batch;
    }

private:
    static constexpr std::int64_t begin_id = 1;  // of every vocabulary
};

TranslationModel load_translation(const std::filesystem::path& folder,
                                  const std::function<void(Model& network)>& load) {
    const TransformerConfig config = read_transformer_config(folder / "config.json");
    Vocabulary source = Vocabulary::read(folder / "source.vocabulary");
    Vocabulary target = Vocabulary::read(folder / "target.vocabulary");
    if (source.size() != config.source_vocab_size || target.size() != config.target_vocab_size)
        throw BadData(folder.string() + ": the vocabularies have " + std::to_string(source.size()) +
                          " and " + std::to_string(target.size()) + " entries",
                      "config.json says " + std::to_string(config.source_vocab_size) + " and " +
                          std::to_string(config.target_vocab_size),
                      "put the files of one model together");
    const std::shared_ptr<Transformer> network = make_transformer(config);
    load(*network);
    return {network, Translator(*network), std::move(source), std::move(target)};
}

void refuse_to_export(const std::filesystem::path& folder) {
    throw BadConfig("transformers has no model like that of " + folder.string(),
                    "it is hetseq's Transformer",
                    "hetseq translate " + folder.string() + " < lines uses it");
}

}  // namespace

void add_translation_parts(Parts& parts) {
    parts.models.add("transformer",
                     make_translator,
                     {label_smoothing(),
                      activation_dropout(),
                      share_embeddings(),
                      positions(),
                      pre_norm(),
                      valid_bleu(),
                      valid_beam(),
                      valid_bleu_tokenize()});
    parts.datasets.add("translation", translation_schema);
    parts.batchings.add("translation",
                        [](const PartOptions&) { return std::make_unique<TranslationCollator>(); });
    parts.tasks.add("translation",
                    {.help = "translation of sentences: an encoder-decoder Transformer",
                     .model = "transformer",
                     .dataset = "translation",
                     .batching = "translation",
                     .defaults = {{"optimizer", "adam"},
                                  {"lr", "5e-4"},
                                  {"lr-scheduler", "inverse_sqrt"},
                                  {"warmup-updates", "4000"},
                                  {"adam-betas", "0.9,0.98"},
                                  {"adam-eps", "1e-9"},
                                  {"max-tokens", "4096"}},
                     .instead_of_predict = "hetseq translate RUN < lines"});
    parts.translations.add("transformer", load_translation);
    parts.exports.add("transformer", {.check = refuse_to_export});
}

}  // namespace hetseq
