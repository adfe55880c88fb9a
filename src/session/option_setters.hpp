#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hetseq/session/options.hpp"

/// How an option's text becomes a value in its place. All throw BadConfig that says what was
/// expected.
namespace hetseq::option_setters {

using Setter = OptionSetter;

/// A reference to an option's place, so that one setter serves members of members.
template <class T>
using Place = std::function<T&(Options&)>;

Setter text(Place<std::string> place);
Setter choice(Place<std::string> place, std::vector<std::string> allowed);
Setter integer(Place<std::int64_t> place,
               std::int64_t minimum = 0,
               std::int64_t maximum = 1'000'000'000);
Setter seed(Place<std::uint64_t> place);
Setter number(Place<double> place,
              double minimum = 0,
              double maximum = std::numeric_limits<double>::max());
/// From 0 to below 1; empty text leaves the place without a value.
Setter probability(Place<std::optional<double>> place);
Setter flag(Place<bool> place);
/// [D-]HH:MM:SS to seconds; empty text leaves 0.
Setter duration(Place<double> place);
Setter signals(Place<std::set<int>> place);
Setter best_by(Place<BestBy> place);

Setter set_balance();
Setter set_device();
Setter set_io();

}  // namespace hetseq::option_setters
