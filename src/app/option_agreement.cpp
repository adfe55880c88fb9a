#include "hetseq/app/option_agreement.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

std::string job_options(const OptionValues& values) {
    std::string text;
    for (const OptionSpec& spec : option_table())
        if (spec.scope != OptionScope::rank)
            text += spec.name + '=' + values.at(spec.name) + '\n';
    return text;
}

}  // namespace

void agree_on_options(const HostComm& world, const OptionValues& values) {
    const std::string first = world.broadcast(job_options(values), 0);
    agree_on(world, [&] {
        if (first == job_options(values))
            return;
        for (const OptionSpec& spec : option_table()) {
            const std::string& own = values.at(spec.name);
            if (spec.scope != OptionScope::rank &&
                first.find(spec.name + '=' + own + '\n') == std::string::npos)
                throw BadConfig(
                    "--" + spec.name + " differs over ranks",
                    "here it is '" + own + "', on rank 0 it is not",
                    "give all ranks the same; only --max-sentences, --cache-mb, --device and --threads may differ");
        }
    });
}

}  // namespace hetseq
