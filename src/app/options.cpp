#include "hetseq/app/options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

using Setter = std::function<void(Options&, const std::string&)>;

[[noreturn]] void reject(const std::string& text, const std::string& expected) {
    throw BadConfig("'" + text + "' is not " + expected);
}

std::int64_t parse_integer(const std::string& text, std::int64_t minimum) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < minimum)
        reject(text, "a whole number of at least " + std::to_string(minimum));
    return value;
}

double parse_number(const std::string& text, double minimum, double maximum) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || !std::isfinite(value) || value < minimum || value > maximum)
        reject(text,
               "a number from " + format_number(minimum) +
                   (maximum < std::numeric_limits<double>::max() ? " to " + format_number(maximum)
                                                                 : " up"));
    return value;
}

bool parse_switch(const std::string& text) {
    if (text == "true" || text == "1" || text == "yes")
        return true;
    if (text == "false" || text == "0" || text == "no")
        return false;
    reject(text, "true or false");
}

// A reference to an option's place, so that one setter serves members of members.
template <class T>
using Place = std::function<T&(Options&)>;

Setter text(Place<std::string> place) {
    return [place](Options& options, const std::string& value) { place(options) = value; };
}

Setter choice(Place<std::string> place, std::vector<std::string> allowed) {
    return [place, allowed](Options& options, const std::string& value) {
        for (const std::string& name : allowed)
            if (name == value)
                place(options) = value;
        if (place(options) != value)
            reject(value, "one of " + join(allowed, ", "));
    };
}

template <class Integer>
Setter integer(Place<Integer> place, std::int64_t minimum = 0) {
    return [place, minimum](Options& options, const std::string& value) {
        place(options) = static_cast<Integer>(parse_integer(value, minimum));
    };
}

Setter number(Place<double> place,
              double minimum = 0,
              double maximum = std::numeric_limits<double>::max()) {
    return [place, minimum, maximum](Options& options, const std::string& value) {
        place(options) = parse_number(value, minimum, maximum);
    };
}

Setter probability(Place<std::optional<double>> place) {
    return [place](Options& options, const std::string& value) {
        if (!value.empty())
            place(options) = parse_number(value, 0, 1);
    };
}

Setter flag(Place<bool> place) {
    return [place](Options& options, const std::string& value) {
        place(options) = parse_switch(value);
    };
}

void set_betas(Options& options, const std::string& value) {
    const auto betas = split(value, ',');
    if (betas.size() != 2)
        reject(value, "two numbers with a comma between, such as 0.9,0.999");
    options.parts.optimizer.beta1 = parse_number(betas[0], 0, 1);
    options.parts.optimizer.beta2 = parse_number(betas[1], 0, 1);
}

void set_device(Options& options, const std::string& value) {
    if (value == "auto")
        options.device = DeviceChoice::automatic;
    else if (value == "cpu")
        options.device = DeviceChoice::cpu;
    else if (value == "cuda")
        options.device = DeviceChoice::cuda;
    else
        reject(value, "one of auto, cpu, cuda");
}

void set_io(Options& options, const std::string& value) {
    if (value == "collective")
        options.corpus.io = IoMode::collective;
    else if (value == "independent")
        options.corpus.io = IoMode::independent;
    else if (value == "serial")
        options.corpus.io = IoMode::serial;
    else
        reject(value, "one of collective, independent, serial");
}

#define HETSEQ_PLACE(member)         \
    [](Options & options) -> auto& { \
        return options.member;       \
    }

void add_task_options(std::vector<OptionSpec>& table) {
    const std::string group = "What is trained";
    table.insert(table.end(),
                 {
                     {"task",
                      group,
                      "NAME",
                      "",
                      "mnist or bert: sets the parts and defaults below that are not given",
                      OptionScope::job,
                      text(HETSEQ_PLACE(task))},
                     {"model",
                      group,
                      "NAME",
                      "",
                      "the network (by default the task's)",
                      OptionScope::job,
                      text(HETSEQ_PLACE(model))},
                     {"model-config",
                      group,
                      "NAME|FILE",
                      "",
                      "bert: tiny, mini, small, base, large or a Hugging Face config.json",
                      OptionScope::job,
                      text(HETSEQ_PLACE(parts.model_config))},
                     {"init-model",
                      group,
                      "DIR",
                      "",
                      "start from DIR/model.safetensors (and its config.json)",
                      OptionScope::job,
                      text(HETSEQ_PLACE(parts.init_model))},
                     {"dataset",
                      group,
                      "NAME",
                      "",
                      "what the data files hold (by default the task's)",
                      OptionScope::job,
                      text(HETSEQ_PLACE(dataset))},
                     {"batching",
                      group,
                      "NAME",
                      "",
                      "how rows become micro-batches (by default the task's)",
                      OptionScope::job,
                      text(HETSEQ_PLACE(batching))},
                     {"dropout",
                      group,
                      "P",
                      "",
                      "dropout probability (by default the model's)",
                      OptionScope::job,
                      probability(HETSEQ_PLACE(parts.dropout))},
                     {"attention-dropout",
                      group,
                      "P",
                      "",
                      "dropout probability of attention weights (by default the model's)",
                      OptionScope::job,
                      probability(HETSEQ_PLACE(parts.attention_dropout))},
                     {"precision",
                      group,
                      "NAME",
                      "fp32",
                      "fp32 or fp64",
                      OptionScope::job,
                      choice(HETSEQ_PLACE(precision), {"fp32", "fp64"})},
                     {"seed",
                      group,
                      "N",
                      "1",
                      "of initialisation, order and dropout",
                      OptionScope::job,
                      integer<std::uint64_t>(HETSEQ_PLACE(seed))},
                 });
}

void add_data_options(std::vector<OptionSpec>& table) {
    const std::string group = "Data";
    table.insert(table.end(),
                 {
                     {"data",
                      group,
                      "PATH",
                      "",
                      "file, folder, glob, or several with commas between",
                      OptionScope::job,
                      text(HETSEQ_PLACE(data))},
                     {"valid-data",
                      group,
                      "PATH",
                      "",
                      "the same, for validation",
                      OptionScope::job,
                      text(HETSEQ_PLACE(valid_data))},
                     {"shuffle-blocks",
                      group,
                      "N",
                      "8",
                      "blocks of samples mixed at once",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(corpus.shuffle_blocks), 1)},
                     {"block-length",
                      group,
                      "N",
                      "0",
                      "samples a block; 0: from the data",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(corpus.block_length))},
                     {"cache-mb",
                      group,
                      "N|LIST",
                      "512",
                      "memory of each host for blocks of a corpus [MiB]",
                      OptionScope::rank,
                      text(HETSEQ_PLACE(cache_mb))},
                     {"io",
                      group,
                      "NAME",
                      "collective",
                      "collective, independent or serial reads",
                      OptionScope::job,
                      set_io},
                 });
}

void add_batch_options(std::vector<OptionSpec>& table) {
    const std::string group = "Batch and balance";
    table.insert(
        table.end(),
        {
            {"max-sentences",
             group,
             "N|LIST",
             "32",
             "a rank's micro-batch and declared capacity [samples]: N, or a list by rank, host or device: 0=64,1-3=16 or v100=64,p100=16; 0: no work",
             OptionScope::rank,
             text(HETSEQ_PLACE(max_sentences))},
            {"batch-size",
             group,
             "N",
             "0",
             "global batch [samples]; 0: the sum of the capacities times --update-freq",
             OptionScope::job,
             integer<std::int64_t>(HETSEQ_PLACE(batch_size))},
            {"update-freq",
             group,
             "N",
             "1",
             "micro-batches a rank and update",
             OptionScope::job,
             integer<std::int64_t>(HETSEQ_PLACE(update_freq), 1)},
            {"balance",
             group,
             "NAME",
             "declared",
             "how a batch is cut over ranks: declared (by capacity) or equal",
             OptionScope::job,
             choice(HETSEQ_PLACE(balance), {"declared", "equal"})},
        });
}

void add_optimization_options(std::vector<OptionSpec>& table) {
    const std::string group = "Optimization";
    table.insert(table.end(),
                 {
                     {"optimizer",
                      group,
                      "NAME",
                      "adam",
                      "adam, adamw, adadelta or sgd",
                      OptionScope::job,
                      text(HETSEQ_PLACE(parts.optimizer.name))},
                     {"lr",
                      group,
                      "X",
                      "0.001",
                      "learning rate (the highest)",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.schedule.lr))},
                     {"lr-scheduler",
                      group,
                      "NAME",
                      "fixed",
                      "fixed, polynomial_decay, inverse_sqrt, step, exponential or cosine",
                      OptionScope::job,
                      text(HETSEQ_PLACE(parts.schedule.name))},
                     {"warmup-updates",
                      group,
                      "N",
                      "0",
                      "updates of linear warm-up",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(parts.schedule.warmup_updates))},
                     {"warmup-init-lr",
                      group,
                      "X",
                      "0",
                      "where warm-up begins",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.schedule.warmup_init_lr))},
                     {"total-num-update",
                      group,
                      "N",
                      "0",
                      "update at which decay ends; 0: the run's last",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(parts.schedule.total_updates))},
                     {"end-learning-rate",
                      group,
                      "X",
                      "0",
                      "where polynomial and cosine decay end",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.schedule.end_lr))},
                     {"power",
                      group,
                      "X",
                      "1",
                      "of polynomial decay",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.schedule.power))},
                     {"lr-shrink",
                      group,
                      "X",
                      "0.7",
                      "factor of step and exponential decay",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.schedule.gamma))},
                     {"lr-step-epochs",
                      group,
                      "N",
                      "1",
                      "epochs between factors of step decay",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(parts.schedule.step_epochs), 1)},
                     {"adam-betas",
                      group,
                      "X,X",
                      "0.9,0.999",
                      "of adam and adamw",
                      OptionScope::job,
                      set_betas},
                     {"adam-eps",
                      group,
                      "X",
                      "1e-8",
                      "of adam and adamw",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.optimizer.eps))},
                     {"rho",
                      group,
                      "X",
                      "0.9",
                      "of adadelta",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.optimizer.rho), 0, 1)},
                     {"momentum",
                      group,
                      "X",
                      "0",
                      "of sgd",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.optimizer.momentum), 0, 1)},
                     {"weight-decay",
                      group,
                      "X",
                      "0",
                      "not applied to biases and normalisations",
                      OptionScope::job,
                      number(HETSEQ_PLACE(parts.optimizer.weight_decay))},
                     {"clip-norm",
                      group,
                      "X",
                      "0",
                      "largest 2-norm of the gradient; 0: any",
                      OptionScope::job,
                      number(HETSEQ_PLACE(clip_norm))},
                     {"max-update",
                      group,
                      "N",
                      "0",
                      "updates to run; 0: as --max-epoch says",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(max_update))},
                     {"max-epoch",
                      group,
                      "N",
                      "0",
                      "epochs to run; 0: as --max-update says",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(max_epoch))},
                     {"max-skips",
                      group,
                      "N",
                      "100",
                      "updates in a row with a loss that is not finite before giving up",
                      OptionScope::job,
                      integer<std::int64_t>(HETSEQ_PLACE(max_skips), 1)},
                 });
}

void add_run_options(std::vector<OptionSpec>& table) {
    const std::string group = "Running";
    table.insert(
        table.end(),
        {
            {"device", group, "NAME", "auto", "auto, cpu or cuda", OptionScope::rank, set_device},
            {"threads",
             group,
             "N|LIST",
             "0",
             "of a rank; 0: from the cores it may use",
             OptionScope::rank,
             text(HETSEQ_PLACE(threads))},
            {"bucket-mb",
             group,
             "X",
             "8",
             "gradients reduced at once [MiB]",
             OptionScope::job,
             number(HETSEQ_PLACE(bucket_mb), 0.001, 4096)},
            {"log-interval",
             group,
             "N",
             "100",
             "updates between log lines",
             OptionScope::job,
             integer<std::int64_t>(HETSEQ_PLACE(log_interval), 1)},
            {"valid-interval",
             group,
             "N",
             "0",
             "updates between validations; 0: each epoch",
             OptionScope::job,
             integer<std::int64_t>(HETSEQ_PLACE(valid_interval))},
            {"save-dir",
             group,
             "DIR",
             "",
             "folder the run leaves behind; empty: nothing is written",
             OptionScope::command,
             text(HETSEQ_PLACE(save_dir))},
            {"overwrite",
             group,
             "",
             "false",
             "start anew where --save-dir holds a run",
             OptionScope::command,
             flag(HETSEQ_PLACE(overwrite))},
            {"dry-run",
             group,
             "",
             "false",
             "check everything and train nothing",
             OptionScope::command,
             flag(HETSEQ_PLACE(dry_run))},
            {"json",
             group,
             "",
             "false",
             "print results as JSON",
             OptionScope::command,
             flag(HETSEQ_PLACE(json))},
        });
}

#undef HETSEQ_PLACE

std::vector<OptionSpec> make_table() {
    std::vector<OptionSpec> table;
    add_task_options(table);
    add_data_options(table);
    add_batch_options(table);
    add_optimization_options(table);
    add_run_options(table);
    return table;
}

}  // namespace

const std::vector<OptionSpec>& option_table() {
    static const std::vector<OptionSpec> table = make_table();
    return table;
}

Options typed_options(const OptionValues& values) {
    Options options;
    for (const OptionSpec& spec : option_table()) {
        const auto found = values.find(spec.name);
        try {
            spec.set(options, found != values.end() ? found->second : spec.default_value);
        } catch (const BadConfig& error) {
            throw BadConfig("--" + spec.name + ": " + error.what(), spec.help);
        }
    }
    return options;
}

const std::string& required_data(const Options& options) {
    if (options.data.empty())
        throw BadConfig("no data were given", "--data", "give a file, a folder or a glob");
    return options.data;
}

}  // namespace hetseq
