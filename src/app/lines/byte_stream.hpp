#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"

namespace hetseq {

/// Appends values to a message between ranks of one job.
class ByteWriter {
public:
    /// `value` is copied byte by byte.
    template <class T>
    void put(T value) {
        put_bytes(&value, sizeof(value));
    }
    template <class T>
    void put(const std::vector<T>& values) {
        put(static_cast<std::int64_t>(values.size()));
        put_bytes(values.data(), values.size() * sizeof(T));
    }
    void put(const std::string& text) {
        put(static_cast<std::int64_t>(text.size()));
        bytes_ += text;
    }
    void put_bytes(const void* values, std::size_t count) {
        bytes_.append(static_cast<const char*>(values), count);
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

/// Takes them out again, in the same order.
class ByteReader {
public:
    explicit ByteReader(const std::string& bytes) : bytes_{bytes} {}

    template <class T>
    T get() {
        T value;
        take_bytes(&value, sizeof(value));
        return value;
    }
    template <class T>
    std::vector<T> get_vector() {
        std::vector<T> values(static_cast<std::size_t>(get<std::int64_t>()));
        take_bytes(values.data(), values.size() * sizeof(T));
        return values;
    }
    std::string get_text() {
        std::string text(static_cast<std::size_t>(get<std::int64_t>()), '\0');
        take_bytes(text.data(), text.size());
        return text;
    }
    void take_bytes(void* to, std::size_t count) {
        HETSEQ_ASSERT(count <= bytes_.size() - at_);
        if (count > 0)
            std::memcpy(to, bytes_.data() + at_, count);
        at_ += count;
    }

private:
    const std::string& bytes_;
    std::size_t at_ = 0;
};

}  // namespace hetseq
