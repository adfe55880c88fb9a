#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hetseq {

/// Notices what somebody removes from a run's folder while the run goes on.
class FolderParts {
public:
    /// `content`: of a file that the run knows and can write anew.
    void keep(const std::filesystem::path& part, std::optional<std::string> content = {});

    /// Those that have gone since the last look; they are written anew where their content is
    /// known.
    std::vector<std::filesystem::path> look();
    /// A sentence about all that were ever missed; empty if there are none.
    std::string report() const;

private:
    std::map<std::filesystem::path, std::optional<std::string>> parts_;
    std::set<std::filesystem::path> removed_;
};

}  // namespace hetseq
