#include "fine_tuning.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/text_lines.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"
#include "hetseq/model/files/model_file.hpp"

#include "bert_setup.hpp"

namespace hetseq {

namespace {

using ClassWeights = std::map<std::string, double>;

// A name may hold '=', so the last one divides.
ClassWeights class_weights_from(const std::string& text) {
    ClassWeights weights;
    for (const std::string& part : split(text, ',')) {
        const std::size_t at = part.rfind('=');
        if (at == std::string::npos || at == 0)
            option_value::reject(text, "LABEL=WEIGHT[,LABEL=WEIGHT...]");
        weights[part.substr(0, at)] = option_value::number(part.substr(at + 1));
    }
    return weights;
}

const Option<ClassWeights>& class_weights() {
    static const Option<ClassWeights> option{
        {.name = "class-weights",
         .type = "LABEL=X[,...]",
         .default_value = "",
         .help = "what the losses of these labels are multiplied by; of other labels 1"},
        class_weights_from};
    return option;
}

const Option<std::optional<double>>& classifier_dropout() {
    static const Option<std::optional<double>> option{
        {.name = "classifier-dropout",
         .type = "P",
         .default_value = "",
         .help = "dropout before the classifier; without it --dropout, or what the model's "
                 "config.json says"},
        [](const std::string& text) -> std::optional<double> {
            return text.empty() ? std::nullopt : std::optional{option_value::fraction(text)};
        }};
    return option;
}

const Option<std::int64_t>& freeze_layers() {
    static const auto option = whole_number_option(
        "freeze-layers",
        "-1",
        "the embeddings and the first N layers are not trained; 0: the embeddings alone; "
        "-1: all is trained",
        -1,
        1'000'000);
    return option;
}

const Option<double>& layer_lr_decay() {
    static const auto option =
        number_option("layer-lr-decay",
                      "1",
                      "a layer's learning rate is that of the one above it times this",
                      0,
                      1);
    return option;
}

std::vector<double> weights_of_labels(const ClassWeights& given,
                                      const std::vector<std::string>& labels) {
    if (given.empty())
        return {};
    for (const auto& [label, weight] : given)
        if (std::find(labels.begin(), labels.end(), label) == labels.end())
            throw BadConfig("--class-weights names the label '" + label + "'",
                            "the data have no such label",
                            suggestion(label, labels));
    std::vector<double> weights;
    for (const std::string& label : labels) {
        const auto found = given.find(label);
        weights.push_back(found == given.end() ? 1 : found->second);
    }
    return weights;
}

const Option<bool>& new_labels() {
    static const auto option = switch_option(
        "new-labels",
        "where --init-model's classifier has other labels than the data, a new one is "
        "drawn");
    return option;
}

std::optional<std::string> labels_of_data(const PartOptions& options) {
    return options.data.empty() ? std::nullopt : read_attached_text(options.data, labels_name);
}

// The classifier of --init-model.
struct ModelClassifier {
    std::vector<std::string> labels{};  // empty: it has none, or of another task
    bool nameless = false;
    bool of_another_task = false;
};

ModelClassifier classifier_of_model(const PartOptions& options, const std::string& architecture) {
    if (options.init_model.empty())
        return {};
    StoredClassifier stored;
    if (const auto file = model_config_file(options.init_model); std::filesystem::exists(file))
        stored = read_stored_classifier(file);
    if (stored.architecture.starts_with("BertFor") && stored.architecture != architecture)
        return {.of_another_task = true};
    if (stored.problem == "multi_label_classification")
        throw BadConfig(options.init_model + " gives a text any number of labels",
                        "its config.json has the problem_type multi_label_classification",
                        "take a model that gives each text one label");
    if (const auto text = text_beside_model(options, labels_name)) {
        std::istringstream lines{*text};
        return {.labels = read_text_lines(lines, labels_name)};
    }
    if (stored.architecture != architecture)
        return {};
    return {.labels = stored.labels, .nameless = stored.nameless()};
}

// A single label is a number's name, which may be any.
bool fits(const ModelClassifier& classifier, const std::vector<std::string>& labels) {
    if (classifier.nameless || classifier.labels.size() == 1)
        return classifier.labels.size() == labels.size();
    return classifier.labels.empty() || classifier.labels == labels;
}

}  // namespace

std::vector<OptionSpec> fine_tuning_options() {
    return {class_weights(), classifier_dropout(), freeze_layers(), layer_lr_decay(), new_labels()};
}

std::vector<std::string> labels_of(const PartOptions& options, const std::string& architecture) {
    const ModelClassifier of_model = classifier_of_model(options, architecture);
    const std::optional<std::string> of_data = labels_of_data(options);
    if (!of_data && of_model.labels.empty() && options.data.empty())
        throw BadConfig("the classifier's labels are not known",
                        "--data is missing",
                        "give data that hetseq prepare made");
    if (!of_data && !of_model.labels.empty())
        return of_model.labels;
    std::istringstream lines{of_data ? *of_data : read_required_text(options.data, labels_name)};
    std::vector<std::string> labels = read_text_lines(lines, labels_name);
    if (!fits(of_model, labels) && !options.get(new_labels()))
        throw BadConfig("the labels of " + options.init_model + " are not those of the data",
                        "the model's are " + join(of_model.labels, ", ") + "; those of " +
                            options.data + " are " + join(labels, ", "),
                        "prepare the data with --labels and a file of the model's labels, a line "
                        "each, or let --new-labels draw a new classifier");
    return labels;
}

BertConfig classifier_config(const PartOptions& options) {
    BertConfig config = bert_config_of(options);
    if (const auto given = options.get(classifier_dropout()))
        config.classifier_dropout = given;
    return config;
}

BertClassifierSetup classifier_setup(const PartOptions& options,
                                     const BertConfig& config,
                                     const std::string& architecture,
                                     const std::vector<std::string>& labels) {
    BertClassifierSetup setup{.labels = labels};
    const ModelClassifier of_model = classifier_of_model(options, architecture);
    setup.new_head = of_model.of_another_task || !fits(of_model, labels);
    setup.class_weights = weights_of_labels(options.get(class_weights()), labels);
    setup.frozen_layers = options.get(freeze_layers());
    setup.layer_decay = options.get(layer_lr_decay());
    setup.text_files = bert_text_files(options, config);
    setup.text_files.push_back({labels_name, join(labels, "\n") + "\n"});
    return setup;
}

std::vector<AttachmentSchema> labelled_attachments(const PartOptions& options) {
    std::vector<AttachmentSchema> attachments = bert_text_attachments(options);
    if (const auto labels = labels_of_data(options))
        attachments.push_back({labels_name,
                               xxh64_of(*labels),
                               "the training data's labels",
                               AttachmentSchema::Place::attribute});
    return attachments;
}

}  // namespace hetseq
