// Looks at files of predictions, and changes the data that they are made from:
//   predictions score FILE SHARD...               prints accuracy, loss and the number of samples
//   predictions same FILE FILE [NAME...]          fails unless all values are equal
//   predictions same-lengths FILE NAME SHARD... FIELD   fails unless the rows are as long as
//   FIELD's predictions strip-labels SHARD... predictions bad-label SHARD ROW
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "hetseq/data/hdf5/hdf5.hpp"

#include "data/read_dataset.hpp"

namespace {

using namespace hetseq;
using Words = std::vector<std::string>;

std::vector<double> read_numbers(const std::string& path, const std::string& name) {
    const Hdf5File file = test::open_file(path);
    const Hdf5Dataset dataset{HETSEQ_HDF5_TRY(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT))};
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset.get()))};
    std::vector<double> values(
        static_cast<std::size_t>(HETSEQ_HDF5_TRY(H5Sget_simple_extent_npoints(space.get()))));
    HETSEQ_HDF5_TRY(
        H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    return values;
}

Hdf5File open_to_change(const std::string& path) {
    initialize_hdf5();
    return Hdf5File{HETSEQ_HDF5_TRY(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT))};
}

int score(const Words& words) {
    std::vector<std::int64_t> labels;
    for (std::size_t i = 1; i < words.size(); ++i)
        for (const std::int64_t label : test::read_dataset(words[i], "labels"))
            labels.push_back(label);
    const std::vector<double> probabilities = read_numbers(words[0], "probabilities");
    const std::vector<std::int64_t> predicted = test::read_dataset(words[0], "label");
    if (predicted.size() != labels.size() || probabilities.size() != 10 * labels.size())
        return 1;
    std::int64_t correct = 0;
    double loss = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        correct += predicted[i] == labels[i] ? 1 : 0;
        loss -= std::log(probabilities[10 * i + static_cast<std::size_t>(labels[i])]);
    }
    const auto samples = static_cast<double>(labels.size());
    std::printf(
        "%.12g %.12g %zu\n", static_cast<double>(correct) / samples, loss / samples, labels.size());
    return 0;
}

int same(const Words& words) {
    Words names(words.begin() + 2, words.end());
    if (names.empty())
        names = {"probabilities", "label"};
    for (const std::string& name : names)
        if (read_numbers(words.at(0), name) != read_numbers(words.at(1), name))
            return 1;
    return 0;
}

int same_lengths(const Words& words) {
    std::vector<std::size_t> expected, found;
    for (std::size_t i = 2; i + 1 < words.size(); ++i)
        for (const auto& row : test::read_rows(words[i], words.back()))
            expected.push_back(row.size());
    for (const auto& row : test::read_rows(words[0], words[1]))
        found.push_back(row.size());
    return found == expected && !found.empty() ? 0 : 1;
}

int strip_labels(const Words& words) {
    for (const std::string& path : words)
        HETSEQ_HDF5_TRY(H5Ldelete(open_to_change(path).get(), "labels", H5P_DEFAULT));
    return 0;
}

int bad_label(const Words& words) {
    const Hdf5File file = open_to_change(words.at(0));
    const Hdf5Dataset labels{HETSEQ_HDF5_TRY(H5Dopen2(file.get(), "labels", H5P_DEFAULT))};
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(labels.get()))};
    const hsize_t row = std::stoull(words.at(1)), one = 1;
    const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(1, &one, nullptr))};
    HETSEQ_HDF5_TRY(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &row, nullptr, &one, nullptr));
    const int value = 77;
    HETSEQ_HDF5_TRY(
        H5Dwrite(labels.get(), H5T_NATIVE_INT, memory.get(), space.get(), H5P_DEFAULT, &value));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string command = argc > 2 ? argv[1] : "";
    const Words words(argv + std::min(argc, 2), argv + argc);
    const std::pair<const char*, int (*)(const Words&)> commands[] = {
        {"score", score},
        {"same", same},
        {"same-lengths", same_lengths},
        {"strip-labels", strip_labels},
        {"bad-label", bad_label}};
    for (const auto& [name, run] : commands)
        if (command == name)
            return run(words);
    return 2;
}
