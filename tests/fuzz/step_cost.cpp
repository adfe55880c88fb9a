// A measured cost as summaries and the cache hold it: what is read can be used, and reads the same
// when it is written again.
#include <cmath>

#include "hetseq/state/step_cost_file.hpp"

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"

using namespace hetseq;

namespace {

void check_use(const StepCost& cost) {
    FUZZ_CHECK(cost.micro_batch >= 0 && cost.max_units >= 0 && !std::isnan(cost.rate()));
    if (cost.micro_batch == 0)
        return;
    double before = 0;
    for (const std::int64_t units : {0, 1, 2, 63, 64, 65, 1000, 1000000000}) {
        const double ms = cost.time_ms(units);
        FUZZ_CHECK(ms >= before && std::isfinite(ms));
        const std::int64_t within = cost.units_within(ms, 2000000000);
        FUZZ_CHECK(within >= std::min(units, cost.max_units) && within <= cost.max_units);
        before = ms;
    }
}

void check_cache(std::string_view text) {
    static const fuzz::Folder folder;
    static const StepCostCache cache{folder.path()};
    cache.store("key", {});
    const auto file = std::filesystem::directory_iterator(folder.path())->path();
    std::ofstream{file, std::ios::binary | std::ios::trunc} << R"({"key": "key", "cost": )" << text
                                                            << "}";
    if (const auto found = cache.find("key"))
        check_use(found->cost);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text{fuzz::text_of(data, size)};
    check_cache(text);
    const auto cost = fuzz::parsed([&] { return parse_step_cost(text); });
    if (!cost)
        return 0;
    check_use(*cost);
    const std::string written = step_cost_json(*cost);
    FUZZ_CHECK(step_cost_json(parse_step_cost(written)) == written);
    return 0;
}
