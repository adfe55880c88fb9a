#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/loading/micro_batch.hpp"

#include <nlohmann/json.hpp>

namespace hetseq::test {

/// The folder of real data: HETSEQ_TEST_DATA, by default ../shared/data beside the repository.
std::filesystem::path test_data();

/// Rows of an NVIDIA shard, and micro-batches of them as `make_bert` takes them.
class BertRows {
public:
    static BertRows from_json(const nlohmann::json& fields);
    /// The first `count` rows.
    static BertRows from_shard(const std::filesystem::path& path, std::int64_t count);

    std::int64_t size() const { return rows_.at("input_ids").size(0); }
    /// Masked tokens and sequences.
    std::vector<double> weights() const;
    MicroBatch batch(std::int64_t begin, std::int64_t n) const;

private:
    TensorDict rows_;  // int64
};

}  // namespace hetseq::test
