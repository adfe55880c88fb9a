#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hetseq {

class MpiEnvironment;

enum class ReduceOp { sum, min, max };

/// A host collective in flight. Its buffers must live, untouched, until it is complete.
/// Destroying an incomplete one waits for it.
class HostRequest {
public:
    struct Impl;
    HostRequest() noexcept;  // complete
    explicit HostRequest(std::unique_ptr<Impl> impl) noexcept;
    HostRequest(HostRequest&&) noexcept;
    HostRequest& operator=(HostRequest&&) noexcept;
    ~HostRequest();

    /// True once complete. Never blocks.
    bool test();
    /// Tests and sleeps until complete, so that ranks sharing a core do not burn it.
    void wait();

private:
    std::unique_ptr<Impl> impl_;
};

/// An owned communicator for values in host memory. Every member that is not `const`-trivial
/// (all but `rank`, `size`, `number_of`, `become_job`) is collective over its ranks; every wait
/// sleeps. Throws CommError when MPI reports a failure.
class HostComm {
public:
    struct Impl;

    /// All ranks of the job, on a separate communicator.
    static HostComm world(const MpiEnvironment& environment);
    /// A single rank without MPI: for commands run outside of mpirun. Collectives are no-ops.
    static HostComm serial();

    HostComm(HostComm&&) noexcept;
    HostComm& operator=(HostComm&&) noexcept;
    ~HostComm();

    int rank() const noexcept;
    int size() const noexcept;
    /// The number by which users know a rank of this communicator: its own among the job's ranks.
    int number_of(int rank) const { return numbers().at(static_cast<std::size_t>(rank)); }

    HostComm duplicate() const;
    /// Ranks with the same `color` (>= 0) form one communicator, ordered by `key`, then rank.
    HostComm split(int color, int key = 0) const;
    /// Ranks that share memory with this one (one host).
    HostComm split_by_host() const;
    /// From here on these ranks are the job: their numbers are those in this communicator.
    void become_job();

    void barrier() const;
    HostRequest start_barrier() const;

    /// Element by element over all ranks, in place.
    void all_reduce(std::span<double> values, ReduceOp op) const;
    void all_reduce(std::span<std::int64_t> values, ReduceOp op) const;
    double all_reduce(double value, ReduceOp op) const;
    std::int64_t all_reduce(std::int64_t value, ReduceOp op) const;
    /// `values` must outlive the returned operation.
    HostRequest start_all_reduce(std::span<double> values, ReduceOp op) const;

    void broadcast(std::span<std::byte> bytes, int root) const;
    std::string broadcast(std::string value, int root) const;
    std::int64_t broadcast(std::int64_t value, int root) const;

    /// One value per rank, in rank order.
    std::vector<double> all_gather(double value) const;
    std::vector<std::int64_t> all_gather(std::int64_t value) const;
    std::vector<std::string> all_gather(const std::string& value) const;
    /// By rank on rank `root`, empty on the others. Strings of any length.
    std::vector<std::string> gather(const std::string& value, int root) const;

    const Impl& impl() const noexcept { return *impl_; }

private:
    explicit HostComm(std::unique_ptr<Impl> impl) noexcept;
    /// Collective over the part.
    static HostComm part_of(const HostComm& whole, std::unique_ptr<Impl> impl);
    const std::vector<int>& numbers() const noexcept;

    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
