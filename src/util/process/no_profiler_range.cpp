#include "hetseq/util/process/profiler_range.hpp"

namespace hetseq {

ProfilerRange::ProfilerRange(const char* /*name*/, std::int64_t /*number*/) noexcept {}

ProfilerRange::~ProfilerRange() = default;

void show_phase(Phase /*phase*/, std::int64_t /*update*/) noexcept {}

}  // namespace hetseq
