#include "python_collator.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/loading/padded_rows.hpp"

#include "named_tensors.hpp"
#include "python_calls.hpp"
#include "shaped_rows.hpp"

namespace hetseq {

namespace {

class PythonCollator final : public Collator {
public:
    explicit PythonCollator(PythonTask task) : task_{std::move(task)} {}

    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        for (std::size_t i = 0; i < task_.schema.fields.size(); ++i) {
            const FieldSchema& field = task_.schema.fields[i];
            if (rows.count(field.name) == 0)
                continue;
            if (field.is_ragged)
                add_ragged(batch.tensors, rows, field, task_.forms[i], sample_ids);
            else
                batch.tensors[field.name] = rows.at(field.name).clone();
        }
        if (task_.collates)
            batch.tensors = collated(batch.tensors);
        if (lacks_targets(rows))  // for predictions, which have no losses
            batch.weights.assign(task_.losses.size(), 0);
        else if (task_.weights.empty())
            batch.weights = weights_from_python(batch.tensors);
        else
            batch.weights = weights_by_rules(rows, sample_ids.numel());
        return batch;
    }

private:
    bool lacks_targets(const TensorDict& rows) const {
        const auto& fields = task_.schema.fields;
        return std::any_of(fields.begin(), fields.end(), [&](const FieldSchema& field) {
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

    static TensorDict collated(const TensorDict& tensors) {
        const TensorLists given = named_tensors(tensors);
        const auto result = call_python("hetseq::task_collate", {given.names, given.tensors});
        return tensor_dict(result.at(0).toListRef(), result.at(1).toTensorVector());
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
