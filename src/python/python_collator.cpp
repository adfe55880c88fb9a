#include "python_collator.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/loading/padded_rows.hpp"

#include "named_tensors.hpp"
#include "python_calls.hpp"
#include "python_data.hpp"
#include "shaped_rows.hpp"

namespace hetseq {

namespace {

class PythonCollator final : public Collator {
public:
    explicit PythonCollator(PythonTask task) : task_{std::move(task)} {}

    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        return collate_for(rows, sample_ids, {});
    }

    MicroBatch collate_for(const TensorDict& rows,
                           const at::Tensor& sample_ids,
                           const Collation& collation) const override {
        MicroBatch batch;
        bool has_targets = !lacks_targets(rows);
        if (collation.announced == 0)
            batch.tensors = fields(rows, sample_ids);
        if (task_.collates)
            has_targets = make(batch.tensors, sample_ids, collation) && has_targets;
        if (!has_targets)  // for predictions, which have no losses
            batch.weights.assign(task_.losses.size(), 0);
        else if (task_.weights.empty())
            batch.weights = weights_from_python(batch.tensors);
        else
            batch.weights = weights_by_rules(rows, sample_ids.numel());
        return batch;
    }

    bool announces() const override { return task_.makes_samples; }

    std::int64_t announce(const TensorDict& rows,
                          const at::Tensor& sample_ids,
                          const Collation& collation) const override {
        if (!task_.transforms && !stands_for_dataset(rows))
            return 0;
        const TensorDict all = fields(rows, sample_ids);
        const TensorLists given = named_tensors(all);
        return call_python("hetseq::task_announce",
                           {given.names, given.tensors, sample_ids, epoch_of(collation)})
            .at(0)
            .toInt();
    }

private:
    static std::int64_t epoch_of(const Collation& collation) {
        return collation.trains ? collation.epoch : -1;
    }

    /// As a batch has them: ragged rows padded, with their lengths.
    TensorDict fields(const TensorDict& rows, const at::Tensor& sample_ids) const {
        if (stands_for_dataset(rows))
            return rows;
        TensorDict tensors;
        for (std::size_t i = 0; i < task_.schema.fields.size(); ++i) {
            const FieldSchema& field = task_.schema.fields[i];
            if (rows.count(field.name) == 0)
                continue;
            if (field.is_ragged)
                add_ragged(tensors, rows, field, task_.forms[i], sample_ids);
            else
                tensors[field.name] = rows.at(field.name).clone();
        }
        return tensors;
    }

    bool lacks_targets(const TensorDict& rows) const {
        const auto& fields = task_.schema.fields;
        return !stands_for_dataset(rows) &&
               std::any_of(fields.begin(), fields.end(), [&](const FieldSchema& field) {
                   return rows.count(field.name) == 0;
               });
    }

    // Bytes go to Python's `collate`, as they are stored.
    static void add_ragged(TensorDict& tensors,
                           const TensorDict& rows,
                           const FieldSchema& field,
                           const RowForm& form,
                           const at::Tensor& sample_ids) {
        const std::string& name = field.name;
        if (form.shape.empty()) {
            tensors[name] = rows.at(name);
            tensors[offsets_name(name)] = rows.at(offsets_name(name));
        } else if (form.shape.size() == 1) {
            tensors[name] = padded_rows(rows, name, form.padding);
            tensors[name + "_lengths"] = row_lengths(rows, name);
        } else {
            const ShapedRows shaped{rows, name, form.shape, sample_ids};
            tensors[name] = shaped.padded(form.padding);
            if (!shaped.has_shapes())
                tensors[name + "_lengths"] = shaped.lengths();
        }
    }

    /// Replaces `tensors` by what Python makes of them. False where it lacks what losses need.
    static bool make(TensorDict& tensors,
                     const at::Tensor& sample_ids,
                     const Collation& collation) {
        const TensorLists given = named_tensors(tensors);
        const auto result = call_python("hetseq::task_collate",
                                        {given.names,
                                         given.tensors,
                                         sample_ids,
                                         epoch_of(collation),
                                         collation.announced,
                                         collation.first});
        tensors = tensor_dict(result.at(0).toListRef(), result.at(1).toTensorVector());
        return result.at(2).toBool();
    }

    std::vector<double> weights_from_python(const TensorDict& tensors) const {
        const TensorLists given = named_tensors(tensors);
        const auto result = call_python("hetseq::task_weights", {given.names, given.tensors});
        return result.at(0).toDoubleVector();
    }

    std::vector<double> weights_by_rules(const TensorDict& rows, std::int64_t samples) const {
        std::vector<double> weights;
        for (const WeightRule& rule : task_.weights)
            weights.push_back(
                static_cast<double>(rule.kind == WeightRule::Kind::samples
                                        ? samples
                                        : row_lengths(rows, rule.field).sum().item<std::int64_t>() /
                                              position_values(rule.field)));
        return weights;
    }

    std::int64_t position_values(const std::string& field) const {
        return task_.schema.fields[find_field(task_.schema, field).value()].position_values;
    }

    PythonTask task_;
};

}  // namespace

std::unique_ptr<Collator> make_python_collator(const PythonTask& task) {
    return std::make_unique<PythonCollator>(task);
}

}  // namespace hetseq
