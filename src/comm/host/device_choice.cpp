#include "device_choice.hpp"

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

int usable(const VisibleCudaDevices& visible, int index) {
    const CudaDevice& device = visible.devices[static_cast<std::size_t>(index)];
    if (!device.why_not.empty())
        throw DeviceError(
            "GPU " + std::to_string(index) + " (" + device.name + ") cannot run this hetseq",
            device.why_not,
            "build hetseq for it (docs/building.md, CUDA), leave it out by "
            "CUDA_VISIBLE_DEVICES, or give --device cpu");
    return index;
}

}  // namespace

std::optional<int> choose_device(const VisibleCudaDevices& visible,
                                 DeviceChoice choice,
                                 int local_rank,
                                 int local_size) {
    if (choice == DeviceChoice::cpu)
        return std::nullopt;
    const auto count = static_cast<int>(visible.devices.size());
    if (count == 0 && choice == DeviceChoice::automatic)
        return std::nullopt;
    if (count == 0)
        throw DeviceError("--device cuda is given, but there is no GPU",
                          visible.why_none,
                          "run where nvidia-smi shows one, or give --device cpu");
    if (count == 1)
        return usable(visible, 0);  // schedulers hand out one each
    if (local_size > count)
        throw DeviceError(
            std::to_string(local_size) + " ranks run on a host with " + std::to_string(count) +
                " GPUs",
            "each rank needs its own GPU",
            "start at most " + std::to_string(count) + " ranks on this host, or give --device cpu");
    return usable(visible, local_rank);
}

}  // namespace hetseq
