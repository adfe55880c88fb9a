// compare_models A B TOLERANCE: whether two model.safetensors hold the same tensors, |a - b| <=
// TOLERANCE max(1, |a|).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hetseq/util/safetensors.hpp"

namespace {

double value_at(const hetseq::SafetensorsFile& file,
                const hetseq::SafetensorsEntry& entry,
                std::size_t i) {
    const auto bytes = file.bytes(entry);
    if (entry.type == hetseq::SafetensorsType::f64) {
        double value = 0;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        return value;
    }
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4)
        return 64;
    return 0;
}
