// A profiler for tests: writes each range of NVTX to the file STAND_IN_RANGES, a line each.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <nvtx3/nvToolsExt.h>

namespace {

class Ranges {
public:
    nvtxDomainHandle_t create(const char* name) {
        const std::lock_guard lock{mutex_};
        names_.emplace_back(name);
        return reinterpret_cast<nvtxDomainHandle_t>(names_.size());  // never dereferenced
    }

    void write(nvtxDomainHandle_t domain, const std::string& what) {
        const std::lock_guard lock{mutex_};
        if (file_ == nullptr)
            return;
        const auto index = reinterpret_cast<std::size_t>(domain);
        std::fprintf(file_, "%s: %s\n", names_.at(index - 1).c_str(), what.c_str());
        std::fflush(file_);
    }

private:
    static std::FILE* open() {
        const char* path = std::getenv("STAND_IN_RANGES");
        return path == nullptr ? nullptr : std::fopen(path, "a");
    }

    std::mutex mutex_;
    std::vector<std::string> names_;
    std::FILE* file_ = open();
};

Ranges& ranges() {
    static Ranges all;
    return all;
}

std::string text(const nvtxEventAttributes_t* attributes) {
    return std::string{attributes->message.ascii} + " " +
           std::to_string(attributes->payload.llValue);
}

nvtxDomainHandle_t create_domain(const char* name) {
    return ranges().create(name);
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
    ranges().write(domain, "opens " + text(attributes));
    return 0;
}

int pop(nvtxDomainHandle_t domain) {
    ranges().write(domain, "closes");
    return 0;
}

nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
    ranges().write(domain, "begins " + text(attributes));
    return 1;
}

void end(nvtxDomainHandle_t domain, nvtxRangeId_t /*range*/) {
    ranges().write(domain, "ends");
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const auto* callbacks =
        static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned int size = 0;
    if (callbacks == nullptr ||
        callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
        size <= NVTX_CBID_CORE2_DomainRangePop)
        return 0;
    const auto set = [&](int which, auto* function) {
        *table[which] = reinterpret_cast<NvtxFunctionPointer>(function);
    };
    set(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
    set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
    set(NVTX_CBID_CORE2_DomainRangePop, &pop);
    set(NVTX_CBID_CORE2_DomainRangeStartEx, &start);
    set(NVTX_CBID_CORE2_DomainRangeEnd, &end);
    return 1;
}
