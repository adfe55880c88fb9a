#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hetseq {

class Model;

/// Fills every stored parameter that `model` holds from its initial distribution; buffers stay. A
/// value depends on (seed, tensor name, element index) alone, not on ranks, devices or the order of
/// construction.
void initialise_parameters(Model& model, std::uint64_t seed);
/// The same for the stored parameters of these names alone.
void initialise_parameters(Model& model,
                           std::uint64_t seed,
                           std::span<const std::string> stored_names);
/// The same with zeros in place of random numbers, for a model that is read from a file next.
void initialise_without_draws(Model& model);

}  // namespace hetseq
