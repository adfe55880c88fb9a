#include "python_scorer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "hetseq/comm/host/available_memory.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/train/validation/kept_memory.hpp"

#include "named_tensors.hpp"
#include "python_calls.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t bytes_between_looks = 64 << 20;

class PythonScorer final : public CorpusScorer {
public:
    explicit PythonScorer(Model& model) : model_{model} {
        call_python("hetseq::task_begin_keeping", {});
    }

    std::size_t sums() const override { return 0; }

    void add(const MicroBatch& batch, const ForwardResult&, std::span<double>) override {
        std::vector<std::string> names;
        std::vector<at::Tensor> values;
        std::vector<at::Tensor> lengths;
        for (const Prediction& prediction : run_predict(model_, batch)) {
            names.push_back(prediction.name);
            values.push_back(prediction.values);
            lengths.push_back(prediction.row_lengths.defined()
                                  ? prediction.row_lengths
                                  : at::empty({0}, at::TensorOptions(at::kLong)));
        }
        const TensorLists given = named_tensors(batch.tensors);
        kept_bytes_ =
            call_python("hetseq::task_keep",
                        {names, values, lengths, batch.sample_ids, given.names, given.tensors})
                .at(0)
                .toInt();
        if (kept_bytes_ < next_look_)
            return;
        next_look_ = kept_bytes_ + bytes_between_looks;
        check_room_for_kept(kept_bytes_, available_memory_mb());
    }

    std::int64_t kept_bytes() const override { return kept_bytes_; }

    std::string kept() override {
        const at::Tensor bytes = call_python("hetseq::task_kept", {}).at(0).toTensor();
        return {static_cast<const char*>(bytes.const_data_ptr()),
                static_cast<std::size_t>(bytes.numel())};
    }

    std::vector<double> values(std::span<const double>,
                               std::span<const std::string> kept) const override {
        std::vector<at::Tensor> parts;
        for (const std::string& of_rank : kept)
            parts.push_back(
                at::from_blob(const_cast<char*>(of_rank.data()),  // Python only reads it
                              {std::ssize(of_rank)},
                              at::TensorOptions(at::kByte)));
        return call_python("hetseq::task_metric", {parts}).at(0).toDoubleVector();
    }

private:
    Model& model_;
    std::int64_t kept_bytes_ = 0;
    std::int64_t next_look_ = bytes_between_looks;
};

}  // namespace

std::unique_ptr<CorpusScorer> make_python_scorer(Model& model) {
    return std::make_unique<PythonScorer>(model);
}

}  // namespace hetseq
