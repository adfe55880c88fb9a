#include "device_choice.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

bool wants_gpu(const DeviceWish& wish) {
    return wish.choice != DeviceChoice::cpu && !wish.gpus.empty();
}

}  // namespace

std::vector<std::optional<int>> share_out_gpus(const std::vector<DeviceWish>& wishes) {
    std::vector<std::size_t> order(wishes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Those with the least choice first.
    const auto freedom = [&](std::size_t rank) {
        return std::pair{wishes[rank].gpus.size() > 1,
                         wishes[rank].choice == DeviceChoice::automatic};
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return freedom(a) < freedom(b);
    });
    std::map<std::string, int> users;
    std::vector<std::optional<int>> given(wishes.size());
    for (const std::size_t rank : order) {
        const DeviceWish& wish = wishes[rank];
        if (!wants_gpu(wish))
            continue;
        const auto least = std::min_element(
            wish.gpus.begin(), wish.gpus.end(), [&](const std::string& a, const std::string& b) {
                return users[a] < users[b];
            });
        if (users[*least] > 0 && wish.choice == DeviceChoice::automatic)
            continue;
        ++users[*least];
        given[rank] = static_cast<int>(least - wish.gpus.begin());
    }
    return given;
}

std::optional<int> checked_gpu(std::optional<int> given,
                               DeviceChoice choice,
                               const VisibleCudaDevices& visible) {
    if (!given) {
        if (choice == DeviceChoice::cuda)
            throw DeviceError("--device cuda is given, but there is no GPU",
                              visible.why_none,
                              "run where nvidia-smi shows one, or give --device cpu");
        return given;
    }
    const CudaDevice& device = visible.devices[static_cast<std::size_t>(*given)];
    if (!device.why_not.empty())
        throw DeviceError(
            "GPU " + std::to_string(*given) + " (" + device.name + ") cannot run this hetseq",
            device.why_not,
            "build hetseq for it (docs/building.md, CUDA), leave it out by "
            "CUDA_VISIBLE_DEVICES, or give --device cpu");
    return given;
}

}  // namespace hetseq
