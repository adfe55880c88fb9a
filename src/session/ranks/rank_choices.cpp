#include "hetseq/session/ranks/rank_choices.hpp"

namespace hetseq {

std::string choice_text(std::int64_t number) {
    return std::to_string(number);
}

std::string choice_text(DeviceChoice choice) {
    switch (choice) {
        case DeviceChoice::cpu:
            return "cpu";
        case DeviceChoice::cuda:
            return "cuda";
        case DeviceChoice::automatic:
            break;
    }
    return "auto";
}

std::string choice_text(const PrecisionChoice& choice) {
    return choice ? to_string(*choice) : "auto";
}

std::string choice_text(const RecomputeChoice& choice) {
    if (!choice)
        return "auto";
    return *choice == 0 ? "none" : *choice == all_layers ? "all" : std::to_string(*choice);
}

std::string choice_text(const ShardPart& part) {
    switch (part.by) {
        case ShardPart::By::memory:
            return "memory";
        case ShardPart::By::even:
            return "even";
        case ShardPart::By::number:
            break;
    }
    return std::to_string(part.number);
}

}  // namespace hetseq
