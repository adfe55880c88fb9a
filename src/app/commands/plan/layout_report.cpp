#include "layout_report.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/plan/layout/cluster_layouts.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t most_named = 4;  // ranks of like stages
constexpr std::size_t most_kinds = 4;  // of a stage's layers

// A layout on a described cluster.
class LayoutTable {
public:
    explicit LayoutTable(const Cluster& cluster)
        : cluster_{cluster}, ranks_{planned_ranks(cluster)} {
        for (const LayerClass& layer : cluster.layers)
            layers_.insert(layers_.end(), static_cast<std::size_t>(layer.count), &layer);
    }

    const NodeClass& node(int rank) const {
        return cluster_.nodes[ranks_[static_cast<std::size_t>(rank)].node];
    }
    // Of its rank's memory; none where the description does not say it.
    std::optional<double> memory(const WorkerPlan& worker, std::size_t stage) const {
        const double has_mib = cluster_.devices[node(worker.ranks[stage]).device].memory_mib;
        if (has_mib == 0)
            return {};
        return worker.memory[stage].needed_mb / (usable_memory * has_mib);
    }
    std::optional<double> fullest(const LayoutPlan& plan) const;
    std::string layers_of(const ChainStage& stage) const;

private:
    const Cluster& cluster_;
    std::vector<PlannedRank> ranks_;
    std::vector<const LayerClass*> layers_;
};

std::optional<double> LayoutTable::fullest(const LayoutPlan& plan) const {
    std::optional<double> most;
    for (const WorkerPlan& worker : plan.workers)
        for (std::size_t s = 0; s < worker.stages.size(); ++s)
            if (const auto part = memory(worker, s))
                most = std::max(most.value_or(0), *part);
    return most;
}

// "stem, 3 block": kinds of neighbours, each once; "stem to 7 block3" where these are many.
std::string LayoutTable::layers_of(const ChainStage& stage) const {
    std::vector<std::string> texts;
    for (std::size_t begin = stage.begin; begin < stage.end;) {
        std::size_t end = begin + 1;
        while (end < stage.end && layers_[end] == layers_[begin])
            ++end;
        texts.push_back((end - begin == 1 ? "" : std::to_string(end - begin) + " ") +
                        layers_[begin]->name);
        begin = end;
    }
    return texts.size() <= most_kinds ? join(texts, ", ") : texts.front() + " to " + texts.back();
}

std::string percent_or_blank(const std::optional<double>& part) {
    return part ? percent_text(*part, 2) : "";
}

std::string layout_table(const LayoutTable& table, const std::vector<LayoutPlan>& layouts) {
    Rows rows{{"layout",
               "ranks",
               "ms an update",
               "computing",
               "sums",
               "optimizer",
               "memory of the fullest rank"}};
    for (const LayoutPlan& plan : layouts) {
        // Times of what does not fit say nothing.
        const auto ms = [&](double value) { return plan.fits() ? format_number(value, 4) : ""; };
        rows.push_back({plan.name,
                        std::to_string(plan.ranks()),
                        ms(plan.update_ms),
                        ms(plan.compute_ms),
                        ms(plan.reduce_ms),
                        ms(plan.optimizer_ms),
                        plan.fits() ? percent_or_blank(table.fullest(plan)) : plan.why_not});
    }
    return format_table(rows);
}

// Workers that do the same on like nodes.
using LikeWorkers = std::vector<const WorkerPlan*>;

std::vector<LikeWorkers> like_workers(const LayoutTable& table, const LayoutPlan& plan) {
    const auto are_like = [&](const WorkerPlan& a, const WorkerPlan& b) {
        return std::tie(a.stages, a.micro_batch, a.units) ==
                   std::tie(b.stages, b.micro_batch, b.units) &&
               std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), [&](int one, int other) {
                   return &table.node(one) == &table.node(other);
               });
    };
    std::vector<LikeWorkers> groups;
    for (const WorkerPlan& worker : plan.workers) {
        const auto like = std::find_if(groups.begin(), groups.end(), [&](const LikeWorkers& group) {
            return are_like(*group.front(), worker);
        });
        if (like == groups.end())
            groups.push_back({&worker});
        else
            like->push_back(&worker);
    }
    return groups;
}

std::string ranks_text(const LikeWorkers& workers, std::size_t stage) {
    std::vector<std::string> texts;
    for (const WorkerPlan* worker : workers) {
        if (texts.size() == most_named) {
            texts.push_back("...");
            break;
        }
        texts.push_back(std::to_string(worker->ranks[stage]));
    }
    return join(texts, ", ");
}

std::string worker_table(const LayoutTable& table, const LayoutPlan& plan) {
    Rows rows{{"workers",
               "units each",
               "micro-batch",
               "ms",
               "waits",
               "stage",
               "ranks",
               "nodes",
               "memory",
               "layers",
               "what"}};
    for (const LikeWorkers& workers : like_workers(table, plan)) {
        const WorkerPlan& worker = *workers.front();
        for (std::size_t s = 0; s < worker.stages.size(); ++s) {
            std::vector<std::string> row(5);
            if (s == 0)
                row = {std::to_string(workers.size()),
                       std::to_string(worker.units),
                       std::to_string(worker.micro_batch),
                       format_number(worker.ms, 4),
                       worker.stages.size() > 1 ? percent_text(worker.bubble, 2) : ""};
            row.insert(row.end(),
                       {std::to_string(s),
                        ranks_text(workers, s),
                        table.node(worker.ranks[s]).name,
                        percent_or_blank(table.memory(worker, s)),
                        std::to_string(worker.stages[s].end - worker.stages[s].begin),
                        table.layers_of(worker.stages[s])});
            rows.push_back(std::move(row));
        }
    }
    return format_table(rows);
}

Json worker_json(const LayoutTable& table, const WorkerPlan& worker) {
    Json json{{"ranks", worker.ranks},
              {"units", worker.units},
              {"micro_batch", worker.micro_batch},
              {"extra_in_flight", worker.extra_in_flight},
              {"ms", worker.ms},
              {"bubble", worker.bubble},
              {"stages", Json::array()}};
    for (std::size_t s = 0; s < worker.stages.size(); ++s) {
        const auto memory = table.memory(worker, s);
        json["stages"].push_back({{"rank", worker.ranks[s]},
                                  {"nodes", table.node(worker.ranks[s]).name},
                                  {"layers", {worker.stages[s].begin, worker.stages[s].end}},
                                  {"needed_mib", worker.memory[s].needed_mb},
                                  {"memory", memory ? Json(*memory) : Json(nullptr)}});
    }
    return json;
}

}  // namespace

std::string layouts_text(const Cluster& cluster, const std::vector<LayoutPlan>& layouts) {
    if (layouts.empty())
        return "";
    const LayoutTable table(cluster);
    std::string text = "\nlayouts, the fastest that fits first\n" + layout_table(table, layouts);
    const LayoutPlan& best = layouts.front();
    if (!best.fits())
        return text +
               "\nno layout fits the ranks' memory: add ranks or nodes, lower 'kept-mib' as "
               "--recompute would, or add smaller micro-batches\n";
    return text + "\n" + best.name +
           (best.shards_state ? ", each rank with a part of the optimizer's state" : "") + "\n" +
           worker_table(table, best);
}

Json layouts_json(const Cluster& cluster, const std::vector<LayoutPlan>& layouts) {
    const LayoutTable table(cluster);
    Json json = Json::array();
    for (const LayoutPlan& plan : layouts) {
        const auto memory = table.fullest(plan);
        json.push_back({{"name", plan.name},
                        {"ranks", plan.ranks()},
                        {"update_ms", plan.update_ms},
                        {"compute_ms", plan.compute_ms},
                        {"reduce_ms", plan.reduce_ms},
                        {"optimizer_ms", plan.optimizer_ms},
                        {"memory", memory ? Json(*memory) : Json(nullptr)},
                        {"why_not", plan.why_not}});
    }
    return json;
}

Json best_layout_json(const Cluster& cluster, const std::vector<LayoutPlan>& layouts) {
    if (layouts.empty() || !layouts.front().fits())
        return nullptr;
    const LayoutPlan& best = layouts.front();
    const LayoutTable table(cluster);
    Json json{{"name", best.name}, {"shards_state", best.shards_state}, {"workers", Json::array()}};
    for (const WorkerPlan& worker : best.workers)
        json["workers"].push_back(worker_json(table, worker));
    return json;
}

}  // namespace hetseq
