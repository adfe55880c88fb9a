#include "hetseq/train/evaluation.hpp"

namespace hetseq {

double Evaluation::loss() const {
    double sum = 0;
    for (const Value& term : losses)
        sum += term.value;
    return sum;
}

}  // namespace hetseq
