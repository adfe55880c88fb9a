#include "hetseq/state/evaluation.hpp"

#include <limits>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

double Evaluation::loss() const {
    double sum = 0;
    for (const Value& term : losses)
        sum += term.value;
    return sum;
}

double Evaluation::value_of(const std::string& name) const {
    for (const auto* values : {&losses, &metrics})
        for (const Value& value : *values)
            if (value.name == name)
                return value.value;
    return std::numeric_limits<double>::quiet_NaN();
}

std::string value_text(const Evaluation::Value& value) {
    return value.is_share ? percent_text(value.value, 5) : format_number(value.value, 5);
}

}  // namespace hetseq
