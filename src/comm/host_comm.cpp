#include "hetseq/comm/host_comm.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "host_comm_impl.hpp"
#include "sleeping_wait.hpp"

namespace hetseq {

namespace {

MPI_Op to_mpi(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
            return MPI_SUM;
        case ReduceOp::min:
            return MPI_MIN;
        case ReduceOp::max:
            return MPI_MAX;
    }
    return MPI_OP_NULL;
}

template <class Value>
MPI_Datatype mpi_type();
template <>
MPI_Datatype mpi_type<double>() {
    return MPI_DOUBLE;
}
template <>
MPI_Datatype mpi_type<std::int64_t>() {
    return MPI_INT64_T;
}

// MPI counts in int, so longer data go in pieces.
constexpr std::size_t largest_count = std::size_t{1} << 30;

int checked_count(std::size_t count) {
    HETSEQ_ASSERT(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
    return static_cast<int>(count);
}

template <class Value>
void reduce_in_place(const HostComm::Impl& impl, std::span<Value> values, ReduceOp op) {
    if (impl.size == 1)
        return;
    for (std::size_t begin = 0; begin < values.size(); begin += largest_count) {
        const auto piece = values.subspan(begin, std::min(largest_count, values.size() - begin));
        run_sleeping([&](MPI_Request* request) {
            MPI_TRY(MPI_Iallreduce(MPI_IN_PLACE,
                                   piece.data(),
                                   checked_count(piece.size()),
                                   mpi_type<Value>(),
                                   to_mpi(op),
                                   impl.comm.get(),
                                   request));
        });
    }
}

template <class Value>
std::vector<Value> gather_values(const HostComm::Impl& impl, Value value) {
    std::vector<Value> values(static_cast<std::size_t>(impl.size), value);
    if (impl.size == 1)
        return values;
    run_sleeping([&](MPI_Request* request) {
        MPI_TRY(MPI_Iallgather(&value,
                               1,
                               mpi_type<Value>(),
                               values.data(),
                               1,
                               mpi_type<Value>(),
                               impl.comm.get(),
                               request));
    });
    return values;
}

// The bytes of all ranks' strings, `lengths` long, one after the other.
std::string gather_bytes(const HostComm::Impl& impl,
                         const std::string& value,
                         const std::vector<std::int64_t>& lengths) {
    std::vector<int> counts;
    std::vector<int> offsets;
    std::size_t total = 0;
    for (const std::int64_t length : lengths) {
        counts.push_back(checked_count(static_cast<std::size_t>(length)));
        offsets.push_back(checked_count(total));
        total += static_cast<std::size_t>(length);
    }
    std::string bytes(total, '\0');
    run_sleeping([&](MPI_Request* request) {
        MPI_TRY(MPI_Iallgatherv(value.data(),
                                checked_count(value.size()),
                                MPI_BYTE,
                                bytes.data(),
                                counts.data(),
                                offsets.data(),
                                MPI_BYTE,
                                impl.comm.get(),
                                request));
    });
    return bytes;
}

// Bytes [begin, end) of a string, as far as it has them.
std::size_t bytes_between(std::int64_t length, std::int64_t begin, std::int64_t end) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, std::min(length, end) - begin));
}

// Bytes [begin, end) of all ranks' strings, one after the other, on rank `root`.
std::string gather_pieces(const HostComm::Impl& impl,
                          const std::string& value,
                          const std::vector<std::int64_t>& lengths,
                          std::int64_t begin,
                          std::int64_t end,
                          int root) {
    std::vector<int> counts;
    std::vector<int> offsets;
    std::size_t total = 0;
    for (const std::int64_t length : lengths) {
        counts.push_back(checked_count(bytes_between(length, begin, end)));
        offsets.push_back(checked_count(total));
        total += static_cast<std::size_t>(counts.back());
    }
    const int own = counts[static_cast<std::size_t>(impl.rank)];
    std::string bytes(impl.rank == root ? total : 0, '\0');
    run_sleeping([&](MPI_Request* request) {
        MPI_TRY(MPI_Igatherv(own > 0 ? value.data() + begin : nullptr,
                             own,
                             MPI_BYTE,
                             bytes.data(),
                             counts.data(),
                             offsets.data(),
                             MPI_BYTE,
                             root,
                             impl.comm.get(),
                             request));
    });
    return bytes;
}

MPI_Comm duplicate_handle(MPI_Comm comm) {
    MPI_Comm copy = MPI_COMM_NULL;
    run_sleeping([&](MPI_Request* request) { MPI_TRY(MPI_Comm_idup(comm, &copy, request)); });
    return copy;
}

std::vector<int> count_up(int size) {
    std::vector<int> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

}  // namespace

HostComm::Impl::Impl(MPI_Comm handle) : comm{handle}, numbers(1) {
    if (handle == MPI_COMM_NULL)
        return;
    MPI_TRY(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN));
    MPI_TRY(MPI_Comm_rank(handle, &rank));
    MPI_TRY(MPI_Comm_size(handle, &size));
    numbers = count_up(size);
}

HostComm::HostComm(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
HostComm::HostComm(HostComm&&) noexcept = default;
HostComm& HostComm::operator=(HostComm&&) noexcept = default;
HostComm::~HostComm() = default;

HostComm HostComm::world(const MpiEnvironment&) {
    return HostComm{std::make_unique<Impl>(duplicate_handle(MPI_COMM_WORLD))};
}

HostComm HostComm::serial() {
    return HostComm{std::make_unique<Impl>(MPI_COMM_NULL)};
}

int HostComm::rank() const noexcept {
    return impl_->rank;
}

int HostComm::size() const noexcept {
    return impl_->size;
}

HostComm HostComm::duplicate() const {
    if (!impl_->comm)
        return serial();
    HostComm copy{std::make_unique<Impl>(duplicate_handle(impl_->comm.get()))};
    copy.impl_->numbers = impl_->numbers;
    return copy;
}

HostComm HostComm::split(int color, int key) const {
    HETSEQ_ASSERT(color >= 0);
    if (!impl_->comm)
        return serial();
    barrier();  // MPI_Comm_split waits for late ranks at full CPU use
    MPI_Comm part = MPI_COMM_NULL;
    MPI_TRY(MPI_Comm_split(impl_->comm.get(), color, key, &part));
    return part_of(*this, std::make_unique<Impl>(part));
}

HostComm HostComm::split_by_host() const {
    if (!impl_->comm)
        return serial();
    barrier();
    MPI_Comm node = MPI_COMM_NULL;
    MPI_TRY(MPI_Comm_split_type(impl_->comm.get(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    return part_of(*this, std::make_unique<Impl>(node));
}

HostComm HostComm::part_of(const HostComm& whole, std::unique_ptr<Impl> impl) {
    HostComm part{std::move(impl)};
    const auto numbers = part.all_gather(static_cast<std::int64_t>(whole.number_of(whole.rank())));
    part.impl_->numbers.assign(numbers.begin(), numbers.end());
    return part;
}

const std::vector<int>& HostComm::numbers() const noexcept {
    return impl_->numbers;
}

void HostComm::become_job() {
    impl_->numbers = count_up(impl_->size);
}

void HostComm::barrier() const {
    start_barrier().wait();
}

HostRequest HostComm::start_barrier() const {
    if (impl_->size == 1)
        return {};
    auto pending = std::make_unique<HostRequest::Impl>();
    MPI_TRY(MPI_Ibarrier(impl_->comm.get(), &pending->request));
    return HostRequest{std::move(pending)};
}

void HostComm::all_reduce(std::span<double> values, ReduceOp op) const {
    reduce_in_place(*impl_, values, op);
}

void HostComm::all_reduce(std::span<std::int64_t> values, ReduceOp op) const {
    reduce_in_place(*impl_, values, op);
}

double HostComm::all_reduce(double value, ReduceOp op) const {
    reduce_in_place(*impl_, std::span{&value, 1}, op);
    return value;
}

std::int64_t HostComm::all_reduce(std::int64_t value, ReduceOp op) const {
    reduce_in_place(*impl_, std::span{&value, 1}, op);
    return value;
}

HostRequest HostComm::start_all_reduce(std::span<double> values, ReduceOp op) const {
    if (impl_->size == 1)
        return {};
    auto pending = std::make_unique<HostRequest::Impl>();
    pending->buffer.assign(values.begin(), values.end());
    pending->result = values;
    MPI_TRY(MPI_Iallreduce(MPI_IN_PLACE,
                           pending->buffer.data(),
                           checked_count(values.size()),
                           MPI_DOUBLE,
                           to_mpi(op),
                           impl_->comm.get(),
                           &pending->request));
    return HostRequest{std::move(pending)};
}

void HostComm::broadcast(std::span<std::byte> bytes, int root) const {
    if (impl_->size == 1)
        return;
    for (std::size_t begin = 0; begin < bytes.size(); begin += largest_count) {
        const auto piece = bytes.subspan(begin, std::min(largest_count, bytes.size() - begin));
        run_sleeping([&](MPI_Request* request) {
            MPI_TRY(MPI_Ibcast(piece.data(),
                               checked_count(piece.size()),
                               MPI_BYTE,
                               root,
                               impl_->comm.get(),
                               request));
        });
    }
}

std::string HostComm::broadcast(std::string value, int root) const {
    value.resize(
        static_cast<std::size_t>(broadcast(static_cast<std::int64_t>(value.size()), root)));
    broadcast(std::as_writable_bytes(std::span{value}), root);
    return value;
}

std::int64_t HostComm::broadcast(std::int64_t value, int root) const {
    broadcast(std::as_writable_bytes(std::span{&value, 1}), root);
    return value;
}

std::vector<double> HostComm::all_gather(double value) const {
    return gather_values(*impl_, value);
}

std::vector<std::int64_t> HostComm::all_gather(std::int64_t value) const {
    return gather_values(*impl_, value);
}

std::vector<std::string> HostComm::all_gather(const std::string& value) const {
    if (impl_->size == 1)
        return {value};
    const auto lengths = all_gather(static_cast<std::int64_t>(value.size()));
    const std::string bytes = gather_bytes(*impl_, value, lengths);
    std::vector<std::string> values;
    std::size_t begin = 0;
    for (const std::int64_t length : lengths) {
        values.push_back(bytes.substr(begin, static_cast<std::size_t>(length)));
        begin += static_cast<std::size_t>(length);
    }
    return values;
}

// In pieces, since MPI counts in int.
std::vector<std::string> HostComm::gather(const std::string& value, int root) const {
    if (impl_->size == 1)
        return {value};
    constexpr std::int64_t most_bytes = 64 << 20;  // of a piece, from all ranks
    const std::int64_t piece = std::max<std::int64_t>(1, most_bytes / impl_->size);
    const auto lengths = all_gather(static_cast<std::int64_t>(value.size()));
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    std::vector<std::string> values(impl_->rank == root ? lengths.size() : 0);
    for (std::size_t rank = 0; rank < values.size(); ++rank)
        values[rank].reserve(static_cast<std::size_t>(lengths[rank]));
    for (std::int64_t begin = 0; begin < longest; begin += piece) {
        const std::string bytes = gather_pieces(*impl_, value, lengths, begin, begin + piece, root);
        std::size_t place = 0;
        for (std::size_t rank = 0; rank < values.size(); ++rank) {
            const std::size_t count = bytes_between(lengths[rank], begin, begin + piece);
            values[rank].append(bytes, place, count);
            place += count;
        }
    }
    return values;
}

MPI_Comm mpi_handle(const HostComm& comm) noexcept {
    return comm.impl().comm.get();
}

}  // namespace hetseq
