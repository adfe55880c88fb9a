#include <algorithm>
#include <array>
#include <cstring>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "hetseq/comm/mpi/mpi_try.hpp"

#include "all_reduce.hpp"
#include "sum_into.hpp"

namespace hetseq {

namespace {

constexpr int doubling_tag = 2;

template <class Value>
class Doubling {
public:
    Doubling(MPI_Comm comm, Value* values, std::size_t count, Scratch& scratch, Progress& progress)
        : comm_{comm}, values_{values}, count_{count}, progress_{progress} {
        MPI_TRY(MPI_Comm_rank(comm, &rank_));
        MPI_TRY(MPI_Comm_size(comm, &size_));
        while (2 * power_ <= size_)
            power_ *= 2;
        scratch.resize(std::max(scratch.size(), count * sizeof(Value)));
        theirs_ = reinterpret_cast<Value*>(scratch.data());
    }

    // The ranks beyond the largest power of two give their values to a partner and get the sum.
    void run() {
        const int surplus = size_ - power_;
        if (rank_ >= power_) {
            transfer(rank_ - power_, values_, nullptr);
            transfer(rank_ - power_, nullptr, values_);
            return;
        }
        if (rank_ < surplus) {
            transfer(rank_ + power_, nullptr, theirs_);
            add_theirs(rank_ + power_);
        }
        for (int distance = 1; distance < power_; distance *= 2) {
            const int partner = rank_ ^ distance;
            transfer(partner, values_, theirs_);
            add_theirs(partner);
        }
        if (rank_ < surplus)
            transfer(rank_ + power_, values_, nullptr);
    }

private:
    int bytes() const noexcept { return static_cast<int>(count_ * sizeof(Value)); }

    // IEEE addition commutes, except that a NaN takes the payload of the first operand.
    void add_theirs(int partner) {
        if (rank_ < partner) {
            sum_into(values_, theirs_, count_);
            return;
        }
        sum_into(theirs_, values_, count_);
        std::memcpy(values_, theirs_, count_ * sizeof(Value));
    }

    // Sends `source` to and receives `target` from `partner`; either may be null.
    void transfer(int partner, const Value* source, Value* target) {
        std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        if (target)
            MPI_TRY(
                MPI_Irecv(target, bytes(), MPI_BYTE, partner, doubling_tag, comm_, &requests[0]));
        if (source)
            MPI_TRY(
                MPI_Isend(source, bytes(), MPI_BYTE, partner, doubling_tag, comm_, &requests[1]));
        for (;;) {
            int complete = 0;
            MPI_TRY(MPI_Testall(2, requests.data(), &complete, MPI_STATUSES_IGNORE));
            if (complete != 0)
                break;
            progress_.nothing_moved();
        }
        progress_.moved();
    }

    MPI_Comm comm_;
    Value* values_;
    std::size_t count_;
    Progress& progress_;
    Value* theirs_ = nullptr;
    int rank_ = 0;
    int size_ = 1;
    int power_ = 1;  // the largest power of two not above `size_`
};

}  // namespace

template <class Value>
void doubling_all_reduce(
    MPI_Comm comm, Value* values, std::size_t count, Scratch& scratch, Progress& progress) {
    if (count > 0)
        Doubling<Value>{comm, values, count, scratch, progress}.run();
}

template void doubling_all_reduce(MPI_Comm, float*, std::size_t, Scratch&, Progress&);
template void doubling_all_reduce(MPI_Comm, double*, std::size_t, Scratch&, Progress&);
template void doubling_all_reduce(MPI_Comm, c10::BFloat16*, std::size_t, Scratch&, Progress&);
template void doubling_all_reduce(MPI_Comm, c10::Half*, std::size_t, Scratch&, Progress&);

}  // namespace hetseq
