#include "hetseq/train/evaluation.hpp"

#include "hetseq/util/quantity.hpp"

namespace hetseq {

double Evaluation::loss() const {
    double sum = 0;
    for (const Value& term : losses)
        sum += term.value;
    return sum;
}

std::string value_text(const Evaluation::Value& value) {
    return value.is_share ? percent_text(value.value, 5) : format_number(value.value, 5);
}

}  // namespace hetseq
