#include "roofline_report.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/json.hpp"
#include "hetseq/state/step_cost_file.hpp"

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

struct Total {
    std::int64_t calls = 0;
    double flops = 0;
    double bytes = 0;
};

void add(const OperatorWork& work, Total& total) {
    ++total.calls;
    total.flops += work.flops;
    for (const std::int64_t bytes : work.tensor_bytes)
        total.bytes += static_cast<double>(bytes);
}

Json total_json(const Total& total) {
    return {{"operators", total.calls}, {"gflop", total.flops / 1e9}, {"mb", total.bytes / 1e6}};
}

Json work_json(std::span<const OperatorWork> operators) {
    Total total;
    for (const OperatorWork& work : operators)
        add(work, total);
    return total_json(total);
}

// By name, most bytes first: that is what most operators are bound by.
Json largest_json(std::span<const OperatorWork> operators) {
    constexpr std::size_t most = 12;
    std::map<std::string, Total> by_name;
    for (const OperatorWork& work : operators)
        add(work, by_name[work.name]);
    std::vector<std::pair<std::string, Total>> sorted{by_name.begin(), by_name.end()};
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.second.bytes > b.second.bytes;
    });
    Json largest = Json::object();
    for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i)
        largest[sorted[i].first] = total_json(sorted[i].second);
    return largest;
}

Json gpu_json(const StepCounts& counts, Precision precision, const GpuPeaks& gpu) {
    const StepCounts::Pass& pass = counts.passes.back();
    const RooflineBound bound = roofline(pass.operators, gpu);
    const RooflineBound update = roofline(counts.update, gpu);
    const double units = static_cast<double>(pass.units);
    return {{"name", gpu.title},
            {"tflops", peak_tflops(gpu, precision)},
            {"memory_gb_s", gpu.memory_gb_s},
            {"cache_mb", gpu.cache_mb},
            {"compute_ms", bound.compute_ms},
            {"memory_ms", bound.memory_ms},
            {"device_ms", bound.device_ms},
            {"launch_ms", bound.launch_ms},
            {"forward_backward_ms", bound.ms()},
            {"update_ms", update.ms()},
            {"most_units_per_second", 1000 * units / (bound.ms() + update.ms())}};
}

}  // namespace

Json roofline_json(const StepCounts& counts, Precision precision, std::span<const GpuPeaks> gpus) {
    const StepCounts::Pass& pass = counts.passes.back();
    Json json{{"samples", pass.samples},
              {"units", pass.units},
              {"micro_batches", pass.micro_batches},
              {"numbers_read", pass.numbers_read},
              {"forward_backward", work_json(pass.operators)},
              {"update", work_json(counts.update)},
              {"largest", largest_json(pass.operators)},
              {"launch_us", launch_us}};
    for (const GpuPeaks& gpu : gpus)
        json["devices"][gpu.name] = gpu_json(counts, precision, gpu);
    if (gpus.size() == 1)
        json["cost"] = parse_json<Json>(step_cost_json(roofline_cost(counts, gpus.front())));
    return json;
}

}  // namespace hetseq
