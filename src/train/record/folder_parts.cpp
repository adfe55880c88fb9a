#include "hetseq/train/record/folder_parts.hpp"

#include <system_error>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

bool may_be_there(const std::filesystem::path& path) {
    std::error_code unknown;
    return std::filesystem::exists(path, unknown) || unknown;
}

// If it fails, the next look tries again.
void write_anew(const std::filesystem::path& path, const std::string& content) {
    try {
        write_atomically(path, content);
    } catch (const IoError&) {
    }
}

}  // namespace

void FolderParts::keep(const std::filesystem::path& part, std::optional<std::string> content) {
    parts_[part] = std::move(content);
}

std::vector<std::filesystem::path> FolderParts::look() {
    std::vector<std::filesystem::path> gone;
    for (auto part = parts_.begin(); part != parts_.end();) {
        const auto& [path, content] = *part;
        // Without its folder, whatever is written next says so.
        if (may_be_there(path) || !may_be_there(path.parent_path())) {
            ++part;
            continue;
        }
        if (removed_.insert(path).second)
            gone.push_back(path);
        if (content) {
            write_anew(path, *content);
            ++part;
        } else {
            part = parts_.erase(part);
        }
    }
    return gone;
}

std::string FolderParts::report() const {
    if (removed_.empty())
        return "";
    std::vector<std::string> lost, written_anew;
    for (const std::filesystem::path& path : removed_)
        (may_be_there(path) ? written_anew : lost).push_back(path.filename().string());
    std::string text = "somebody removed parts of " + removed_.begin()->parent_path().string() +
                       " while the run went on";
    if (!written_anew.empty())
        text += "; written anew: " + join(written_anew, ", ");
    if (!lost.empty())
        text += "; missing: " + join(lost, ", ");
    return text;
}

}  // namespace hetseq
