#include "control_group.hpp"

#include <fstream>
#include <sstream>

namespace hetseq {

namespace {

namespace fs = std::filesystem;

bool lists(const std::string& controllers, const std::string& wanted) {
    std::istringstream names{controllers};
    for (std::string name; std::getline(names, name, ',');)
        if (name == wanted)
            return true;
    return wanted.empty() && controllers.empty();
}

// The group's path from /proc/self/cgroup, whose lines are "number:controllers:path"; version 2
// lists no controllers.
std::string group_path(const fs::path& root, const std::string& controller) {
    std::ifstream file{root / "proc/self/cgroup"};
    for (std::string line; std::getline(file, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (second == std::string::npos)
            continue;
        if (lists(line.substr(first + 1, second - first - 1), controller))
            return line.substr(second + 1);
    }
    return {};
}

fs::path mount_point(const fs::path& root, const std::string& controller) {
    const fs::path base = root / "sys/fs/cgroup";
    if (!controller.empty())
        return base / controller;
    // Next to version 1, the kernel's version 2 tree has its own folder.
    return fs::exists(base / "cgroup.controllers") ? base : base / "unified";
}

}  // namespace

std::vector<fs::path> control_group_folders(const fs::path& root, const std::string& controller) {
    const std::string path = group_path(root, controller);
    if (path.empty())
        return {};
    const fs::path mount = mount_point(root, controller);
    std::vector<fs::path> folders;
    // Inside a container the path may be the host's and not exist here; its ancestors, up to the
    // mount point, do.
    for (fs::path group = fs::path(path).relative_path(); !group.empty();
         group = group.parent_path())
        folders.push_back(mount / group);
    folders.push_back(mount);
    return folders;
}

std::string first_line(const fs::path& file) {
    std::ifstream stream{file};
    std::string line;
    std::getline(stream, line);
    return line;
}

}  // namespace hetseq
