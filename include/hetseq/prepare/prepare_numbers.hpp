#pragma once

#include <cstdint>
#include <string>

#include "hetseq/options/options_of.hpp"
#include "hetseq/prepare/prepare_translation.hpp"

namespace hetseq {

class HostComm;

struct PrepareNumbersOptions {
    std::string output;              // folder, made where it is missing
    std::int64_t samples = 100'000;  // numbers to train on, some of them several times
    std::uint64_t seed = 1;
    bool overwrite = false;  // replaces the texts and shards that the folder holds
};

OptionsOf<PrepareNumbersOptions> prepare_numbers_options();

constexpr std::int64_t valid_numbers = 500;
constexpr std::int64_t test_numbers = 2000;

/// Collective. A translation task with an exact truth: names of numbers up to 9,999,999, English to
/// German. Writes the texts {train,valid,test}.{en,de} into the folder, then shards of train and
/// valid as `prepare_translation` does. No number of valid or test is in another text. A function
/// of the options alone. Throws BadConfig or IoError.
PreparedTranslation prepare_numbers(const HostComm& world, const PrepareNumbersOptions& options);

}  // namespace hetseq
