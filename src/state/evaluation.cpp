#include "hetseq/state/evaluation.hpp"

#include <algorithm>
#include <limits>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

const Evaluation::Value* find(const Evaluation& evaluation, const std::string& name) {
    for (const auto* values : {&evaluation.losses, &evaluation.metrics})
        for (const Evaluation::Value& value : *values)
            if (value.name == name)
                return &value;
    return nullptr;
}

bool any_has_weight(const std::vector<Evaluation::Value>& values) {
    return std::any_of(
        values.begin(), values.end(), [](const auto& value) { return value.has_weight; });
}

}  // namespace

double Evaluation::loss() const {
    if (!any_has_weight(losses))
        return no_value;
    double sum = 0;
    for (const Value& term : losses)
        sum += term.has_weight ? term.value : 0;
    return sum;
}

double Evaluation::value_of(const std::string& name) const {
    const Value* value = find(*this, name);
    return value != nullptr ? value->value : no_value;
}

bool Evaluation::has_weight(const std::string& name) const {
    const Value* value = find(*this, name);
    return value != nullptr ? value->has_weight : any_has_weight(losses);
}

std::string value_text(const Evaluation::Value& value) {
    if (!value.has_weight)
        return "none";
    return value.is_share ? percent_text(value.value, 5) : format_number(value.value, 5);
}

}  // namespace hetseq
