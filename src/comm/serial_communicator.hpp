#pragma once

#include <memory>

#include "hetseq/comm/communicator.hpp"

namespace hetseq {

/// The communicator of a single rank: every collective is complete at once.
std::unique_ptr<Communicator> make_serial_communicator(at::Device device);

}  // namespace hetseq
