#include "hetseq/util/process/profiler_range.hpp"

#include <nvtx3/nvToolsExt.h>

namespace hetseq {

namespace {

nvtxDomainHandle_t domain() noexcept {
    static const nvtxDomainHandle_t handle = nvtxDomainCreateA("hetseq");
    return handle;
}

nvtxEventAttributes_t attributes(const char* name, std::int64_t number) noexcept {
    nvtxEventAttributes_t of_range{};
    of_range.version = NVTX_VERSION;
    of_range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    of_range.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    of_range.payload.llValue = number;
    of_range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    of_range.message.ascii = name;
    return of_range;
}

}  // namespace

ProfilerRange::ProfilerRange(const char* name, std::int64_t number) noexcept {
    const nvtxEventAttributes_t of_range = attributes(name, number);
    nvtxDomainRangePushEx(domain(), &of_range);
}

ProfilerRange::~ProfilerRange() {
    nvtxDomainRangePop(domain());
}

// Not pushed and popped: a phase may begin while ranges of this thread are open.
void show_phase(Phase phase, std::int64_t update) noexcept {
    static nvtxRangeId_t open = 0;
    if (open != 0)
        nvtxDomainRangeEnd(domain(), open);
    const nvtxEventAttributes_t of_range = attributes(to_string(phase), update);
    open = nvtxDomainRangeStartEx(domain(), &of_range);
}

}  // namespace hetseq
