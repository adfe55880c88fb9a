#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/data/loading/collator.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/optim/schedule.hpp"
#include "hetseq/task/line_answering.hpp"
#include "hetseq/task/model_export.hpp"
#include "hetseq/task/part_options.hpp"
#include "hetseq/task/translation_part.hpp"

namespace hetseq {

class FlatParameters;
class RunListener;

/// Parts of one kind by name, in the order they were added.
template <class Part>
class PartTable {
public:
    /// `kind` is the word for them in error messages, such as "model". `option` is the option that
    /// chooses one, such as "--model".
    PartTable(std::string kind, std::string option)
        : kind_{std::move(kind)}, option_{std::move(option)} {}

    /// `options` belong to this part alone. They are known if the part is chosen, and the part
    /// reads them through PartOptions::get.
    void add(const std::string& name, Part part, std::vector<OptionSpec> options = {}) {
        if (find(name) != nullptr)
            throw InternalError("two parts of kind " + kind_ + " are named " + name);
        entries_.push_back({name, std::move(part), std::move(options)});
    }

    /// Throws BadConfig with the nearest name when there is none of this one.
    const Part& get(const std::string& name) const {
        if (const Entry* entry = find(name))
            return entry->part;
        throw BadConfig(
            "there is no " + kind_ + " named '" + name + "'", option_, suggestion(name, names()));
    }

    bool has(const std::string& name) const { return find(name) != nullptr; }

    const std::string& option() const { return option_; }

    /// The options that the part `name` declared; none for an unknown name.
    std::vector<OptionSpec> options_of(const std::string& name) const {
        const Entry* entry = find(name);
        return entry != nullptr ? entry->options : std::vector<OptionSpec>{};
    }

    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const Entry& entry : entries_)
            names.push_back(entry.name);
        return names;
    }

private:
    struct Entry {
        std::string name;
        Part part;
        std::vector<OptionSpec> options;
    };

    const Entry* find(const std::string& name) const {
        for (const Entry& entry : entries_)
            if (entry.name == name)
                return &entry;
        return nullptr;
    }

    std::string kind_;
    std::string option_;
    std::vector<Entry> entries_;
};

/// Makes a network on the CPU in fp32; the caller moves, initialises or loads it.
using ModelPart = std::function<std::shared_ptr<Model>(const PartOptions&)>;
/// Says what the files of a corpus must hold.
using DatasetPart = std::function<CorpusSchema(const PartOptions&)>;
/// Makes micro-batches from the rows of a corpus.
using BatchingPart = std::function<std::unique_ptr<Collator>(const PartOptions&)>;
using OptimizerPart =
    std::function<std::unique_ptr<Optimizer>(FlatParameters&, const PartOptions&)>;
/// `schedule.total_updates` is where the decay ends, by option or by the run's length.
using SchedulePart = std::function<Schedule(const PartOptions&)>;

/// Binds one part of each kind under a name. `defaults` are option values that fit these parts,
/// such as "1.0" for "lr".
struct TaskPart {
    std::string help;
    std::string model;
    std::string dataset;
    std::string batching;
    std::vector<std::pair<std::string, std::string>> defaults;
    /// The command that answers in place of `hetseq predict RUN`, as text in which RUN stands for
    /// the folder; empty: predict does.
    std::string instead_of_predict = {};
};

/// All parts a user may name. Adding one takes a file and a line in `builtin_parts`
/// (docs/extending.md).
struct Parts {
    PartTable<ModelPart> models{"model", "--model"};
    PartTable<DatasetPart> datasets{"dataset", "--dataset"};
    PartTable<BatchingPart> batchings{"batching", "--batching"};
    PartTable<OptimizerPart> optimizers{"optimizer", "--optimizer"};
    PartTable<SchedulePart> schedules{"schedule", "--lr-scheduler"};
    PartTable<TaskPart> tasks{"task", "--task"};
    /// Of the models that take lines of text, by the model's name.
    PartTable<LinePart> lines{"model that takes lines of text", "--model"};
    /// Of the models that translate, by config.json's "model_type".
    PartTable<TranslationPart> translations{"model_type to translate with", "config.json"};
    /// Of the models whose files transformers has otherwise, by config.json's "model_type".
    PartTable<ExportPart> exports{"model_type to export", "config.json"};
    /// Hears how a training goes; null: nobody does.
    std::shared_ptr<RunListener> listener = {};
    /// A script trains, which has the model afterwards on each rank: none may be left out.
    bool is_called_by_script = false;
};

/// The parts that hetseq comes with.
Parts builtin_parts();

}  // namespace hetseq
