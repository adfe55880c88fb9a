#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "hetseq/util/activity.hpp"

namespace hetseq {

class HostComm;

/// A rank's report about itself.
struct Beat {
    Activity activity;
    bool last = false;  // it leaves in order, no more will come
};

/// Beats between rank 0 and every other rank, on a communicator of their own, so that they pass
/// while other collectives are stuck. No call waits: a beat is skipped to whom the one before is
/// still under way. For one thread at a time, which needs MPI_THREAD_MULTIPLE when it is not the
/// main one.
class Heartbeats {
public:
    /// Collective.
    explicit Heartbeats(const HostComm& world);
    /// Without `finish`, what is under way is given up without another MPI call, never freed: the
    /// job is about to end, and its ranks may not come along.
    ~Heartbeats();
    Heartbeats(const Heartbeats&) = delete;
    Heartbeats& operator=(const Heartbeats&) = delete;

    int rank() const noexcept;
    int size() const noexcept;

    /// To all other ranks from rank 0, to rank 0 from any other. Throws CommError.
    void send(const Activity& own);
    /// Calls `heard` with what has arrived since, on rank 0 of any other rank, elsewhere of rank 0.
    /// Throws CommError.
    void receive(const std::function<void(int rank, const Beat& beat)>& heard);

    /// Sends the last beats and waits for those of the others, asleep and no longer than `limit`.
    /// True when all came. Throws CommError.
    bool finish(std::chrono::milliseconds limit);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
