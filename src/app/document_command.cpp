#include <cstdio>
#include <map>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/app/bash_completion.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/man_page.hpp"
#include "hetseq/app/options_page.hpp"

namespace hetseq {

namespace {

using Document = std::string (*)(const Parts&);

const std::map<std::string, Document>& documents() {
    static const std::map<std::string, Document> table{
        {"bash", bash_completion}, {"man", man_page}, {"options", options_page}};
    return table;
}

}  // namespace

int document_command(const CommandContext& context) {
    if (context.words.size() != 1)
        throw BadUsage("one document is needed", "", "hetseq document man, bash or options");
    const std::string& name = context.words.front();
    const auto found = documents().find(name);
    if (found == documents().end()) {
        std::vector<std::string> names;
        for (const auto& [known, document] : documents())
            names.push_back(known);
        throw BadUsage("there is no document '" + name + "'", "", suggestion(name, names));
    }
    const std::string text = found->second(context.parts);
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
        throw IoError("cannot write the document", "standard output is closed or full", "");
    return 0;
}

}  // namespace hetseq
