#pragma once

#include <cstdint>

#include "hetseq/util/process/activity.hpp"

namespace hetseq {

/// A stretch of this thread's work that NVIDIA's profilers show (an NVTX range of the domain
/// "hetseq", with `number` as its payload). Costs a few nanoseconds without a profiler, and nothing
/// in a build without CUDA. `name` must outlive it.
class ProfilerRange {
public:
    explicit ProfilerRange(const char* name, std::int64_t number = 0) noexcept;
    ~ProfilerRange();
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;
};

/// The job's thread enters a phase: the range of the one before ends, and one of its name begins,
/// with the update's number.
void show_phase(Phase phase, std::int64_t update) noexcept;

}  // namespace hetseq
