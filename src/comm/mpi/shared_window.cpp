#include "hetseq/comm/mpi/shared_window.hpp"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include <mpi.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/unique_handle.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

namespace hetseq {

namespace {

constexpr std::size_t alignment = 64;  // a cache line, and what tensors want

struct WindowTraits {
    using type = MPI_Win;
    static type null() noexcept { return MPI_WIN_NULL; }
    static void close(type& window) noexcept { MPI_Win_free(&window); }
};

// Open MPI makes the window as a file in this folder. If the folder has no room left, writing to it
// kills the process with SIGBUS.
std::string backing_store() {
    const char* folder = std::getenv("OMPI_MCA_osc_sm_backing_directory");
    return folder ? folder : "/dev/shm";
}

bool backing_store_holds(std::size_t bytes) {
    struct statvfs stats {};
    if (statvfs(backing_store().c_str(), &stats) != 0)
        return false;
    constexpr std::size_t margin = std::size_t{8} << 20;  // for MPI's own files there
    return stats.f_bavail * stats.f_frsize >= bytes + margin;
}

// The first aligned address in the `size + alignment` bytes at `base`.
std::byte* aligned(void* base, std::size_t size) {
    std::size_t space = size + alignment;
    return static_cast<std::byte*>(std::align(alignment, size, base, space));
}

}  // namespace

struct SharedWindow::Impl {
    HostComm node;
    UniqueHandle<WindowTraits> window;  // null: private memory
    std::span<std::byte> bytes;

    explicit Impl(const HostComm& comm) : node{comm.duplicate()} {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    bool allocate_shared(std::size_t size);
    void allocate_private(std::size_t size);
    void zero_my_part() const;
};

SharedWindow::Impl::~Impl() {
    if (!window) {
        if (!bytes.empty())
            munmap(bytes.data(), bytes.size());
        return;
    }
    if (std::uncaught_exceptions() > 0) {
        window.release();  // freeing waits for the other ranks, which may never come
        return;
    }
    try {
        MPI_TRY(MPI_Win_unlock_all(window.get()));
        node.barrier();  // MPI_Win_free waits for late ranks at full CPU use
    } catch (const std::exception& error) {
        log::here(log::Level::error, error.what());
        window.release();
    }
}

// Collective. All memory belongs to rank 0 of the node. Returns false on all ranks if any rank
// failed.
bool SharedWindow::Impl::allocate_shared(std::size_t size) {
    const std::size_t mine = node.rank() == 0 ? size + alignment : 0;
    void* base = nullptr;
    MPI_Win handle = MPI_WIN_NULL;
    const int code = MPI_Win_allocate_shared(
        static_cast<MPI_Aint>(mine), 1, MPI_INFO_NULL, mpi_handle(node), &base, &handle);
    const bool everywhere = node.all_reduce(std::int64_t{code == MPI_SUCCESS}, ReduceOp::min) == 1;
    if (code == MPI_SUCCESS)
        window = UniqueHandle<WindowTraits>{handle};
    if (!everywhere) {
        window.release();  // freeing is collective, and some rank has nothing to free
        return false;
    }
    MPI_Aint whole = 0;
    int unit = 0;
    MPI_TRY(MPI_Win_shared_query(window.get(), 0, &whole, &unit, &base));
    MPI_TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, window.get()));
    bytes = {aligned(base, size), size};
    return true;
}

void SharedWindow::Impl::allocate_private(std::size_t size) {
    if (size == 0)
        return;
    void* memory = mmap(
        nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    bytes = {static_cast<std::byte*>(memory), size};
}

// Each rank writes its part. This takes the pages from the backing store now, and not in the middle
// of training, and places them in the memory near each rank.
void SharedWindow::Impl::zero_my_part() const {
    const auto rank = static_cast<std::size_t>(node.rank());
    const auto size = static_cast<std::size_t>(node.size());
    const std::size_t begin = bytes.size() / size * rank;
    const std::size_t end = rank + 1 == size ? bytes.size() : bytes.size() / size * (rank + 1);
    std::memset(bytes.data() + begin, 0, end - begin);
    node.barrier();
}

SharedWindow::SharedWindow(const HostComm& node, std::size_t bytes)
    : impl_{std::make_unique<Impl>(node)} {
    const bool fits = node.size() > 1 && bytes > 0 && backing_store_holds(bytes);
    const bool fits_everywhere = node.all_reduce(std::int64_t{fits}, ReduceOp::min) == 1;
    if (fits_everywhere && impl_->allocate_shared(bytes))
        impl_->zero_my_part();
    else
        impl_->allocate_private(bytes);
}

SharedWindow::~SharedWindow() = default;
SharedWindow::SharedWindow(SharedWindow&&) noexcept = default;
SharedWindow& SharedWindow::operator=(SharedWindow&&) noexcept = default;

std::span<std::byte> SharedWindow::bytes() const noexcept {
    return impl_->bytes;
}

bool SharedWindow::shared() const noexcept {
    return static_cast<bool>(impl_->window);
}

}  // namespace hetseq
