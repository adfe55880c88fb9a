#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

namespace hetseq::detail {

/// Zeros at the start, and at an address that is a multiple of 64 bytes.
template <class T>
class AlignedArray {
public:
    AlignedArray() = default;
    explicit AlignedArray(std::int64_t size)
        : data_{static_cast<T*>(::operator new(bytes(size), alignment))}, size_{size} {
        std::fill_n(data_.get(), size, T(0));
    }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::int64_t size() const { return size_; }

    /// Keeps nothing where it must grow.
    T* room_for(std::int64_t size) {
        if (size > size_)
            *this = AlignedArray(size + size / 4);
        return data();
    }

private:
    static constexpr std::align_val_t alignment{64};
    static std::size_t bytes(std::int64_t size) {
        return static_cast<std::size_t>(size) * sizeof(T);
    }
    struct Free {
        void operator()(T* data) const { ::operator delete(data, alignment); }
    };

    std::unique_ptr<T[], Free> data_;
    std::int64_t size_ = 0;
};

}  // namespace hetseq::detail
