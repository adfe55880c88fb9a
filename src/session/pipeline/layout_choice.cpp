#include "hetseq/session/pipeline/layout_choice.hpp"

#include <utility>

#include "hetseq/util/json.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/state/measured_chain_json.hpp"
#include "hetseq/state/step_cost_file.hpp"
#include "hetseq/train/record/summary.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const WorkerLayout& worker) {
    Json json{{"ranks", worker.ranks},
              {"micro_batch", worker.micro_batch},
              {"extra_in_flight", worker.extra_in_flight},
              {"predicted_ms", worker.predicted_ms},
              {"bubble", worker.bubble},
              {"activations_mb", worker.activations_mb},
              {"stages", Json::array()}};
    for (const UnitRange& units : worker.cut.units)
        json["stages"].push_back(units.size());
    if (worker.cost)
        json["cost"] = step_cost_json(*worker.cost);
    return json;
}

WorkerLayout worker_of(const Json& json) {
    WorkerLayout worker = given_worker(
        json.at("ranks"), json.at("stages"), json.at("micro_batch"), json.at("extra_in_flight"));
    worker.predicted_ms = json.at("predicted_ms");
    worker.bubble = json.at("bubble");
    worker.activations_mb = json.at("activations_mb").get<std::vector<double>>();
    if (json.contains("cost"))
        worker.cost = parse_step_cost(json.at("cost"));
    return worker;
}

Json json_of(const ComparedLayout& layout) {
    return {{"name", layout.name},
            {"ranks", layout.ranks},
            {"update_ms", layout.update_ms},
            {"compute_ms", layout.compute_ms},
            {"reduce_ms", layout.reduce_ms},
            {"memory", layout.memory},
            {"why_not", layout.why_not}};
}

ComparedLayout compared_of(const Json& json) {
    return {.name = json.at("name"),
            .ranks = json.at("ranks"),
            .update_ms = json.at("update_ms"),
            .compute_ms = json.at("compute_ms"),
            .reduce_ms = json.at("reduce_ms"),
            .memory = json.at("memory"),
            .why_not = json.at("why_not")};
}

}  // namespace

std::string layout_choice_json(const LayoutChoice& choice) {
    Json json{{"ranks", choice.ranks},
              {"shards_state", choice.shards_state},
              {"lends_to_checkpoints", choice.lends_to_checkpoints},
              {"compared", Json::array()}};
    for (const ComparedLayout& layout : choice.compared)
        json["compared"].push_back(json_of(layout));
    if (!choice.micro_batches.empty())
        json["micro_batches"] = choice.micro_batches;
    if (choice.chain)
        json["chain"] = measured_chain_to_json(*choice.chain);
    if (choice.pipelines) {
        const PipelineLayout& layout = *choice.pipelines;
        json["pipelines"] = {{"batch", layout.batch}, {"workers", Json::array()}};
        for (const WorkerLayout& worker : layout.workers)
            json["pipelines"]["workers"].push_back(json_of(worker));
    }
    return json_text(json);
}

LayoutChoice parse_layout_choice(const std::string& text) {
    const Json json = parse_json<Json>(text);
    LayoutChoice choice{.ranks = json.at("ranks"),
                        .micro_batches = json.value("micro_batches", std::vector<std::int64_t>{}),
                        .shards_state = json.at("shards_state"),
                        .lends_to_checkpoints = json.value("lends_to_checkpoints", false)};
    for (const Json& layout : json.at("compared"))
        choice.compared.push_back(compared_of(layout));
    if (json.contains("chain"))
        choice.chain = measured_chain_from_json(json.at("chain"));
    if (!json.contains("pipelines"))
        return choice;
    const Json& pipelines = json.at("pipelines");
    choice.pipelines = PipelineLayout{.workers = {}, .batch = pipelines.at("batch")};
    for (const Json& worker : pipelines.at("workers"))
        choice.pipelines->workers.push_back(worker_of(worker));
    return choice;
}

void describe_layouts(const LayoutChoice& choice, Summary& summary) {
    summary.layouts = choice.compared;
    summary.chain = choice.chain;
}

std::string compared_report(const LayoutChoice& choice) {
    if (choice.compared.empty())
        return "";
    std::vector<std::vector<std::string>> rows{
        {"layout", "ranks", "ms an update", "computing", "sums", "memory of the fullest rank"}};
    for (const ComparedLayout& layout : choice.compared)
        rows.push_back({layout.name,
                        std::to_string(layout.ranks),
                        format_number(layout.update_ms, 4),
                        format_number(layout.compute_ms, 4),
                        format_number(layout.reduce_ms, 4),
                        layout.why_not.empty() ? percent_text(layout.memory, 2) : layout.why_not});
    return "layouts, as planned; the first one is taken\n" + format_table(rows);
}

}  // namespace hetseq
