#include "repeated_options.hpp"

#include <algorithm>

#include "hetseq/util/log.hpp"

namespace hetseq {

OptionValues last_values(const GivenInOrder& given, const std::string& where) {
    OptionValues last;
    for (const auto& [name, value] : given)
        last[name] = value;
    OptionValues others;  // by option: those that are not taken
    for (const auto& [name, value] : given)
        if (value != last.at(name))
            others[name] += (others.count(name) == 0 ? "" : ", ") + value;
    for (const auto& [name, values] : others)
        log::warn("--" + name + " is given more than once (" + values + ", then " + last.at(name) +
                  " " + where + "): " + last.at(name) + " is taken");
    return last;
}

}  // namespace hetseq
