#pragma once

#include <string>

namespace hetseq {

class Replica;
struct RunSettings;

/// The stages of a pipeline, for the start report; empty where ranks have whole replicas.
std::string pipeline_report(const Replica& replica, const RunSettings& settings);

}  // namespace hetseq
