#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

/// An error that all ranks throw at the same place.
class AgreedError final : public Error {
public:
    using Error::Error;
};

/// Collective. If any rank brings an exception, all ranks throw an AgreedError with the text and
/// exit code of the lowest such rank. If only some ranks failed, it names them. `failure` is null
/// on a rank that did not fail.
void agree(const HostComm& comm, std::exception_ptr failure);

/// Collective. Runs `local`, which calls no collective, then agrees on its outcome.
template <class Function>
auto agree_on(const HostComm& comm, Function&& local) -> decltype(local()) {
    std::exception_ptr failure;
    if constexpr (std::is_void_v<decltype(local())>) {
        try {
            std::forward<Function>(local)();
        } catch (...) {
            failure = std::current_exception();
        }
        agree(comm, failure);
    } else {
        std::optional<decltype(local())> result;
        try {
            result.emplace(std::forward<Function>(local)());
        } catch (...) {
            failure = std::current_exception();
        }
        agree(comm, failure);
        return std::move(*result);
    }
}

}  // namespace hetseq
