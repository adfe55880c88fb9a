#pragma once

#include <string>

#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// Its members stand for their options, whatever their values.
const Options& any_options();

/// The name of the option whose value `place` is, a member of `any_options()`.
template <class T>
const std::string& option_name(const T& place) {
    return run_options().at(any_options(), &place).name;
}

}  // namespace hetseq
