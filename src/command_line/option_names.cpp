#include "hetseq/command_line/option_names.hpp"

#include <algorithm>

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

// A purpose for which other programs have an option and hetseq has none.
struct Advice {
    std::string name;
    std::string text;
};

const std::vector<Advice>& advice() {
    constexpr const char* ranks = "mpirun -np N hetseq ... starts N ranks, one a GPU";
    constexpr const char* config = "give the configuration's path without an option";
    constexpr const char* reader = "each rank has one thread that reads; there are no workers";
    constexpr const char* precision =
        "--precision fp16 or bf16 computes products in 16 bits; auto takes what a device does best";
    constexpr const char* version = "hetseq --version prints the version";
    constexpr const char* words = "--log-interval 1 has a line for each update";
    static const std::vector<Advice> table{
        {"gpus", ranks},
        {"ngpus", ranks},
        {"n-gpu", ranks},
        {"num-gpus", ranks},
        {"n", ranks},
        {"np", ranks},
        {"nproc", ranks},
        {"nproc-per-node", ranks},
        {"ranks", ranks},
        {"world-size", ranks},
        {"distributed-world-size", ranks},
        {"distributed-init-method", ranks},
        {"local-rank", ranks},
        {"nodes", ranks},
        {"nnodes", ranks},
        {"fp16", precision},
        {"bf16", precision},
        {"half", precision},
        {"amp", precision},
        {"mixed-precision", precision},
        {"v", version},
        {"version", version},
        {"verbose", words},
        {"debug", words},
        {"config", config},
        {"cfg", config},
        {"workers", reader},
        {"num-workers", reader},
        {"dataloader-num-workers", reader},
    };
    return table;
}

// "--Learning_Rate" is "learning-rate".
std::string normal_form(const std::string& given) {
    std::string name = to_lower(given);
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

bool contains(std::span<const std::string> names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// The only known name that begins or ends with `name`, at a dash.
std::string longer_name(const std::string& name, std::span<const std::string> known) {
    std::string found;
    for (const std::string& candidate : known) {
        if (!candidate.starts_with(name) && !candidate.ends_with("-" + name))
            continue;
        if (!found.empty())
            return "";
        found = candidate;
    }
    return found;
}

std::string find_option(const std::string& name, std::span<const std::string> known) {
    if (contains(known, name))
        return name;
    for (const OtherName& other : other_names())
        if (other.name == name && contains(known, other.option))
            return other.option;
    const std::string nearest = nearest_name(name, known);
    return nearest.empty() && name.size() > 2 ? longer_name(name, known) : nearest;
}

}  // namespace

const std::vector<OtherName>& other_names() {
    static const std::vector<OtherName> table{
        // what is trained
        {"arch", "model"},
        {"architecture", "model"},
        {"model-name", "model"},
        {"config-file", "model-config"},
        {"bert-config", "model-config"},
        {"model-name-or-path", "init-model"},
        {"pretrained", "init-model"},
        {"pretrained-model", "init-model"},
        {"finetune-from-model", "init-model"},
        {"dtype", "precision"},
        {"gradient-checkpointing", "recompute"},
        {"activation-checkpointing", "recompute"},
        {"checkpoint-activations", "recompute"},
        {"zero", "shard"},
        {"zero-stage", "shard"},
        {"fsdp", "shard"},
        {"sharding", "shard"},
        {"shard-optimizer", "shard"},
        {"shard-optimiser", "shard"},
        {"distributed-optimizer", "shard"},
        {"pipeline", "virtual-workers"},
        {"pipeline-parallel", "virtual-workers"},
        {"pipeline-parallel-size", "virtual-workers"},
        {"pipeline-model-parallel", "virtual-workers"},
        {"pipeline-model-parallel-size", "virtual-workers"},
        {"pipeline-size", "virtual-workers"},
        {"pp", "virtual-workers"},
        {"pp-size", "virtual-workers"},
        {"model-parallel", "virtual-workers"},
        {"model-parallel-size", "virtual-workers"},
        {"virtual-worker", "virtual-workers"},
        {"pipeline-balance", "stage-units"},
        {"pipeline-stages", "stage-units"},
        {"num-stages", "stage-units"},
        {"stages", "stage-units"},
        {"stage-layers", "stage-units"},
        {"chunks", "max-sentences"},
        {"pipeline-chunks", "max-sentences"},
        {"hidden-dropout", "dropout"},
        {"random-seed", "seed"},
        // data
        {"dataset-path", "data"},
        {"data-dir", "data"},
        {"data-path", "data"},
        {"train-data", "data"},
        {"train-file", "data"},
        {"train-subset", "data"},
        {"input", "data"},
        {"val-data", "valid-data"},
        {"eval-data", "valid-data"},
        {"test-data", "valid-data"},
        {"validation-data", "valid-data"},
        {"validation-file", "valid-data"},
        {"valid-subset", "valid-data"},
        {"shuffle", "shuffle-blocks"},
        {"cache", "cache-mb"},
        // batch
        {"batch", "batch-size"},
        {"batchsize", "batch-size"},
        {"bs", "batch-size"},
        {"bsz", "batch-size"},
        {"global-batch-size", "batch-size"},
        {"train-batch-size", "batch-size"},
        {"micro-batch", "max-sentences"},
        {"micro-batch-size", "max-sentences"},
        {"batch-size-per-gpu", "max-sentences"},
        {"per-device-train-batch-size", "max-sentences"},
        {"per-gpu-train-batch-size", "max-sentences"},
        {"max-tokens-per-batch", "max-tokens"},
        {"tokens-per-batch", "batch-tokens"},
        {"max-source-positions", "max-length"},
        {"max-target-positions", "max-length"},
        {"max-seq-length", "max-length"},
        {"skip-invalid-size-inputs-valid-test", "skip-too-long"},
        {"accumulate", "update-freq"},
        {"accumulation-steps", "update-freq"},
        {"gradient-accumulation", "update-freq"},
        {"gradient-accumulation-steps", "update-freq"},
        {"grad-accum", "update-freq"},
        // optimization
        {"optim", "optimizer"},
        {"opt", "optimizer"},
        {"learning-rate", "lr"},
        {"max-lr", "lr"},
        {"peak-lr", "lr"},
        {"lr-schedule", "lr-scheduler"},
        {"lr-scheduler-type", "lr-scheduler"},
        {"schedule", "lr-scheduler"},
        {"scheduler", "lr-scheduler"},
        {"warmup", "warmup-updates"},
        {"warmup-steps", "warmup-updates"},
        {"num-warmup-steps", "warmup-updates"},
        {"total-steps", "total-num-update"},
        {"total-updates", "total-num-update"},
        {"end-lr", "end-learning-rate"},
        {"eta-min", "end-learning-rate"},
        {"final-lr", "end-learning-rate"},
        {"min-lr", "end-learning-rate"},
        {"gamma", "lr-shrink"},
        {"lr-decay", "lr-shrink"},
        {"step-size", "lr-step-epochs"},
        {"betas", "adam-betas"},
        {"beta1", "adam-betas"},
        {"beta2", "adam-betas"},
        {"adam-beta1", "adam-betas"},
        {"adam-beta2", "adam-betas"},
        {"eps", "adam-eps"},
        {"epsilon", "adam-eps"},
        {"adam-epsilon", "adam-eps"},
        {"adadelta-rho", "rho"},
        {"wd", "weight-decay"},
        {"decay", "weight-decay"},
        {"l2", "weight-decay"},
        {"clip", "clip-norm"},
        {"clip-grad", "clip-norm"},
        {"clip-grad-norm", "clip-norm"},
        {"gradient-clip-val", "clip-norm"},
        {"grad-clip", "clip-norm"},
        {"max-grad-norm", "clip-norm"},
        {"max-norm", "clip-norm"},
        {"epoch", "max-epoch"},
        {"epochs", "max-epoch"},
        {"max-epochs", "max-epoch"},
        {"n-epochs", "max-epoch"},
        {"num-epochs", "max-epoch"},
        {"num-train-epochs", "max-epoch"},
        {"iterations", "max-update"},
        {"max-iter", "max-update"},
        {"max-steps", "max-update"},
        {"max-train-steps", "max-update"},
        {"num-steps", "max-update"},
        {"num-updates", "max-update"},
        {"steps", "max-update"},
        {"train-steps", "max-update"},
        {"updates", "max-update"},
        // checkpoints and stopping
        {"continue", "resume"},
        {"checkpoint", "restore-file"},
        {"load", "restore-file"},
        {"load-checkpoint", "restore-file"},
        {"resume-from", "restore-file"},
        {"resume-from-checkpoint", "restore-file"},
        {"save-every", "save-interval"},
        {"save-freq", "save-interval"},
        {"save-steps", "save-interval-updates"},
        {"keep-interval-updates", "keep-last"},
        {"keep-last-epochs", "keep-last"},
        {"save-total-limit", "keep-last"},
        {"max-time", "time-limit"},
        {"stop-time-hours", "time-limit"},
        {"walltime", "time-limit"},
        {"early-stopping", "patience"},
        {"early-stopping-patience", "patience"},
        // running
        {"cpu", "device"},
        {"cuda", "device"},
        {"no-cuda", "device"},
        {"use-cuda", "device"},
        {"num-threads", "threads"},
        {"omp-num-threads", "threads"},
        {"bucket-cap-mb", "bucket-mb"},
        {"log-every", "log-interval"},
        {"log-freq", "log-interval"},
        {"logging-steps", "log-interval"},
        {"print-freq", "log-interval"},
        {"eval-every", "valid-interval"},
        {"eval-interval", "valid-interval"},
        {"eval-steps", "valid-interval"},
        {"validate-interval", "valid-interval"},
        {"validate-interval-updates", "valid-interval"},
        {"checkpoint-dir", "save-dir"},
        {"default-root-dir", "save-dir"},
        {"log-dir", "save-dir"},
        {"out", "save-dir"},
        {"output", "save-dir"},
        {"output-dir", "save-dir"},
        {"work-dir", "save-dir"},
        {"force", "overwrite"},
        {"overwrite-output-dir", "overwrite"},
    };
    return table;
}

std::string meant_option(const std::string& given, std::span<const std::string> known) {
    const std::string name = normal_form(given);
    if (name.empty())
        return "";
    for (const Advice& line : advice())
        if (line.name == name)
            return line.text;
    const std::string found = find_option(name, known);
    return found.empty() ? "" : "did you mean --" + found + "?";
}

}  // namespace hetseq
