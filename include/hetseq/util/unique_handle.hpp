#pragma once

#include <utility>

namespace hetseq {

/// Sole owner of one C handle.
///
/// `Traits` supplies `type`, `null()` and `close(type&) noexcept`. `close` cannot throw, because it
/// runs during stack unwinding: the traits log a failure.
template <class Traits>
class UniqueHandle {
public:
    using Type = typename Traits::type;

    UniqueHandle() = default;
    explicit UniqueHandle(Type handle) noexcept : handle_{handle} {}
    ~UniqueHandle() { reset(); }

    UniqueHandle(UniqueHandle&& other) noexcept : handle_{other.release()} {}
    UniqueHandle& operator=(UniqueHandle&& other) noexcept {
        if (this != &other) {
            reset();
            handle_ = other.release();
        }
        return *this;
    }
    UniqueHandle(const UniqueHandle&) = delete;
    UniqueHandle& operator=(const UniqueHandle&) = delete;

    Type get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != Traits::null(); }
    Type release() noexcept { return std::exchange(handle_, Traits::null()); }
    void reset() noexcept {
        if (handle_ != Traits::null()) {
            Traits::close(handle_);
            handle_ = Traits::null();
        }
    }

private:
    Type handle_ = Traits::null();
};

}  // namespace hetseq
