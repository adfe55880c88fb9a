#pragma once

#include <string>

namespace hetseq {

class HostComm;
class Replica;
struct RunSettings;
struct Summary;

/// The stages of a pipeline, for the start report; empty where ranks have whole replicas.
std::string pipeline_report(const Replica& replica, const RunSettings& settings);

/// Collective. Adds to `summary` what the stages were; nothing where ranks have whole replicas.
/// `sent_mb`: by this rank, to other stages, in an update.
void describe_pipeline(const HostComm& world,
                       const Replica& replica,
                       double sent_mb,
                       Summary& summary);

}  // namespace hetseq
