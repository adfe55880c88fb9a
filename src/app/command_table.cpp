#include "hetseq/app/command_table.hpp"

namespace hetseq {

const std::vector<CommandEntry>& command_table() {
    static const std::vector<CommandEntry> table{
        {"train",
         "train [CONFIG.cfg] [--OPTION VALUE ...]",
         "train a model on all ranks",
         NeedsMpi::always,
         train_command,
         true,
         true},
        {"evaluate",
         "evaluate RUN | --task NAME --init-model PATH, --data PATH [--json]",
         "losses and metrics of a model on data",
         NeedsMpi::always,
         evaluate_command},
        {"check",
         "check --task NAME --data PATH [--json]",
         "read all data and report what is wrong",
         NeedsMpi::launched,
         check_command},
        {"prepare",
         "prepare images IDX... --output DIR [--shards N]",
         "convert data to HDF5 shards",
         NeedsMpi::never,
         prepare_command,
         false},
        {"bench",
         "bench data|step|reduce [--OPTION VALUE ...]",
         "measure reading, updates or reductions; prints JSON",
         NeedsMpi::always,
         bench_command},
        {"plan",
         "plan CLUSTER.cfg [--json] [--from RUN[,RUN...]]",
         "predict the step time of a job on a described cluster",
         NeedsMpi::launched,
         plan_command,
         false},
        {"info",
         "info [--json]",
         "versions and features of this build",
         NeedsMpi::never,
         info_command,
         false},
        {"document",
         "document man|bash|options",
         "print the man page, the bash completion or the page of all options",
         NeedsMpi::never,
         document_command,
         false},
    };
    return table;
}

}  // namespace hetseq
