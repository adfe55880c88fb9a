#pragma once

#include <string>

#include "hetseq/util/error.hpp"

namespace hetseq::test {

/// What `function` throws; code `finished` when it does not.
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
