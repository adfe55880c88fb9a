#pragma once

#include <string>

namespace hetseq {

class HostComm;
class Replica;
struct RunSettings;
struct Summary;
struct TrainerReport;

/// The stages of a pipeline, for the start report; empty where ranks have whole replicas.
std::string pipeline_report(const Replica& replica, const RunSettings& settings);

/// Collective. Adds to `summary` what the stages were; nothing where ranks have whole replicas.
/// `report`: this rank's.
void describe_pipeline(const HostComm& world,
                       const Replica& replica,
                       const TrainerReport& report,
                       Summary& summary);

}  // namespace hetseq
