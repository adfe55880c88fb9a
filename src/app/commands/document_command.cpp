#include <cstdio>
#include <map>

#include "hetseq/util/error.hpp"

#include "app/documents/documents.hpp"

#include "hetseq/app/commands.hpp"

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
    const std::string text = documents().at(context.words.form)(context.parts);
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
        throw IoError("cannot write the document", "standard output is closed or full", "");
    return 0;
}

}  // namespace hetseq
