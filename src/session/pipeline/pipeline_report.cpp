#include "hetseq/session/pipeline/pipeline_report.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/record/summary.hpp"
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

}  // namespace

std::string pipeline_report(const Replica& replica, const RunSettings& settings) {
    if (replica.stage() == nullptr)
        return "";
    const PipelineLayout& layout = replica.stage()->layout();
    const std::vector<ChainUnit> chain = replica.model().chain();
    std::vector<std::vector<std::string>> rows{
        {"stage", "rank", "host", "units", "what", "micro-batches in flight"}};
    for (std::size_t s = 0; s < layout.ranks.size(); ++s) {
        const UnitRange& units = layout.cut.units[s];
        const int rank = layout.ranks[s];
        rows.push_back({std::to_string(s),
                        std::to_string(rank),
                        settings.topology.rank(rank).host,
                        std::to_string(units.size()),
                        kinds_of(chain, units),
                        std::to_string(layout.cut.most_in_flight[s])});
    }
    std::string text = "one virtual worker of " + count_text(std::ssize(layout.ranks), "stage") +
                       ", micro-batches of " + std::to_string(layout.micro_batch) +
                       (settings.is_ragged() ? " tokens with padding" : " samples");
    if (layout.predicted_ms > 0)
        text += "; forward and backward should take " + format_number(layout.predicted_ms, 4) +
                " ms, of which stages wait " + percent_text(layout.bubble, 2);
    return text + "\n" + format_table(rows);
}

void describe_pipeline(const HostComm& world,
                       const Replica& replica,
                       double sent_mb,
                       Summary& summary) {
    if (replica.stage() == nullptr)
        return;
    const PipelineLayout& layout = replica.stage()->layout();
    summary.pipeline = {layout.micro_batch, layout.predicted_ms, layout.bubble};
    const std::vector<double> sent = world.all_gather(sent_mb);
    for (std::size_t s = 0; s < layout.ranks.size(); ++s) {
        const auto rank = static_cast<std::size_t>(layout.ranks[s]);
        summary.ranks[rank].stage = {
            .number = s,
            .first_unit = layout.cut.units[s].begin,
            .units = layout.cut.units[s].size(),
            .in_flight = layout.cut.most_in_flight[s],
            .sent_mb = sent[rank],
            .planned_mb =
                layout.predicted_ms > 0 ? sum_of(replica.memory().terms(layout.ranks[s])) : 0};
    }
}

}  // namespace hetseq
