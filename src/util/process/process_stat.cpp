#include "hetseq/util/process/process_stat.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace hetseq {

// The state and the start are fields 3 and 22. Field 2, the command's name, may hold blanks.
std::optional<ProcessStat> process_stat(std::int64_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    // A process may end between opening and reading. A stream then fails; its buffer would throw.
    std::string text;
    std::getline(file, text, '\0');
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos)
        return std::nullopt;
    std::istringstream fields(text.substr(name_end + 1));
    ProcessStat stat;
    fields >> stat.state;
    std::string skipped;
    for (int i = 4; i < 22; ++i)
        fields >> skipped;
    if (!(fields >> stat.start))
        return std::nullopt;
    return stat;
}

}  // namespace hetseq
