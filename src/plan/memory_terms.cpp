#include "hetseq/plan/memory_terms.hpp"

#include <cmath>

#include "hetseq/util/quantity.hpp"

namespace hetseq {

namespace {

std::string whole(double mb) {
    return std::to_string(std::llround(mb));
}

}  // namespace

std::vector<MemoryTerm> memory_terms(const ModelMemory& model, const RankMemory& rank) {
    const auto mb = [](std::int64_t elements, std::int64_t bytes) {
        return static_cast<double>(elements) * static_cast<double>(bytes) / bytes_of_mib;
    };
    const std::int64_t elements = rank.elements.value_or(model.elements);
    const std::int64_t values = elements + rank.frozen.value_or(model.frozen);
    return {{"process", rank.process_mb},
            {"data", rank.data_mb},
            {"values", mb(values, model.element_bytes)},
            {"gradients", mb(elements, model.element_bytes * model.gradient_sets)},
            {"sent", mb(elements, model.sent_bytes * model.gradient_sets)},
            {"casts", mb(values, rank.cast_bytes)},
            {"state", mb(rank.state_elements, model.element_bytes * model.state_tensors)},
            {"copies", rank.copies_mb},
            {"scratch", rank.scratch_mb},
            {"activations", rank.activations_mb}};
}

double sum_of(std::span<const MemoryTerm> terms) {
    double sum = 0;
    for (const MemoryTerm& term : terms)
        sum += term.mb;
    return sum;
}

std::string memory_text(std::span<const MemoryTerm> terms) {
    std::string text;
    for (const MemoryTerm& term : terms)
        if (std::llround(term.mb) > 0)
            text += (text.empty() ? "" : " + ") + term.name + " " + whole(term.mb);
    return text + " = " + whole(sum_of(terms)) + " MiB";
}

}  // namespace hetseq
