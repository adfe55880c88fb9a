#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/unique_handle.hpp"

namespace hetseq {

/// A new event file for TensorBoard: records of scalars. TensorBoard reads all files of a folder as
/// one run.
class EventFile {
public:
    /// `first_step`: of what is to come; TensorBoard forgets what it has read of this step and
    /// later ones in the files of earlier starts. `wall_time`: seconds since 1970.
    EventFile(std::filesystem::path folder, std::int64_t first_step, double wall_time);

    /// The path of the file, which is there once the file is flushed.
    const std::filesystem::path& path() const noexcept { return path_; }
    /// Whether somebody removed the file that was made: what is written then is in no file.
    bool is_gone() const;
    /// Kept in memory until `flush`. `value` is stored in single precision.
    void add_scalar(std::string_view tag, std::int64_t step, double value, double wall_time);
    /// Appends what was added. The first call makes a new file with a new name in `folder`, and
    /// makes `folder` if its parent exists. Throws IoError and leaves the file as it was; a later
    /// call tries again.
    void flush();

private:
    void open();
    void append(std::size_t& written);

    std::filesystem::path folder_, path_;
    double wall_time_ = 0;
    UniqueHandle<detail::FileDescriptorTraits> file_;
    std::string pending_;
    std::int64_t size_ = 0;  // bytes in the file
};

}  // namespace hetseq
