#pragma once

#include <string>

namespace hetseq::stand_in {

/// What tensors of a device were used for since `reset_work`.
struct DeviceWork {
    long operators = 0;         // that are not views; each launches one kernel or several
    long synchronisations = 0;  // waits of the host for a stream: values and tensors that it reads
    std::string synchronised_by;  // names of those operators
};
DeviceWork device_work();
void reset_work();

}  // namespace hetseq::stand_in
