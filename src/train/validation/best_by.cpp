#include "hetseq/train/validation/best_by.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

constexpr const char* sum_of_terms = "loss";

double value_of(const Evaluation& evaluation, const std::string& name) {
    return name == sum_of_terms ? evaluation.loss() : evaluation.value_of(name);
}

}  // namespace

std::string to_string(const BestBy& best_by) {
    return best_by.name + (best_by.direction == Direction::min ? ":min" : ":max");
}

BestBy parse_best_by(const std::string& text) {
    const auto colon = text.rfind(':');
    const std::string direction = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (colon == 0 || (direction != "min" && direction != "max"))
        throw BadConfig("'" + text + "' is not NAME:min or NAME:max, such as accuracy:max");
    return {text.substr(0, colon), direction == "min" ? Direction::min : Direction::max};
}

void check_best_by(const BestBy& best_by, std::vector<std::string> names) {
    if (std::find(names.begin(), names.end(), sum_of_terms) == names.end())
        names.insert(names.begin(), sum_of_terms);
    if (std::find(names.begin(), names.end(), best_by.name) == names.end())
        throw BadConfig("--best-by: the model has no loss term or metric '" + best_by.name + "'",
                        "its names are " + join(names, ", "),
                        "give one of them");
}

std::string why_never_best(const Evaluation& evaluation, const BestBy& best_by) {
    if (!evaluation.has_weight(best_by.name))
        return "no sample of the validation data has a weight for " + best_by.name +
               ", so no validation is the best by --best-by " + to_string(best_by) +
               ", and --patience does not count them: give data that have targets for it, or "
               "choose the best by something else";
    const double value = value_of(evaluation, best_by.name);
    if (std::isfinite(value))
        return "";
    return best_by.name + " is " + (std::isnan(value) ? "nan" : "infinite") + ": by --best-by " +
           to_string(best_by) + " this validation is not the best, and --patience counts it";
}

bool is_better(const Evaluation& evaluation,
               const std::optional<Evaluation>& best,
               const BestBy& best_by) {
    const double value = value_of(evaluation, best_by.name);
    if (!std::isfinite(value))
        return false;
    const double best_value =
        best ? value_of(*best, best_by.name) : std::numeric_limits<double>::quiet_NaN();
    if (!std::isfinite(best_value))
        return true;
    return best_by.direction == Direction::min ? value < best_value : value > best_value;
}

bool is_better(const HostComm& world,
               const Evaluation& evaluation,
               const std::optional<Evaluation>& best,
               const BestBy& best_by) {
    return world.broadcast(std::int64_t{is_better(evaluation, best, best_by)}, 0) != 0;
}

}  // namespace hetseq
