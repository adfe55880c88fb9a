#include "device_choice.hpp"

#include "hetseq/util/error.hpp"

namespace hetseq {

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
        return 0;  // schedulers hand out one each
    if (local_size > count)
        throw DeviceError(
            std::to_string(local_size) + " ranks run on a host with " + std::to_string(count) +
                " GPUs",
            "each rank needs its own GPU",
            "start at most " + std::to_string(count) + " ranks on this host, or give --device cpu");
    return local_rank;
}

}  // namespace hetseq
