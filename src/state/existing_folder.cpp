#include "hetseq/state/existing_folder.hpp"

#include <system_error>

#include "hetseq/util/error.hpp"

namespace hetseq {

void check_folder(const std::filesystem::path& folder) {
    std::error_code unknown;
    if (std::filesystem::is_directory(folder, unknown))
        return;
    const bool exists = std::filesystem::exists(folder, unknown);
    throw MissingInput(exists ? folder.string() + " is a file, not a folder"
                              : "there is no folder " + folder.string(),
                       "",
                       "give the folder of a run, its --save-dir");
}

}  // namespace hetseq
