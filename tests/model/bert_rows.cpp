#include "model/bert_rows.hpp"

#include <cstdlib>
#include <stdexcept>

#include <hdf5.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "hetseq/data/loading/padded_rows.hpp"

namespace hetseq::test {

namespace {

const char* const fields[] = {"input_ids",
                              "input_mask",
                              "segment_ids",
                              "masked_lm_positions",
                              "masked_lm_ids",
                              "next_sentence_labels"};

void check(bool condition, const std::string& what) {
    if (!condition)
        throw std::runtime_error("cannot read " + what);
}

at::Tensor read_rows(hid_t file, const char* name, std::int64_t count) {
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    check(dataset >= 0, name);
    const hid_t from = H5Dget_space(dataset);
    hsize_t shape[2] = {0, 1};
    const int rank = H5Sget_simple_extent_dims(from, shape, nullptr);
    shape[0] = static_cast<hsize_t>(count);
    const hsize_t start[2] = {0, 0};
    check(H5Sselect_hyperslab(from, H5S_SELECT_SET, start, nullptr, shape, nullptr) >= 0, name);
    const hid_t to = H5Screate_simple(rank, shape, nullptr);
    std::vector<std::int64_t> sizes(shape, shape + rank);
    at::Tensor rows = at::empty(sizes, at::kLong);
    check(H5Dread(dataset, H5T_NATIVE_INT64, to, from, H5P_DEFAULT, rows.mutable_data_ptr()) >= 0,
          name);
    H5Sclose(to);
    H5Sclose(from);
    H5Dclose(dataset);
    return rows;
}

}  // namespace

std::filesystem::path test_data() {
    const char* folder = std::getenv("HETSEQ_TEST_DATA");
    return folder != nullptr ? folder : "../shared/data";
}

BertRows BertRows::from_json(const nlohmann::json& values) {
    BertRows result;
    for (const char* field : fields) {
        const nlohmann::json& rows = values.at(field);
        std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows.size())};
        std::vector<std::int64_t> flat;
        if (rows[0].is_array())
            shape.push_back(static_cast<std::int64_t>(rows[0].size()));
        for (const auto& row : rows)
            for (const auto& value : row.is_array() ? row : nlohmann::json{row})
                flat.push_back(value.get<std::int64_t>());
        result.rows_[field] = at::tensor(flat, at::kLong).view(shape);
    }
    return result;
}

BertRows BertRows::from_shard(const std::filesystem::path& path, std::int64_t count) {
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    check(file >= 0, path);
    BertRows result;
    for (const char* field : fields)
        result.rows_[field] = read_rows(file, field, count);
    H5Fclose(file);
    return result;
}

std::vector<double> BertRows::weights() const {
    return {static_cast<double>(rows_.at("masked_lm_ids").ne(0).sum().item<std::int64_t>()),
            static_cast<double>(size())};
}

MicroBatch BertRows::batch(std::int64_t begin, std::int64_t n) const {
    const auto part = [&](const char* field) { return rows_.at(field).narrow(0, begin, n); };
    const at::Tensor entries = part("masked_lm_ids").nonzero();  // (M, 2): sequence, entry
    const at::Tensor sequence = entries.select(1, 0), entry = entries.select(1, 1);
    MicroBatch batch;
    batch.tensors = {{"input_ids", part("input_ids")},
                     {"segment_ids", part("segment_ids")},
                     {"attention_mask", part("input_mask")},
                     {"masked_positions",
                      part("masked_lm_positions").index({sequence, entry}) +
                          sequence * part("input_ids").size(1)},
                     {"masked_labels", part("masked_lm_ids").index({sequence, entry})},
                     {"next_sentence_labels", part("next_sentence_labels")}};
    note_row_lengths(
        batch, batch.tensors.at("attention_mask"), batch.tensors.at("masked_positions"));
    batch.sample_ids = at::arange(begin, begin + n, at::kLong);
    batch.samples = batch.units = n;
    return batch;
}

}  // namespace hetseq::test
