#pragma once

#include <string>

#include "hetseq/util/error.hpp"

namespace hetseq::test {

/// The error that `function` throws; its code is `finished` if there is none.
struct Thrown {
    ExitCode code = ExitCode::finished;
    std::string text;
};

template <class Function>
Thrown thrown_by(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {};
}

}  // namespace hetseq::test
