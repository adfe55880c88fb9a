#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// Losses and metrics over a whole corpus, each normalised by its own global weight.
struct Evaluation {
    struct Value {
        std::string name;
        double value = 0;
        bool is_share = true;  // of a metric: between 0 and 1, shown in percent
        // Otherwise no sample has a weight for it, and `value` is not a number.
        bool has_weight = true;
    };
    std::vector<Value> losses;  // by loss term
    std::vector<Value> metrics;
    std::int64_t samples = 0;
    double seconds = 0;

    /// The sum of the losses of the terms that have weight; not a number if none has.
    double loss() const;
    /// The loss term or metric of this name; not a number if there is none.
    double value_of(const std::string& name) const;
    /// Whether there is a value of this name to compare: false where no sample has a weight for it.
    /// "loss" is their sum, unless a term or metric has that name.
    bool has_weight(const std::string& name) const;
};

/// "98.21 %", or "1.8337" where it is not a share; "none" where nothing has weight.
std::string value_text(const Evaluation::Value& value);

}  // namespace hetseq
