#include <cstdio>

#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include <nlohmann/json.hpp>

#include "hetseq/data/check_corpus.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/effective_values.hpp"
#include "hetseq/app/option_agreement.hpp"
#include "hetseq/app/option_parser.hpp"

namespace hetseq {

namespace {

std::string shape_of(const CorpusReport& report, const CorpusReport::Field& field) {
    std::string shape = "(" + std::to_string(report.samples);
    for (std::int64_t length : field.row_shape)
        shape += ", " + std::to_string(length);
    return shape + ")";
}

std::string as_json(const CorpusReport& report) {
    nlohmann::ordered_json json{{"samples", report.samples}};
    for (const CorpusReport::Shard& shard : report.shards)
        json["shards"].push_back({{"path", shard.path}, {"samples", shard.samples}});
    for (const CorpusReport::Field& field : report.fields)
        json["fields"][field.name] = {{"type", field.type},
                                      {"row_shape", field.row_shape},
                                      {"sum", field.sum},
                                      {"minimum", field.minimum},
                                      {"maximum", field.maximum}};
    return json.dump(2) + "\n";
}

std::string as_text(const CorpusReport& report) {
    std::vector<std::vector<std::string>> rows{
        {"dataset", "type", "shape", "sum", "least", "greatest"}};
    for (const CorpusReport::Field& field : report.fields)
        rows.push_back({field.name,
                        field.type,
                        shape_of(report, field),
                        std::to_string(field.sum),
                        std::to_string(field.minimum),
                        std::to_string(field.maximum)});
    return "good: " + std::to_string(report.shards.size()) + " shard(s), " +
           std::to_string(report.samples) + " samples\n" + format_table(rows);
}

}  // namespace

int check_command(const CommandContext& context) {
    const HostComm& world = context.world;
    const OptionValues values = agree_on(
        world, [&] { return effective_values(parse_with_config(context.words), context.parts); });
    agree_on_options(world, values);
    const Options options = agree_on(world, [&] { return typed_options(values); });
    const CorpusSchema schema =
        agree_on(world, [&] { return context.parts.datasets.get(options.dataset)(options.parts); });
    const CorpusReport report = check_corpus(world, required_data(options), schema);
    if (world.rank() == 0)
        std::fputs((options.json ? as_json(report) : as_text(report)).c_str(), stdout);
    return 0;
}

}  // namespace hetseq
