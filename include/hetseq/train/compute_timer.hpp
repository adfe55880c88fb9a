#pragma once

#include <chrono>
#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Event.h>

namespace hetseq {

/// Times what is computed between two calls. It uses the clock on a CPU, and events on the current
/// stream of other devices, where calls return before the work is done.
class ComputeTimer {
public:
    explicit ComputeTimer(c10::Device device);

    void begin();
    void end();
    /// From the last `begin` to the last `end` [ms]; waits until the device is there.
    double ms() const;

private:
    c10::Stream stream() const;

    c10::Device device_;
    std::chrono::steady_clock::time_point begin_, end_;
    std::optional<c10::Event> device_begin_, device_end_;
};

}  // namespace hetseq
