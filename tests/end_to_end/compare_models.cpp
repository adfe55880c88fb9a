// compare_models A B TOLERANCE: whether two model.safetensors hold the same tensors, |a - b| <=
// TOLERANCE max(1, |a|).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/safetensors.hpp"

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

// The largest |a - b| / max(1, |a|) over all tensors of both files.
double largest_difference(hetseq::SafetensorsReader& a, hetseq::SafetensorsReader& b) {
    if (a.entries().size() != b.entries().size())
        throw hetseq::BadData("the files hold different numbers of tensors");
    double largest = 0;
    for (const hetseq::SafetensorEntry& entry : a.entries()) {
        const hetseq::SafetensorEntry* other = b.find(entry.name);
        if (other == nullptr || other->shape != entry.shape)
            throw hetseq::BadData(entry.name + " is not the same tensor in both");
        const std::vector<double> left = read(a, entry);
        const std::vector<double> right = read(b, *other);
        for (std::size_t i = 0; i < left.size(); ++i) {
            const double difference =
                std::abs(left[i] - right[i]) / std::max(1.0, std::abs(left[i]));
            largest = difference <= largest ? largest : difference;  // a NaN stays
        }
    }
    return largest;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4)
        return 64;
    try {
        hetseq::SafetensorsReader a(argv[1]), b(argv[2]);
        const double difference = largest_difference(a, b);
        std::printf("largest difference %g\n", difference);
        return difference <= std::atof(argv[3]) ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
