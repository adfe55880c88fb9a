#include <string>
#include <utility>
#include <vector>

#include "cluster_sections.hpp"
#include "ini_fields.hpp"

namespace hetseq {

namespace {

// Searching a cut takes the square of their number.
constexpr std::int64_t most_layers = 256;

constexpr double most_parameters_m = 1e6;
constexpr double most_gflop = 1e9;
constexpr double most_sample_mib = 1e6;

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

}  // namespace hetseq
