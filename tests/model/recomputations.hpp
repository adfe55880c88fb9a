#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include <ATen/record_function.h>

namespace hetseq::test {

/// How often backward computed layers again while it lives.
class Recomputations {
public:
    Recomputations()
        : handle_{at::addGlobalCallback(at::RecordFunctionCallback(&count))}, before_{counted} {}
    ~Recomputations() { at::removeCallback(handle_); }
    std::int64_t made() const { return counted - before_; }

private:
    static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
        counted += std::string_view(function.name()) == "hetseq::recompute" ? 1 : 0;
        return nullptr;
    }

    static inline std::atomic<std::int64_t> counted = 0;
    at::CallbackHandle handle_;
    std::int64_t before_;
};

}  // namespace hetseq::test
