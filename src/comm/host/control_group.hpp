#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

/// The folders of the control group of this process and of its ancestors, nearest first, for one
/// controller ("cpu", "memory") of version 1, or for version 2's single tree (""). Empty when the
/// process is in none. `root` is where the kernel's /proc and /sys are found.
std::vector<std::filesystem::path> control_group_folders(const std::filesystem::path& root,
                                                         const std::string& controller);

/// The first line of a small file; empty where there is none.
std::string first_line(const std::filesystem::path& file);

}  // namespace hetseq
