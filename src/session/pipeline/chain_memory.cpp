#include "chain_memory.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/session/ranks/small_optimizer.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

std::vector<std::vector<ChainMemory::Parameter>> parameters_by_unit(const Model& model,
                                                                    std::int64_t element_bytes) {
    const NamedTensors parameters = model.named_parameters();
    std::vector<std::vector<ChainMemory::Parameter>> units;
    for (const ChainUnit& unit : model.chain()) {
        auto& own = units.emplace_back();
        for (const std::string& name : unit.parameters) {
            const at::Tensor& parameter = parameters[name];
            const bool trains = parameter.requires_grad();
            own.push_back({name,
                           trains ? FlatParameters::padded(parameter.numel(), element_bytes)
                                  : parameter.numel(),
                           trains});
        }
    }
    return units;
}

// Of parameters that any unit of `ranges` reads: those that are trained, or the others.
std::int64_t elements_of(const std::vector<std::vector<ChainMemory::Parameter>>& units,
                         std::initializer_list<UnitRange> ranges,
                         bool trained = true) {
    std::set<std::string> counted;
    std::int64_t elements = 0;
    for (const UnitRange& range : ranges)
        for (std::size_t unit = range.begin; unit < range.end; ++unit)
            for (const ChainMemory::Parameter& parameter : units[unit])
                if (parameter.trains == trained && counted.insert(parameter.name).second)
                    elements += parameter.elements;
    return elements;
}

// Of parameters that units in and outside of `range` read: those that both sides count.
std::int64_t elements_shared_by(const std::vector<std::vector<ChainMemory::Parameter>>& units,
                                UnitRange range) {
    const std::size_t end = units.size();
    return elements_of(units, {range}) + elements_of(units, {{0, range.begin}, {range.end, end}}) -
           elements_of(units, {{0, end}});
}

}  // namespace

ChainMemory::ChainMemory(MemoryAccount account,
                         std::vector<std::vector<Parameter>> units,
                         int ranks)
    : account_{std::move(account)}, units_{std::move(units)}, ranks_{ranks} {}

ChainMemory ChainMemory::without_copies() const {
    ChainMemory without = *this;
    without.account_.leave_out_copies();
    return without;
}

double ChainMemory::stage_mb(int rank, UnitRange units) const {
    MemoryAccount with = account_;
    with.note_stage(rank,
                    elements_of(units_, {units}),
                    elements_shared_by(units_, units),
                    elements_of(units_, {units}, /*trained=*/false));
    return sum_of(with.terms(rank)) - process_mb(rank);
}

double ChainMemory::process_mb(int rank) const {
    MemoryAccount without = account_;
    without.note_stage(rank, 0);
    return sum_of(without.terms(rank));
}

double ChainMemory::values_mb(UnitRange units) const {
    return static_cast<double>(elements_of(units_, {units}) * account_.element_bytes()) /
           bytes_of_mib;
}

double ChainMemory::sharded_mb(int rank, std::size_t ranks) const {
    const UnitRange all{0, units_.size()};
    const double part = 1 - 1 / static_cast<double>(ranks);
    return stage_mb(rank, all) -
           part * values_mb(all) * static_cast<double>(account_.held_tensors(rank));
}

ChainMemory chain_memory(const HostComm& world,
                         const RunSettings& settings,
                         const Parts& parts,
                         const Model& model,
                         const OwnMemory& own,
                         bool saves) {
    const auto element_bytes =
        static_cast<std::int64_t>(c10::elementSize(parameter_type(settings.precision)));
    auto units = parameters_by_unit(model, element_bytes);
    const auto small =
        agree_on(world, [&] { return small_optimizer(parts, settings.options().parts); });
    const UnitRange all{0, units.size()};
    const MemoryAccount::Trained trained{.elements = elements_of(units, {all}),
                                         .frozen = elements_of(units, {all}, /*trained=*/false),
                                         .element_bytes = element_bytes,
                                         .small = *small.optimizer};
    return {MemoryAccount{world, settings, trained, own, saves}, std::move(units), world.size()};
}

}  // namespace hetseq
