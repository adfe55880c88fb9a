#include "hetseq/session/options/option_agreement.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

// The values that must agree, in the table's order, one per line.
std::string agreed_values(const OptionValues& values, const OptionTable& table) {
    std::string text;
    for (const OptionSpec& spec : table)
        if (spec.scope != OptionScope::rank)
            text += values.at(spec.name) + '\n';
    return text;
}

std::string options_of_ranks() {
    std::vector<std::string> names;
    for (const OptionSpec& spec : option_table())
        if (spec.scope == OptionScope::rank)
            names.push_back("--" + spec.name);
    return join(names, ", ");
}

}  // namespace

void agree_on_options(const HostComm& world, const OptionValues& values, const OptionTable& table) {
    const std::string own_text = agreed_values(values, table);
    const std::vector<std::string> own = split(own_text, '\n');
    const std::vector<std::string> first = split(world.broadcast(own_text, 0), '\n');
    agree_on(world, [&] {
        std::size_t line = 0;
        for (const OptionSpec& spec : table) {
            if (spec.scope == OptionScope::rank)
                continue;
            if (own.at(line) != first.at(line))
                throw BadConfig(
                    "--" + spec.name + " differs over ranks",
                    "here it is '" + own[line] + "', on rank 0 '" + first[line] + "'",
                    "give all ranks the same; only " + options_of_ranks() + " may differ");
            ++line;
        }
    });
}

}  // namespace hetseq
