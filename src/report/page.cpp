#include "hetseq/report/page.hpp"

#include "hetseq/report/charts/markup.hpp"

#include "hetseq/version.hpp"
#include "sections.hpp"

namespace hetseq {

std::string_view begin_of_report_page() {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>";
}

std::string report_page(std::span<const RunRecord> runs) {
    std::string title;
    for (const RunRecord& run : runs)
        title += (title.empty() ? "" : ", ") + run.name;
    return std::string(begin_of_report_page()) + escaped(title) +
           ": hetseq report</title>\n<style>" + detail::style() +
           "</style>\n</head>\n<body>\n<h1>hetseq report</h1>\n" + detail::overview(runs) +
           detail::curves(runs) + detail::balance(runs) + detail::events(runs) +
           detail::options(runs) + "<footer>hetseq " + version::number +
           "; rest the pointer on a place in a chart to see its values.</footer>\n"
           "</body>\n</html>\n";
}

}  // namespace hetseq
