#include "hetseq/session/pipeline/pipeline_report.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/train/trainer.hpp"
#include "hetseq/session/replica.hpp"

namespace hetseq {

namespace {

// "embeddings, 3 layer": kinds of neighbours, each once.
std::string kinds_of(const std::vector<ChainUnit>& chain, UnitRange units) {
    std::vector<std::string> texts;
    for (std::size_t begin = units.begin; begin < units.end;) {
        std::size_t end = begin + 1;
        while (end < units.end && chain[end].kind == chain[begin].kind)
            ++end;
        texts.push_back(end - begin == 1 ? chain[begin].kind
                                         : std::to_string(end - begin) + " " + chain[begin].kind);
        begin = end;
    }
    return join(texts, ", ");
}

// What comes behind the worker's name.
std::string worker_report(const WorkerLayout& worker,
                          const std::vector<ChainUnit>& chain,
                          const RunSettings& settings) {
    std::vector<std::vector<std::string>> rows{
        {"stage", "rank", "host", "units", "what", "micro-batches in flight"}};
    for (std::size_t s = 0; s < worker.ranks.size(); ++s) {
        const UnitRange& units = worker.cut.units[s];
        const int rank = worker.ranks[s];
        rows.push_back({std::to_string(s),
                        std::to_string(rank),
                        settings.topology.rank(rank).host,
                        std::to_string(units.size()),
                        kinds_of(chain, units),
                        std::to_string(worker.cut.most_in_flight[s])});
    }
    std::string text = " of " + count_text(std::ssize(worker.ranks), "stage") +
                       ", micro-batches of " + std::to_string(worker.micro_batch) +
                       (settings.is_ragged() ? " tokens with padding" : " samples");
    if (worker.predicted_ms > 0)
        text += "; forward and backward should take " + format_number(worker.predicted_ms, 4) +
                " ms, of which stages wait " + percent_text(worker.bubble, 2);
    return text + "\n" + format_table(rows);
}

}  // namespace

std::string pipeline_report(const Replica& replica, const RunSettings& settings) {
    if (replica.stage() == nullptr)
        return "";
    const PipelineLayout& layout = replica.stage()->layout();
    std::string text;
    for (std::size_t w = 0; w < layout.workers.size(); ++w)
        text += (layout.workers.size() == 1 ? "one virtual worker"
                                            : "virtual worker " + std::to_string(w)) +
                worker_report(layout.workers[w], replica.model().chain(), settings);
    return text;
}

void describe_pipeline(const HostComm& world,
                       const Replica& replica,
                       const TrainerReport& report,
                       Summary& summary) {
    if (replica.stage() == nullptr)
        return;
    const std::vector<double> sent = world.all_gather(report.sent_mb);
    const std::vector<double> pass_ms = world.all_gather(report.pass_ms.median());
    const std::vector<WorkerLayout>& workers = replica.stage()->layout().workers;
    for (std::size_t w = 0; w < workers.size(); ++w) {
        const WorkerLayout& worker = workers[w];
        summary.workers.push_back({.ranks = worker.ranks,
                                   .micro_batch = worker.micro_batch,
                                   .planned_ms = worker.predicted_ms,
                                   .planned_bubble = worker.bubble,
                                   .ms = pass_ms[static_cast<std::size_t>(worker.ranks.front())]});
        for (std::size_t s = 0; s < worker.ranks.size(); ++s) {
            const auto rank = static_cast<std::size_t>(worker.ranks[s]);
            summary.ranks[rank].stage = {
                .worker = w,
                .number = s,
                .first_unit = worker.cut.units[s].begin,
                .units = worker.cut.units[s].size(),
                .in_flight = worker.cut.most_in_flight[s],
                .sent_mb = sent[rank],
                .planned_mb =
                    worker.predicted_ms > 0 ? sum_of(replica.memory().terms(worker.ranks[s])) : 0};
        }
    }
}

}  // namespace hetseq
