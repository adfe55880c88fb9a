#include <algorithm>
#include <cstdio>

#include "hetseq/util/json.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/check_corpus.hpp"
#include "hetseq/session/options/merged_values.hpp"
#include "hetseq/session/options/option_agreement.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/commands.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

std::string shape_of(const CorpusReport& report, const CorpusReport::Field& field) {
    std::string shape = "(" + std::to_string(report.samples);
    for (std::int64_t length : field.row_shape)
        shape += ", " + (length < 0 ? "any" : std::to_string(length));
    return shape + ")";
}

double mean_length(const CorpusReport& report, const CorpusReport::Field& field) {
    return static_cast<double>(field.values) / static_cast<double>(report.samples);
}

nlohmann::ordered_json as_json(const Number& number) {
    return std::visit([](auto value) { return nlohmann::ordered_json(value); }, number);
}

std::string as_json(const CorpusReport& report) {
    nlohmann::ordered_json json{{"samples", report.samples}};
    for (const CorpusReport::Shard& shard : report.shards)
        json["shards"].push_back({{"path", shard.path}, {"samples", shard.samples}});
    for (const CorpusReport::Field& field : report.fields) {
        nlohmann::ordered_json& entry = json["fields"][field.name];
        entry = {{"type", field.type},
                 {"row_shape", field.row_shape},
                 {"sum", as_json(field.sum)},
                 {"minimum", as_json(field.minimum)},
                 {"maximum", as_json(field.maximum)}};
        if (field.is_ragged)
            entry.update({{"values", field.values},
                          {"mean_length", mean_length(report, field)},
                          {"longest", field.longest}});
    }
    return json_text(json, 2) + "\n";
}

std::string as_text(const CorpusReport& report) {
    std::vector<std::vector<std::string>> rows{
        {"dataset", "type", "shape", "sum", "least", "greatest"}};
    const bool is_ragged = std::any_of(report.fields.begin(),
                                       report.fields.end(),
                                       [](const auto& field) { return field.is_ragged; });
    if (is_ragged)
        rows.front().insert(rows.front().end(), {"values", "mean length", "longest"});
    for (const CorpusReport::Field& field : report.fields) {
        rows.push_back({field.name,
                        field.type,
                        shape_of(report, field),
                        number_text(field.sum),
                        number_text(field.minimum),
                        number_text(field.maximum)});
        if (field.is_ragged)
            rows.back().insert(rows.back().end(),
                               {std::to_string(field.values),
                                format_number(mean_length(report, field), 4),
                                std::to_string(field.longest)});
    }
    return "good: " + std::to_string(report.shards.size()) + " shard(s), " +
           std::to_string(report.samples) + " samples\n" + format_table(rows);
}

}  // namespace

int check_command(const CommandContext& context) {
    const HostComm& world = context.world;
    const OptionValues values = agree_on(world, [&] {
        return merged_values(given_options(context.words, option_table(context.parts)),
                             context.parts);
    });
    const OptionTable table = options_in_use(context.parts, values);
    agree_on_options(world, values, table);
    const Options options = agree_on(world, [&] { return typed_options(values, table); });
    const CorpusSchema schema =
        agree_on(world, [&] { return context.parts.datasets.get(options.dataset)(options.parts); });
    const CorpusReport report = check_corpus(world, required_data(options), schema);
    if (world.rank() == 0)
        std::fputs((options.json ? as_json(report) : as_text(report)).c_str(), stdout);
    return 0;
}

}  // namespace hetseq
