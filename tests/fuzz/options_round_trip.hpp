#pragma once

#include <string>

#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/ranks/rank_options.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

namespace hetseq::fuzz {

inline void check_rank_list(const ByRank<std::int64_t>& list) {
    const Topology topology{{{.rank = 0, .host = "node1", .device_name = "Tesla V100-SXM2-16GB"},
                             {.rank = 1, .host = "node1", .device_name = "Tesla P100"},
                             {.rank = 2, .host = "node2", .device_name = "AMD EPYC"}},
                            2};
    const auto option = number_by_rank_option("max-sentences", "", "samples");
    FUZZ_CHECK(option.read(list.text()).text() == list.text());
    std::vector<std::int64_t> values;
    for (int rank = 0; rank < 3; ++rank)
        if (const auto value = list.find(RankPlace(topology, rank)))
            values.push_back(*value);
    if (values.size() < 3)
        return;
    const ByRank<std::int64_t> written = option.read(list_by_rank(values).text());
    for (int rank = 0; rank < 3; ++rank)
        FUZZ_CHECK(written.find(RankPlace(topology, rank)) ==
                   values[static_cast<std::size_t>(rank)]);
}

/// Options that convert are the same when config.cfg is written and read again.
inline void check_options(const OptionValues& given) {
    OptionValues values;
    for (const OptionSpec& spec : option_table())
        values[spec.name] = spec.default_value;
    for (const auto& [name, value] : given)
        values.at(name) = value;
    const auto options = parsed([&] { return typed_options(values); });
    if (!options)
        return;
    check_rank_list(options->max_sentences);
    const MemoryFile file{config_text(values, option_table())};
    const OptionValues read = parse_config_file(file.path(), option_table());
    for (const OptionSpec& spec : option_table()) {
        if (spec.scope == OptionScope::command)
            continue;
        const auto found = read.find(spec.name);
        FUZZ_CHECK((found == read.end() ? "" : found->second) == values.at(spec.name));
    }
}

}  // namespace hetseq::fuzz
