// compare_models A B TOLERANCE: whether two model.safetensors hold the same tensors, all of them
// finite, |a - b| <= TOLERANCE max(1, |a|). Exit codes: 0 they do, 1 numbers differ or are not
// finite, 2 the tensors are others or cannot be read, 64 usage.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"

namespace {

template <class Number>
std::vector<double> read_as(hetseq::SafetensorsReader& file, const hetseq::SafetensorEntry& entry) {
    std::vector<Number> values(entry.bytes() / sizeof(Number));
    file.read(entry, values.data());
    return {values.begin(), values.end()};
}

std::vector<double> read(hetseq::SafetensorsReader& file, const hetseq::SafetensorEntry& entry) {
    if (entry.type == hetseq::SafetensorType::F64)
        return read_as<double>(file, entry);
    if (entry.type == hetseq::SafetensorType::F32)
        return read_as<float>(file, entry);
    throw hetseq::BadData(entry.name + " is neither F32 nor F64");
}

// The largest |a - b| / max(1, |a|) of one tensor; infinite where a number is not finite.
double largest_difference(const std::string& name,
                          const std::vector<double>& left,
                          const std::vector<double>& right) {
    double largest = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (!std::isfinite(left[i]) || !std::isfinite(right[i])) {
            std::printf(
                "%s, element %zu, is not finite: %g and %g\n", name.c_str(), i, left[i], right[i]);
            return std::numeric_limits<double>::infinity();
        }
        const double difference = std::abs(left[i] - right[i]) / std::max(1.0, std::abs(left[i]));
        largest = std::max(largest, difference);
    }
    return largest;
}

// The same over all tensors of both files.
double largest_difference(hetseq::SafetensorsReader& a, hetseq::SafetensorsReader& b) {
    if (a.entries().size() != b.entries().size())
        throw hetseq::BadData("the files hold different numbers of tensors");
    double largest = 0;
    for (const hetseq::SafetensorEntry& entry : a.entries()) {
        const hetseq::SafetensorEntry* other = b.find(entry.name);
        if (other == nullptr || other->shape != entry.shape)
            throw hetseq::BadData(entry.name + " is not the same tensor in both");
        largest =
            std::max(largest, largest_difference(entry.name, read(a, entry), read(b, *other)));
    }
    return largest;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4)
        return 64;
    try {
        hetseq::SafetensorsReader a(argv[1]), b(argv[2]);
        const double tolerance = std::stod(argv[3]);
        const double difference = largest_difference(a, b);
        std::printf("largest difference %g\n", difference);
        return std::isfinite(difference) && difference <= tolerance ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
