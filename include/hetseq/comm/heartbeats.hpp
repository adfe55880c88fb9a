#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "hetseq/util/process/activity.hpp"

namespace hetseq {

class HostComm;

/// A rank's report about itself.
struct Beat {
    Activity activity;
    bool last = false;            // it leaves in order, no more will come
    std::array<char, 48> role{};  // the sender's part in the job, cut off there; ends with a zero
};

/// Beats between rank 0 and every other rank, on a communicator of their own, so that they pass
/// while other collectives are stuck. No call waits: if the last beat to a rank is still under way,
/// the next one is skipped. Only one thread may use it at a time; this needs MPI_THREAD_MULTIPLE if
/// it is not the main thread.
class Heartbeats {
public:
    /// Collective.
    explicit Heartbeats(const HostComm& world);
    /// Without `finish`, beats that are under way are given up without another MPI call and never
    /// freed: the job is about to end, and other ranks may not take part any more.
    ~Heartbeats();
    Heartbeats(const Heartbeats&) = delete;
    Heartbeats& operator=(const Heartbeats&) = delete;

    int rank() const noexcept;
    int size() const noexcept;

    /// Rank 0 sends to all other ranks; any other rank sends to rank 0. Throws CommError.
    void send(const Activity& own, const std::string& role = {});
    /// Calls `heard` with each beat that has arrived since: on rank 0 those of all other ranks,
    /// elsewhere those of rank 0. Throws CommError.
    void receive(const std::function<void(int rank, const Beat& beat)>& heard);

    /// Sends the last beats and sleeps until those of the others have come, but no longer than
    /// `limit`. True when all came. Throws CommError.
    bool finish(std::chrono::milliseconds limit);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
