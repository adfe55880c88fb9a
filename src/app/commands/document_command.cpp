#include <cstdio>
#include <map>
#include <string>

#include "hetseq/app/commands.hpp"

#include "app/documents/documents.hpp"

namespace hetseq {

namespace {

using Document = std::string (*)(const Parts&);

const std::map<std::string, Document>& documents() {
    static const std::map<std::string, Document> table{{"bash", bash_completion},
                                                       {"fish", fish_completion},
                                                       {"man", man_page},
                                                       {"options", options_page},
                                                       {"zsh", zsh_completion}};
    return table;
}

}  // namespace

int document_command(const CommandContext& context) {
    std::fputs(documents().at(context.words.form)(context.parts).c_str(), stdout);
    return 0;
}

}  // namespace hetseq
