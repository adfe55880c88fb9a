// make_images DIR TRAIN TEST: IDX files of 28x28 images in ten classes, by formula: class c is a
// bright square at a place of its own on noise. Written as MNIST's are named.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

void write_number(std::ofstream& file, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
        file.put(static_cast<char>(value >> shift));
}

std::uint8_t pixel(std::uint64_t image, int label, int row, int column) {
    const std::uint64_t noise =
        mixed(image * 784 + static_cast<std::uint64_t>(row * 28 + column)) % 96;
    const int top = 4 + 12 * (label / 5);
    const int left = 2 + 5 * (label % 5);
    const bool bright = row >= top && row < top + 8 && column >= left && column < left + 4;
    return static_cast<std::uint8_t>(noise + (bright ? 120 : 0));
}

void write_images(const std::string& prefix, std::uint64_t first, std::uint32_t count) {
    std::ofstream images(prefix + "-images-idx3-ubyte", std::ios::binary);
    std::ofstream labels(prefix + "-labels-idx1-ubyte", std::ios::binary);
    for (std::uint32_t number : {0x803U, count, 28U, 28U})
        write_number(images, number);
    for (std::uint32_t number : {0x801U, count})
        write_number(labels, number);
    for (std::uint64_t image = first; image < first + count; ++image) {
        const int label = static_cast<int>(mixed(image) % 10);
        labels.put(static_cast<char>(label));
        for (int row = 0; row < 28; ++row)
            for (int column = 0; column < 28; ++column)
                images.put(static_cast<char>(pixel(image, label, row, column)));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4)
        return 64;
    const std::string folder = argv[1];
    const auto train = static_cast<std::uint32_t>(std::atoi(argv[2]));
    write_images(folder + "/train", 0, train);
    write_images(folder + "/t10k", train, static_cast<std::uint32_t>(std::atoi(argv[3])));
    return 0;
}
