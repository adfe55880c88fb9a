#include <set>

#include "hetseq/report/charts/markup.hpp"

#include "sections.hpp"

namespace hetseq::detail {

namespace {

// Closed if there are several parts or much text.
std::string folded(const std::string& title, const std::string& content, bool open) {
    return std::string("<details") + (open ? " open=\"open\"" : "") + "><summary>" +
           escaped(title) + "</summary>\n<div class=\"wide\">" + content + "</div></details>\n";
}

std::string event_table(const RunMetrics& metrics) {
    std::string rows = "<tr><th scope=\"col\">update</th><th scope=\"col\">event</th></tr>\n";
    for (const RunEvent& event : metrics.events)
        rows += "<tr><td class=\"number\">" + std::to_string(event.update) + "</td><td>" +
                escaped(event.message) + "</td></tr>\n";
    if (metrics.events_left_out > 0)
        rows += "<tr><td></td><td>and " + std::to_string(metrics.events_left_out) +
                " more in metrics.jsonl</td></tr>\n";
    return "<table>\n" + rows + "</table>";
}

std::string value_of(const RunRecord& run, const std::string& name) {
    const auto found = run.options.find(name);
    return found == run.options.end() ? "" : found->second;
}

std::string option_table(std::span<const RunRecord> runs, const std::set<std::string>& names) {
    std::string rows;
    for (const std::string& name : names) {
        rows += "<tr><th scope=\"row\">" + escaped(name) + "</th>";
        for (const RunRecord& run : runs)
            rows += "<td>" + escaped(value_of(run, name)) + "</td>";
        rows += "</tr>\n";
    }
    std::string head = "<tr><td></td>";
    for (const RunRecord& run : runs)
        head += "<th scope=\"col\">" + escaped(run.name) + "</th>";
    return "<table>\n" + head + "</tr>\n" + rows + "</table>";
}

}  // namespace

std::string events(std::span<const RunRecord> runs) {
    constexpr std::size_t few = 20;
    std::string text;
    for (const RunRecord& run : runs)
        if (const auto count =
                static_cast<std::int64_t>(run.metrics.events.size()) + run.metrics.events_left_out;
            count > 0)
            text += folded(
                run.name + ": " + std::to_string(count) + (count == 1 ? " event" : " events"),
                event_table(run.metrics),
                run.metrics.events.size() <= few);
    return text.empty() ? "" : "<h2>Events</h2>\n" + text;
}

std::string options(std::span<const RunRecord> runs) {
    std::set<std::string> all, differing;
    for (const RunRecord& run : runs)
        for (const auto& [name, value] : run.options)
            all.insert(name);
    for (const std::string& name : all)
        for (const RunRecord& run : runs)
            if (value_of(run, name) != value_of(runs.front(), name))
                differing.insert(name);
    if (all.empty())
        return "";
    return "<h2>Options</h2>\n" +
           (differing.empty()
                ? ""
                : folded("Options that differ", option_table(runs, differing), true)) +
           folded("All options", option_table(runs, all), false);
}

}  // namespace hetseq::detail
