// The operators between the Python package and the trainer. Python calls those with an
// implementation here; those of the task are implemented by the package.

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/options/absolute_path.hpp"
#include "hetseq/command_line/python_task.hpp"
#include "hetseq/comm/host/available_memory.hpp"

#include "event_queue.hpp"
#include "hetseq/version.hpp"
#include "program.hpp"

namespace {

using Words = std::vector<std::string>;

std::tuple<std::int64_t, std::string> told(const hetseq::ProgramEnd& end) {
    return {end.code, end.message};
}

Words random_operators() {
    auto& dispatcher = c10::Dispatcher::singleton();
    Words names;
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        const auto found = dispatcher.findSchema(name);
        if (name.getNamespace() == "aten" && found &&
            found->hasTag(at::Tag::nondeterministic_seeded))
            names.push_back(c10::toString(name));
    }
    return names;
}

}  // namespace

TORCH_LIBRARY(hetseq, library) {
    library.def("run_as_program(str[] words, bool has_task) -> (int, str)",
                [](const Words& words, bool has_task) {
                    return told(hetseq::run_as_program(words, has_task));
                });
    library.def("run_in_script(str[] words, bool has_task) -> (int, str)",
                [](const Words& words, bool has_task) {
                    return told(hetseq::run_in_script(words, has_task));
                });
    library.def("end_mpi() -> ()", [] { hetseq::end_mpi(); });
    library.def("abort_mpi(int code) -> ()", [](std::int64_t code) { hetseq::abort_mpi(code); });
    library.def("version() -> str", [] { return std::string(hetseq::version::number); });
    // As the launcher numbered this process.
    library.def("launched_rank() -> int", [] { return hetseq::launched_rank(); });
    // The tasks that a command line names, the configuration that names the only one (empty: none
    // does), the words that are not about them, and whether --task-file has no value.
    library.def("find_tasks(str[] words) -> (str[], str, str[], bool)", [](const Words& words) {
        const hetseq::PythonTasks found = hetseq::find_python_tasks(words);
        Words texts;
        for (const hetseq::PythonTask& task : found.tasks)
            texts.push_back(task.text);
        return std::tuple{texts,
                          found.tasks.empty() ? "" : found.tasks.front().configuration,
                          found.other_words,
                          found.lacks_value};
    });
    // FILE.py:CLASS as path and name; no path: it is none.
    library.def("divide_task(str text) -> (str, str)", [](const std::string& text) {
        const hetseq::TaskFile file = hetseq::task_file_of(text).value_or(hetseq::TaskFile{});
        return std::tuple{file.path, file.name};
    });

    // These are torch's operators that draw random numbers ("aten::normal.out"). In Python, a look
    // at all of torch's 3,000 operators would take longer than all else at a start.
    library.def("random_operators() -> str[]", random_operators);

    library.def("may_name_split(str name) -> bool",
                [](const std::string& name) { return hetseq::may_name_split(name); });

    // What processes can still take of the host's memory, or of this one's control groups [MiB].
    library.def("available_memory_mb() -> int", [] { return hetseq::available_memory_mb(); });

    // What the run has told since the last call: kinds ("update") and figures, as JSON.
    library.def("take_events() -> (str[], str[])", [] {
        hetseq::EventQueue::Events events = hetseq::event_queue().take();
        return std::tuple{std::move(events.kinds), std::move(events.infos)};
    });
    // Ends the run with the traceback of what a callback has thrown.
    library.def("fail_events(str traceback) -> ()",
                [](const std::string& traceback) { hetseq::event_queue().fail(traceback); });

    library.def("asked_to_stop() -> bool", [] { return hetseq::signal_inbox::stop_signal() != 0; });

    // For work of the package that takes long, such as the self-test: the process doesn't stall.
    library.def("progress() -> ()", [] { hetseq::activity::progress(); });
    // Fields, losses, metrics and options of the task, as JSON.
    library.def("task_describe() -> str");
    // From choices as JSON: a description of the module as JSON, and its tensors.
    library.def("task_model(str choices) -> (str, Tensor[])");
    // Before the first training forward: fails where the result depends on the cut of a batch.
    // False where the micro-batch is too small to tell.
    library.def("task_self_test(str[] names, Tensor[] tensors) -> bool");
    // Before the first forward of a process that only evaluates: where samples lie in what it
    // draws.
    library.def("task_learn_draws(str[] names, Tensor[] tensors) -> ()");
    // The summed losses, and where it does not train the metrics.
    library.def("task_forward(str[] names, Tensor[] tensors, bool training) -> Tensor[]");
    // Predictions by name, and the lengths of the rows of each; empty where they have one shape.
    library.def("task_predict(str[] names, Tensor[] tensors) -> (str[], Tensor[], Tensor[])");
    // How data of this name are read: "files", "samples" or "shards"; from choices as JSON.
    library.def("task_source(str choices, str name) -> str");
    // What is needed to open them, as JSON.
    library.def("task_locate(str name) -> str");
    // Fails where this rank's dataset is another than the first rank's, by its `features`.
    library.def("task_check_alike(str name, str first) -> ()");
    library.def("task_is_split(str name) -> bool");
    library.def("task_write_parts(str name, int[] parts) -> ()");
    library.def("task_first_batch(str name, int count) -> (str[], Tensor[])");
    // Rows of a share whose samples are to be made: its number. An epoch below 0: evaluation.
    library.def(
        "task_announce(str[] names, Tensor[] tensors, Tensor sample_ids, int epoch) -> int");
    // Of the rows, or, with no rows, of the announced share's samples from `first` on. Last,
    // whether they have what losses need.
    library.def(
        "task_collate(str[] names, Tensor[] tensors, Tensor sample_ids, int epoch, int announced, "
        "int first) -> (str[], Tensor[], bool)");
    // What a metric over all samples needs of these: predictions as task_predict gave them, and the
    // targets among the tensors of the micro-batch. The bytes that this rank holds of a validation.
    library.def("task_begin_keeping() -> ()");
    library.def(
        "task_keep(str[] names, Tensor[] values, Tensor[] lengths, Tensor sample_ids, "
        "str[] batch_names, Tensor[] batch) -> int");
    // All of it, as bytes, which are held no longer.
    library.def("task_kept() -> Tensor");
    // From what all ranks kept: the values of the metrics that are computed from it.
    library.def("task_metric(Tensor[] kept) -> float[]");
    // A handle, the state's names and tensors, and whether it brings a schedule of its own.
    // `scheduled_by`: what else gives the learning rate; empty: nothing does.
    library.def(
        "task_optimizer(str[] names, Tensor[] tensors, float[] factors, bool[] decays, float lr, "
        "str scheduled_by) -> (int, str[], Tensor[], bool)");
    library.def("task_optimizer_step(int handle, float lr) -> ()");
    library.def("task_optimizer_rate(int handle) -> float");
    library.def("task_optimizer_restored(int handle) -> ()");
    library.def("task_optimizer_end(int handle) -> ()");
    library.def("task_take_sums() -> ()");
    // How many of the modules that the task names, of those in units [begin, end) where there are
    // any, are computed again in backward.
    library.def("task_recompute(int count, int begin, int end) -> ()");
    // From a micro-batch of the first samples: the units of the chain as JSON, and what the log
    // shall say.
    library.def("task_find_chain(str[] names, Tensor[] tensors) -> (str, str)");
    // Units [begin, end) on what the stage in front sent: the tensors for the next one, or, of the
    // last, what task_forward gives.
    library.def(
        "task_run_units(str[] names, Tensor[] tensors, bool training, int begin, int end, "
        "Tensor[] carried) -> Tensor[]");
    library.def("task_schedule(int update, int epoch) -> float");
    // The callbacks hear of events from now on: a thread takes them.
    library.def("task_begin_events() -> ()");
    // Waits until they have heard of all.
    library.def("task_end_events() -> ()");
    library.def("task_weights(str[] names, Tensor[] tensors) -> float[]");
}
