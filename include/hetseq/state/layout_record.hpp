#pragma once

#include <string>

namespace hetseq {

/// How a job's ranks were chosen to train, where --virtual-workers asked for a choice.
struct LayoutRecord {
    std::string question;  // all that the choice depends on
    std::string choice;    // as JSON text
};

}  // namespace hetseq
