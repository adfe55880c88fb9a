#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/text.hpp"

#include "cluster_sections.hpp"
#include "ini_fields.hpp"

namespace hetseq {

namespace {

// Searching a cut takes the square of their number.
constexpr std::int64_t most_layers = 256;

constexpr double most_parameters_m = 1e6;
constexpr double rounding = 1e-9;  // of sums of parameters
constexpr double most_gflop = 1e9;
constexpr double most_sample_mib = 1e6;

// "embeddings, head": numbers of layers, behind those in `numbers`.
void add_layers(const IniEntry& entry,
                const std::string& file,
                const std::vector<LayerClass>& layers,
                std::vector<std::size_t>& numbers) {
    const std::vector<std::string> names = names_of(layers);
    if (names.empty())
        reject_line(file,
                    entry.line,
                    "[tied NAME], but no layers",
                    "it names layers that share parameters",
                    "describe them as [layer NAME]; those of a run come with --from, and what "
                    "they share, too");
    for (const std::string& word : words_of(entry.value)) {
        const auto found = std::find(names.begin(), names.end(), word);
        if (found == names.end())
            reject_line(file,
                        entry.line,
                        "no layer '" + word + "'",
                        "[tied NAME] names layers that share parameters",
                        suggestion(word, names));
        const auto number = static_cast<std::size_t>(found - names.begin());
        if (layers[number].count > 1)
            reject_line(file,
                        entry.line,
                        "there are several layers '" + word + "'",
                        "a stage holds one copy of what its layers share",
                        "describe each layer that shares parameters as a [layer NAME] of its own");
        if (std::find(numbers.begin(), numbers.end(), number) != numbers.end())
            reject_line(file, entry.line, "'" + word + "' stands twice");
        numbers.push_back(number);
    }
}

// Of one layer, what all groups share.
double shared_parameters(const std::vector<TiedLayers>& groups, std::size_t layer) {
    double sum = 0;
    for (const TiedLayers& tied : groups)
        if (std::find(tied.layers.begin(), tied.layers.end(), layer) != tied.layers.end())
            sum += tied.parameters;
    return sum;
}

}  // namespace

void read_layer(const IniSection& section,
                const std::string& file,
                std::vector<LayerClass>& layers) {
    IniFields fields(section, file);
    LayerClass layer;
    layer.name = section.name;
    fields.integer("count", layer.count, 1, most_layers);
    double parameters_m = 0;
    const auto needed = [&](const char* key, double& value, double most) {
        if (!fields.number(key, value, 0, most))
            fields.reject(key,
                          section.title() + " has no '" + key + "'",
                          "layouts need each layer's parameters, operations and memory",
                          "give it; 0 where there is none");
    };
    needed("parameters-m", parameters_m, most_parameters_m);
    needed("gflop", layer.gflop, most_gflop);
    needed("kept-mib", layer.kept_mib, most_sample_mib);
    needed("output-mib", layer.output_mib, most_sample_mib);
    fields.number("workspace-mib", layer.workspace_mib, 0, most_sample_mib);
    fields.finish();
    layer.parameters = 1e6 * parameters_m;
    std::int64_t all = layer.count;
    for (const LayerClass& before : layers)
        all += before.count;
    if (all > most_layers)
        fields.reject("count",
                      "the model has more than 256 layers",
                      "each is a place to cut it",
                      "describe several as one");
    layers.push_back(std::move(layer));
}

void read_tied(const IniSection& section, const std::string& file, Cluster& cluster) {
    IniFields fields(section, file);
    TiedLayers tied;
    fields.each("layers", [&](const IniEntry& entry) {
        add_layers(entry, file, cluster.layers, tied.layers);
    });
    fields.each("filled", [&](const IniEntry& entry) {
        for (const std::string& word : words_of(entry.value))
            tied.filled.push_back(to_number(word, entry, file, 0, 1));
    });
    double parameters_m = 0;
    fields.number("parameters-m", parameters_m, 0, most_parameters_m);
    fields.finish();
    tied.parameters = 1e6 * parameters_m;
    if (tied.layers.size() < 2)
        fields.reject("layers",
                      section.title() + " names fewer than two layers",
                      "it describes parameters that several layers share",
                      "write for example layers = embeddings, head");
    if (!tied.filled.empty() && tied.filled.size() != tied.layers.size())
        fields.reject("filled",
                      "'filled' has " + count_text(std::ssize(tied.filled), "part") + " for " +
                          count_text(std::ssize(tied.layers), "layer"),
                      "it says what part of the gradients each layer fills",
                      "give one for each layer, or none where all is filled");
    for (const std::size_t layer : tied.layers)
        if (tied.parameters <= 0 || tied.parameters > cluster.layers[layer].parameters)
            fields.reject("parameters-m",
                          section.title() +
                              " needs 'parameters-m' of at most those of the layer '" +
                              cluster.layers[layer].name + "'",
                          "a layer's parameters are with those that it shares",
                          "correct one of them");
    for (const std::size_t layer : tied.layers)
        if (shared_parameters(cluster.tied, layer) + tied.parameters >
            (1 + rounding) * cluster.layers[layer].parameters)
            fields.reject("parameters-m",
                          section.title() +
                              " and others before it share more parameters than the "
                              "layer '" +
                              cluster.layers[layer].name + "' has",
                          "a parameter is in one [tied NAME] alone",
                          "remove one of them, or correct their 'parameters-m'");
    cluster.tied.push_back(std::move(tied));
}

}  // namespace hetseq
