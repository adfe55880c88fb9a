#include "hetseq/session/options/part_option_table.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// The first part that declares an option gives it its place. Other parts with the same option join
// it.
void declare(OptionTable& table,
             const OptionSpec& option,
             const OptionOwner& owner,
             FixedWith fixed_with) {
    OptionSpec* known = find_option(table, option.name);
    if (known == nullptr) {
        table.push_back(option);
        table.back().fixed_with = fixed_with;
        table.back().owners = {owner};
        return;
    }
    const bool is_same = !known->owners.empty() && known->type == option.type &&
                         known->default_value == option.default_value &&
                         known->help == option.help && known->fixed_with == fixed_with &&
                         known->is_ignored_elsewhere == option.is_ignored_elsewhere;
    if (!is_same)
        throw InternalError("--" + owner.option + " " + owner.part + " declares --" + option.name +
                            ", which is another option already");
    known->owners.push_back(owner);
}

template <class Part>
void declare_all(OptionTable& table, const PartTable<Part>& parts, FixedWith fixed_with) {
    const std::string option = parts.option().substr(2);  // without dashes
    for (const std::string& part : parts.names())
        for (const OptionSpec& own : parts.options_of(part))
            declare(table, own, {option, part}, own.may_change ? FixedWith::nothing : fixed_with);
}

// The parts that an option chooses from.
template <class Part>
void offer_names(OptionTable& table, const PartTable<Part>& parts) {
    if (OptionSpec* const chooses = find_option(table, parts.option().substr(2)))
        chooses->choices = parts.names();
}

std::string group_of(const std::vector<OptionOwner>& owners) {
    std::string text = "Options of";
    for (const OptionOwner& owner : owners)
        text += (owner == owners.front() ? " --" : ", --") + owner.option + " " + owner.part;
    return text;
}

}  // namespace

OptionTable option_table(const Parts& parts) {
    OptionTable table = option_table();
    offer_names(table, parts.tasks);
    offer_names(table, parts.models);
    offer_names(table, parts.datasets);
    offer_names(table, parts.batchings);
    offer_names(table, parts.optimizers);
    offer_names(table, parts.schedules);
    declare_all(table, parts.models, FixedWith::run);
    declare_all(table, parts.datasets, FixedWith::position);
    declare_all(table, parts.batchings, FixedWith::position);
    declare_all(table, parts.optimizers, FixedWith::optimizer);
    declare_all(table, parts.schedules, FixedWith::schedule);
    for (OptionSpec& spec : table)
        if (!spec.owners.empty())
            spec.group = group_of(spec.owners);
    // One heading for each set of owners.
    std::stable_sort(table.begin(), table.end(), [](const OptionSpec& a, const OptionSpec& b) {
        if (a.owners.empty() || b.owners.empty())
            return a.owners.empty() && !b.owners.empty();
        return a.group < b.group;
    });
    return table;
}

bool is_in_use(const OptionSpec& spec, const OptionValues& values) {
    return spec.owners.empty() ||
           std::any_of(spec.owners.begin(), spec.owners.end(), [&](const OptionOwner& owner) {
               return values.at(owner.option) == owner.part;
           });
}

OptionTable options_in_use(const Parts& parts, const OptionValues& values) {
    OptionTable table = option_table(parts);
    std::erase_if(table, [&](const OptionSpec& spec) { return !is_in_use(spec, values); });
    return table;
}

}  // namespace hetseq
