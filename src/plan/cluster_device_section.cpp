#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/text.hpp"
#include "hetseq/plan/time_points.hpp"

#include "cluster_sections.hpp"
#include "ini_fields.hpp"

namespace hetseq {

namespace {

constexpr double most_mib = 1e9;

constexpr std::size_t most_points = 256;

constexpr double least_tflops = 1e-6;
constexpr double most_tflops = 1e6;

// "8=12.5, 16=20": units and their time [ms].
std::vector<TimePoint> read_points(const IniEntry& entry, const std::string& file) {
    std::vector<TimePoint> points;
    for (const std::string& word : words_of(entry.value)) {
        const auto equals = word.find('=');
        if (equals == std::string::npos)
            reject_line(file,
                        entry.line,
                        "times: cannot read '" + word + "'",
                        "a time is UNITS=MS",
                        "write for example times = 8=12.5, 16=20");
        const std::int64_t units = to_integer(word.substr(0, equals), entry, file, 1, most_units);
        points.push_back({static_cast<double>(units),
                          to_number(word.substr(equals + 1), entry, file, least_unit_ms, most_ms)});
    }
    return points;
}

// `given`: the key that gives the speed as a line, or null.
void read_times(IniFields& fields,
                DeviceClass& device,
                const char* given,
                const std::string& file) {
    std::vector<TimePoint> points;
    fields.each("times", [&](const IniEntry& entry) {
        const auto more = read_points(entry, file);
        points.insert(points.end(), more.begin(), more.end());
    });
    if (points.size() > most_points)
        fields.reject("times", "more than 256 times");
    for (const auto& [key, is_given] : {std::pair{"times", !points.empty()},
                                        std::pair{"costs", !device.costs.empty()},
                                        std::pair{"measured", !device.measured.empty()}}) {
        if (!is_given)
            continue;
        if (given != nullptr)
            fields.reject(key,
                          std::string("both '") + given + "' and '" + key + "'",
                          "each of them gives the speed",
                          "remove one");
        given = key;
    }
    if (points.empty())
        return;
    const StepCost measured = cost_of_times(points, device.cost.micro_batch);
    device.cost.start_ms = measured.start_ms;
    device.cost.micro_batch_ms = measured.micro_batch_ms;
    device.cost.unit_ms = measured.unit_ms;
    device.cost.table = measured.table;
    device.cost.micro_batch = measured.micro_batch;
    device.has_times = true;
}

// "block1=0.4, head=0.01": a kind of layers, and forward and backward of a unit [ms].
void read_layer_ms(const IniEntry& entry,
                   const std::string& file,
                   const std::vector<std::string>& layers,
                   std::map<std::string, double>& times) {
    for (const std::string& word : words_of(entry.value)) {
        const auto equals = word.find('=');
        const std::string layer = word.substr(0, equals);
        if (equals == std::string::npos)
            reject_line(file,
                        entry.line,
                        "layer-ms: cannot read '" + word + "'",
                        "a time is LAYER=MS",
                        "write for example layer-ms = block=0.4, head=0.01");
        if (std::find(layers.begin(), layers.end(), layer) == layers.end())
            reject_line(file,
                        entry.line,
                        "layer-ms: no layer '" + layer + "'",
                        "",
                        suggestion(layer, layers));
        const double ms = to_number(word.substr(equals + 1), entry, file, least_unit_ms, most_ms);
        if (!times.emplace(layer, ms).second)
            reject_line(file, entry.line, "layer-ms: '" + layer + "' stands twice");
    }
}

void read_layer_times(IniFields& fields,
                      DeviceClass& device,
                      const std::string& file,
                      const std::vector<LayerClass>& layers) {
    const bool has_tflops = fields.number("tflops", device.tflops, least_tflops, most_tflops);
    const bool has_launch = fields.number("launch-ms", device.launch_ms, 0, most_ms);
    const bool has_messages =
        fields.number("message-ms-per-mib", device.message_ms_per_mib, 0, most_ms);
    const bool has_layers = fields.each("layer-ms", [&](const IniEntry& entry) {
        if (!layers.empty())
            read_layer_ms(entry, file, names_of(layers), device.layer_ms);
    });
    for (const auto& [key, is_given] : {std::pair{"tflops", has_tflops},
                                        std::pair{"launch-ms", has_launch},
                                        std::pair{"message-ms-per-mib", has_messages},
                                        std::pair{"layer-ms", has_layers}})
        if (is_given && layers.empty())
            fields.reject(key,
                          std::string("'") + key + "', but the model has no layers",
                          "it times layers",
                          "describe them, each kind as a [layer NAME]");
}

}  // namespace

DeviceClass read_device(const IniSection& section,
                        const std::string& file,
                        const std::vector<LayerClass>& layers) {
    IniFields fields(section, file);
    DeviceClass device;
    device.name = section.name;
    device.cost.micro_batch = most_units;
    const bool has_start = fields.number("start-ms", device.cost.start_ms, 0, most_ms);
    const bool has_fixed = fields.number("micro-batch-ms", device.cost.micro_batch_ms, 0, most_ms);
    const bool has_line = fields.number("unit-ms", device.cost.unit_ms, least_unit_ms, most_ms);
    const char* line_key = has_line    ? "unit-ms"
                           : has_fixed ? "micro-batch-ms"
                           : has_start ? "start-ms"
                                       : nullptr;
    std::int64_t memory_units = most_units;
    fields.integer("memory-units", memory_units, 1, most_units);
    fields.integer("micro-batch", device.cost.micro_batch, 1, most_units);
    device.cost.micro_batch = std::min(device.cost.micro_batch, memory_units);
    fields.integer("max-units", device.cost.max_units, 0, most_units);
    device.update_given = fields.number("update-ms", device.update_ms, 0, most_ms);
    fields.number("memory-mib", device.memory_mib, 1, most_mib);
    fields.number("process-mib", device.process_mib, 0, most_mib);
    fields.number("activations-mib", device.cost.activations_mb, 0, most_mib);
    fields.text("costs", device.costs);
    fields.text("measured", device.measured);
    device.has_times = has_line;
    read_times(fields, device, line_key, file);
    read_layer_times(fields, device, file, layers);
    fields.finish();
    return device;
}

}  // namespace hetseq
