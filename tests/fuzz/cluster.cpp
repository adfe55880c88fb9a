// A description of a cluster for `hetseq plan`: what is complete and small is planned, too.
#include "hetseq/plan/cluster_file.hpp"
#include "hetseq/plan/cluster_plan.hpp"
#include "hetseq/plan/layout/layer_times.hpp"

#include "fuzz/fuzz.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::int64_t most_ranks = 32;  // a plan of thousands takes seconds
    auto cluster =
        fuzz::parsed([&] { return parse_cluster(fuzz::text_of(data, size), "cluster.cfg"); });
    if (!cluster || cluster->ranks() > most_ranks || cluster->batch() > 4096)
        return 0;
    fuzz::parsed([&] {
        fill_from_layers(*cluster);
        require_complete(*cluster);
        return plan_update(*cluster).ranks;
    });
    return 0;
}
