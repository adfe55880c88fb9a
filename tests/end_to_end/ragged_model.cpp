// hetseq with a small model of pairs of sentences of unequal length, and a writer of such pairs:
//   ragged_model write FOLDER SAMPLES SHARDS MEDIAN SPREAD LONGEST [contiguous]
//   ragged_model train --task pairs ...
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "data/generated_ragged_corpus.hpp"

#include "hetseq/data/padded_rows.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/dropout.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

namespace {

using namespace hetseq;

constexpr std::int64_t words = 200;  // of the vocabulary; 0 stands for what is before a sentence
constexpr std::int64_t padding = 0;

const PartOption<std::int64_t>& width() {
    static const auto option =
        whole_number_option("width", "16", "width of the embeddings", 2, 4096);
    return option;
}

/// Attention over the source, whose mean tells of the target's words what it can.
/// Input: "source" (n, S), "source_mask" (n, S) bool, "before" (n, T), "target" (n, T) int64, -100
/// for padding.
class PairModel final : public Model {
public:
    PairModel(std::int64_t width, double dropout) : dropout_{dropout} {
        embedding_ = register_parameter("embedding", torch::empty({words, width}));
        query_ = register_module("query", torch::nn::Linear(width, width));
        hidden_ = register_module("hidden", torch::nn::Linear(width, 4 * width));
        out_ = register_module("out", torch::nn::Linear(4 * width, words));
    }

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<MetricSchema> metrics() const override { return {{"accuracy", 0}}; }

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        const at::Tensor mask = batch.tensors.at("source_mask");  // (n, S)
        const at::Tensor source = at::embedding(embedding_, batch.tensors.at("source"));
        const at::Tensor scores = at::matmul(query_->forward(source), source.transpose(1, 2));
        const at::Tensor attention = at::softmax(scores.masked_fill(~mask.unsqueeze(1), -1e30), -1);
        const at::Tensor seen = at::matmul(attention, source) * mask.unsqueeze(2);
        const at::Tensor counts = mask.sum(1, true).clamp_min(1);
        const at::Tensor told = (seen.sum(1) / counts).unsqueeze(1);  // (n, 1, H)
        at::Tensor state = at::gelu(
            hidden_->forward(at::embedding(embedding_, batch.tensors.at("before")) + told));
        if (context.mode == Mode::train)
            state = counter_dropout(
                state.contiguous(), dropout_, {context.seed, context.update, 1}, batch.sample_ids);
        const at::Tensor logits = out_->forward(state).flatten(0, 1);
        const at::Tensor target = batch.tensors.at("target").flatten();
        ForwardResult result;
        result.losses = {at::cross_entropy_loss(logits, target, {}, at::Reduction::Sum)};
        if (context.mode == Mode::evaluate)
            result.metrics = {(logits.argmax(1) == target).sum()};
        return result;
    }

private:
    double dropout_;
    at::Tensor embedding_;
    torch::nn::Linear query_{nullptr}, hidden_{nullptr}, out_{nullptr};
};

class PairCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        const at::Tensor lengths = row_lengths(rows, "source");
        const at::Tensor source = padded_rows(rows, "source", padding, 1).to(at::kLong);
        const at::Tensor target = padded_rows(rows, "target", -100, 1).to(at::kLong);
        MicroBatch batch;
        batch.tensors["source"] = source;
        batch.tensors["source_mask"] =
            at::arange(source.size(1)).unsqueeze(0) < lengths.unsqueeze(1);
        batch.tensors["target"] = target;
        batch.tensors["before"] = at::constant_pad_nd(target.clamp_min(0), {1, 0})
                                      .narrow(1, 0, target.size(1))
                                      .contiguous();
        batch.weights = {static_cast<double>(rows.at("target").numel())};
        return batch;
    }
};

CorpusSchema pair_schema() {
    const auto sentence = [](const std::string& name) {
        return FieldSchema{.name = name,
                           .type = ElementType::int32,
                           .is_ragged = true,
                           .minimum = 0,
                           .maximum = words - 1};
    };
    return {.kind = "pairs of sentences",
            .fields = {sentence("source"), sentence("target")},
            .units_field = "target"};
}

void add_pairs(Parts& parts) {
    parts.models.add("pairs",
                     [](const PartOptions& options) {
                         return std::make_shared<PairModel>(options.get(width()),
                                                            options.dropout.value_or(0));
                     },
                     {width()});
    parts.datasets.add("pairs", [](const PartOptions&) { return pair_schema(); });
    parts.batchings.add("pairs",
                        [](const PartOptions&) { return std::make_unique<PairCollator>(); });
    parts.tasks.add("pairs", {"pairs of sentences", "pairs", "pairs", "pairs", {}});
}

// A number in (0, 1) that only `key` decides.
double fraction(std::uint64_t key) {
    key = (key + 1) * 0x9E3779B97F4A7C15U;
    key = (key ^ (key >> 30U)) * 0xBF58476D1CE4E5B9U;
    key = (key ^ (key >> 27U)) * 0x94D049BB133111EBU;
    return (static_cast<double>((key ^ (key >> 31U)) >> 11U) + 0.5) / 9007199254740992.0;
}

// Lognormal: exp(spread * z) medians long, at least one word and at most `longest`.
std::int64_t length_of(std::int64_t sample, double median, double spread, std::int64_t longest) {
    const auto key = static_cast<std::uint64_t>(sample);
    const double z = std::sqrt(-2 * std::log(fraction(2 * key))) *
                     std::cos(2 * std::numbers::pi * fraction(2 * key + 1));
    return std::clamp<std::int64_t>(std::llround(median * std::exp(spread * z)), 1, longest);
}

// Writes SAMPLES pairs into SHARDS files; a target is as long as its source, or one word longer.
int write_pairs(const std::vector<std::string>& words_of_line) {
    const std::string folder = words_of_line.at(0);
    const std::int64_t samples = std::stoll(words_of_line.at(1));
    const std::int64_t shards = std::stoll(words_of_line.at(2));
    const double median = std::stod(words_of_line.at(3)), spread = std::stod(words_of_line.at(4));
    const std::int64_t longest = std::stoll(words_of_line.at(5));
    const bool is_contiguous = words_of_line.size() > 6;
    std::filesystem::create_directories(folder);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        const std::int64_t first = samples * shard / shards;
        const std::int64_t rows = samples * (shard + 1) / shards - first;
        const auto length = [=](std::int64_t row) {
            return length_of(first + row, median, spread, longest - 1);
        };
        const auto word = [=](std::int64_t row, std::int64_t column) {
            return 1 + (first + row * 7 + column * 3) % (words - 1);
        };
        std::vector<test::FilledDataset> datasets = test::ragged_datasets(
            {"source", H5T_STD_I32LE, length, word}, rows, is_contiguous ? 0 : 16384);
        for (test::FilledDataset& dataset : test::ragged_datasets(
                 {"target",
                  H5T_STD_I32LE,
                  [=](std::int64_t row) { return length(row) + row % 2; },
                  [=](std::int64_t row, std::int64_t column) { return word(row, 2 * column); }},
                 rows,
                 is_contiguous ? 0 : 16384))
            datasets.push_back(std::move(dataset));
        test::write_datasets(folder + "/" + test::shard_name(static_cast<std::size_t>(shard)),
                             datasets);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2 && std::strcmp(argv[1], "write") == 0)
        return write_pairs({argv + 2, argv + argc});
    keep_freed_memory();
    Parts parts = builtin_parts();
    add_pairs(parts);
    return run_program(argc, argv, parts);
}
