#include "hetseq/session/run_identity.hpp"

#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/replica.hpp"

namespace hetseq {

namespace {

std::string corpus_text(const Corpus& corpus) {
    std::vector<std::string> fields;
    for (const auto& [field, shape] : corpus.row_shapes())
        fields.push_back(field + " " + shape_text(shape));
    return join(fields, ", ");
}

// Of a pipeline: it decides a rank's speed, too.
std::string stage_text(const Replica& replica, int rank) {
    if (replica.stage() == nullptr)
        return "";
    const PipelineLayout& layout = replica.stage()->layout();
    const PipelineLayout::Place place = layout.place_of(rank);
    const UnitRange units = layout.units_of(rank);
    const std::string worker =
        layout.workers.size() == 1 ? "" : " of virtual worker " + std::to_string(place.worker);
    return ", stage " + std::to_string(place.stage) + " of " +
           std::to_string(layout.workers[place.worker].ranks.size()) + worker + ", units " +
           std::to_string(units.begin) + " to " + std::to_string(units.end);
}

}  // namespace

RunIdentity run_identity(const RunSettings& settings, const Replica& replica) {
    RunIdentity identity{.options = settings.values(),
                         .samples = replica.plan().samples(),
                         .corpus = corpus_text(replica.feed().corpus()),
                         .data = replica.data_identity(),
                         .valid_data = replica.valid_data_identity()};
    for (const RankInfo& info : settings.topology.ranks) {
        identity.devices.push_back(info.device_name);
        identity.limits.push_back(rank_limits(settings, info.rank) +
                                  stage_text(replica, info.rank));
    }
    identity.layout = settings.layout;
    return identity;
}

bool have_same_batches(const RunIdentity& a, const RunIdentity& b) {
    const auto is_same = [&](const std::int64_t& place) {
        const std::string& name = option_name(place);
        const auto in_a = a.options.find(name), in_b = b.options.find(name);
        const std::string none = "0";  // an older checkpoint does not have it
        return (in_a != a.options.end() ? in_a->second : none) ==
               (in_b != b.options.end() ? in_b->second : none);
    };
    return a.devices.size() == b.devices.size() && a.corpus == b.corpus &&
           is_same(any_options().batch_size) && is_same(any_options().batch_tokens);
}

bool have_same_ranks(const RunIdentity& a, const RunIdentity& b) {
    return a.devices == b.devices && a.limits == b.limits;
}

}  // namespace hetseq
