#include "hetseq/balance/cluster_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "ini_fields.hpp"

#include "hetseq/balance/time_points.hpp"

namespace hetseq {

namespace {

// Limits of what a value may be: wide, and such that no sum or product of them overflows.
constexpr double most_ms = 1e6;
constexpr double least_unit_ms = 1e-6;
constexpr double most_latency_us = 1e6;
constexpr double least_gb = 1e-6;
constexpr double most_gb = 1e6;
constexpr double most_bytes = 1e14;
constexpr double most_buckets = 65536;
constexpr double bytes_of_mib = 1 << 20;
constexpr std::int64_t most_units = 1000000000;
constexpr std::int64_t most_updates = 1000000000000;
constexpr std::size_t most_classes = 64;
constexpr std::size_t most_points = 256;
constexpr std::size_t most_rows = 256;

// The words of `text`, which blanks or commas separate.
std::vector<std::string> words_of(std::string text) {
    std::replace(text.begin(), text.end(), ',', ' ');
    std::replace(text.begin(), text.end(), '\t', ' ');
    std::vector<std::string> words;
    for (std::string& word : split(text, ' '))
        if (!word.empty())
            words.push_back(std::move(word));
    return words;
}

class ClusterParser {
public:
    ClusterParser(std::string_view text, const std::string& file)
        : file_{file}, sections_{parse_ini(text, file)} {}

    Cluster parse() {
        check_sections();
        // Devices before the nodes that name them, nodes before the rows that count them.
        for (const char* kind : {"device", "nodes", "links", "model", "job", "fit"})
            for (const IniSection& section : sections_)
                if (section.kind == kind)
                    read(section);
        check_size();
        return std::move(cluster_);
    }

private:
    void check_sections() const;
    void check_name(const IniSection& section, bool has_name) const;
    void check_size() const;

    void read(const IniSection& section);
    void read_device(const IniSection& section);
    void read_times(IniFields& fields, DeviceClass& device, const char* given);
    void read_nodes(const IniSection& section);
    void read_links(const IniSection& section);
    void read_link(IniFields& fields, const std::string& prefix, Link& link, bool& given) const;
    void read_model(const IniSection& section);
    void read_job(const IniSection& section);
    void read_fit(const IniSection& section);
    void read_parameter(const std::string& word, const IniEntry& entry);
    void read_row(const IniEntry& entry);
    std::vector<TimePoint> read_points(const IniEntry& entry) const;

    std::vector<std::string> device_names() const;
    std::vector<std::string> node_names() const;
    std::size_t device_of(const std::string& name);

    const std::string& file_;
    std::vector<IniSection> sections_;
    Cluster cluster_;
};

void ClusterParser::check_sections() const {
    static const std::map<std::string, bool> kinds{{"device", true},
                                                   {"nodes", true},
                                                   {"links", false},
                                                   {"model", false},
                                                   {"job", false},
                                                   {"fit", false}};
    std::vector<std::string> names;
    for (const auto& kind : kinds)
        names.push_back(kind.first);
    std::map<std::string, int> lines;
    for (const IniSection& section : sections_) {
        const auto kind = kinds.find(section.kind);
        if (kind == kinds.end())
            reject_line(file_,
                        section.line,
                        "unknown section " + section.title(),
                        "",
                        suggestion(section.kind, names));
        check_name(section, kind->second);
        const auto [first, is_new] = lines.emplace(section.title(), section.line);
        if (!is_new)
            reject_line(file_,
                        section.line,
                        section.title() + " stands twice",
                        "first on line " + std::to_string(first->second),
                        "join them");
    }
}

void ClusterParser::check_name(const IniSection& section, bool has_name) const {
    if (has_name && section.name.empty())
        reject_line(file_,
                    section.line,
                    section.title() + " has no name",
                    "others refer to it",
                    "write [" + section.kind + " NAME]");
    if (!has_name && !section.name.empty())
        reject_line(file_,
                    section.line,
                    section.title() + " has a name",
                    "there is only one",
                    "write [" + section.kind + "]");
}

void ClusterParser::check_size() const {
    const std::int64_t ranks = cluster_.ranks();
    if (ranks > most_planned_ranks)
        throw BadConfig(file_ + ": the nodes have " + std::to_string(ranks) + " GPUs",
                        "at most 16384 are planned for",
                        "lower 'count' or 'gpus'");
    if (cluster_.batch() > most_units)
        throw BadConfig(file_ + ": the batch has " + std::to_string(cluster_.batch()) + " units",
                        "at most 10^9 are planned for",
                        "lower 'batch' or 'units-per-rank', or count in larger units");
}

void ClusterParser::read(const IniSection& section) {
    if (section.kind == "device")
        read_device(section);
    else if (section.kind == "nodes")
        read_nodes(section);
    else if (section.kind == "links")
        read_links(section);
    else if (section.kind == "model")
        read_model(section);
    else if (section.kind == "job")
        read_job(section);
    else
        read_fit(section);
}

void ClusterParser::read_device(const IniSection& section) {
    if (cluster_.devices.size() == most_classes)
        reject_line(file_, section.line, "more than 64 devices", "", "describe like ones once");
    IniFields fields(section, file_);
    DeviceClass device;
    device.name = section.name;
    device.cost.micro_batch = most_units;
    const bool has_start = fields.number("start-ms", device.cost.start_ms, 0, most_ms);
    const bool has_fixed = fields.number("micro-batch-ms", device.cost.micro_batch_ms, 0, most_ms);
    const bool has_line = fields.number("unit-ms", device.cost.unit_ms, least_unit_ms, most_ms);
    const char* line_key = has_line    ? "unit-ms"
                           : has_fixed ? "micro-batch-ms"
                           : has_start ? "start-ms"
                                       : nullptr;
    std::int64_t memory_units = most_units;
    fields.integer("memory-units", memory_units, 1, most_units);
    fields.integer("micro-batch", device.cost.micro_batch, 1, most_units);
    device.cost.micro_batch = std::min(device.cost.micro_batch, memory_units);
    fields.integer("max-units", device.cost.max_units, 0, most_units);
    fields.number("update-ms", device.update_ms, 0, most_ms);
    fields.text("costs", device.costs);
    fields.text("measured", device.measured);
    device.has_times = has_line;
    read_times(fields, device, line_key);
    fields.finish();
    cluster_.devices.push_back(std::move(device));
}

// `given`: the key that gives the speed as a line, or null.
void ClusterParser::read_times(IniFields& fields, DeviceClass& device, const char* given) {
    std::vector<TimePoint> points;
    fields.each("times", [&](const IniEntry& entry) {
        const auto more = read_points(entry);
        points.insert(points.end(), more.begin(), more.end());
    });
    if (points.size() > most_points)
        fields.reject("times", "more than 256 times");
    for (const auto& [key, is_given] : {std::pair{"times", !points.empty()},
                                        std::pair{"costs", !device.costs.empty()},
                                        std::pair{"measured", !device.measured.empty()}}) {
        if (!is_given)
            continue;
        if (given != nullptr)
            fields.reject(key,
                          std::string("both '") + given + "' and '" + key + "'",
                          "either gives the speed",
                          "remove one");
        given = key;
    }
    if (points.empty())
        return;
    const StepCost measured = cost_of_times(points, device.cost.micro_batch);
    device.cost.start_ms = measured.start_ms;
    device.cost.micro_batch_ms = measured.micro_batch_ms;
    device.cost.unit_ms = measured.unit_ms;
    device.cost.table = measured.table;
    device.cost.micro_batch = measured.micro_batch;
    device.has_times = true;
}

// "8=12.5, 16=20": units and their time [ms].
std::vector<TimePoint> ClusterParser::read_points(const IniEntry& entry) const {
    std::vector<TimePoint> points;
    for (const std::string& word : words_of(entry.value)) {
        const auto equals = word.find('=');
        if (equals == std::string::npos)
            reject_line(file_,
                        entry.line,
                        "times: cannot read '" + word + "'",
                        "a time is UNITS=MS",
                        "write for example times = 8=12.5, 16=20");
        const std::int64_t units = to_integer(word.substr(0, equals), entry, file_, 1, most_units);
        points.push_back(
            {static_cast<double>(units),
             to_number(word.substr(equals + 1), entry, file_, least_unit_ms, most_ms)});
    }
    return points;
}

void ClusterParser::read_nodes(const IniSection& section) {
    if (cluster_.nodes.size() == most_classes)
        reject_line(
            file_, section.line, "more than 64 kinds of nodes", "", "describe like ones once");
    IniFields fields(section, file_);
    NodeClass node;
    node.name = section.name;
    std::string device = section.name;
    fields.text("device", device);
    fields.integer("gpus", node.gpus, 1, most_planned_ranks);
    fields.integer("count", node.count, 0, most_planned_ranks);
    for (auto [prefix, place] :
         {std::pair{"intra", &node.intra}, std::pair{"inter", &node.inter}}) {
        Link link;
        bool given = false;
        read_link(fields, prefix, link, given);
        if (given)
            *place = link;
    }
    fields.finish();
    node.device = device_of(device);
    cluster_.nodes.push_back(std::move(node));
}

void ClusterParser::read_link(IniFields& fields,
                              const std::string& prefix,
                              Link& link,
                              bool& given) const {
    given |= fields.number(prefix + "-latency-us", link.latency_us, 0, most_latency_us);
    given |= fields.number(prefix + "-bandwidth-gb", link.bandwidth_gb, least_gb, most_gb);
}

void ClusterParser::read_links(const IniSection& section) {
    IniFields fields(section, file_);
    Network& network = cluster_.network;
    read_link(fields, "intra", network.intra, network.given);
    read_link(fields, "inter", network.inter, network.given);
    std::size_t algorithm = 0;
    fields.choice("all-reduce", algorithm, {"ring", "tree"});
    network.algorithm = algorithm == 0 ? AllReduceAlgorithm::ring : AllReduceAlgorithm::tree;
    fields.number("inter-update-ms", network.inter_update_ms, 0, most_ms);
    fields.finish();
}

void ClusterParser::read_model(const IniSection& section) {
    IniFields fields(section, file_);
    ModelSize& model = cluster_.model;
    fields.number("parameter-bytes", model.bytes, 0, most_bytes);
    model.bucket_given = fields.number("bucket-mib", model.bucket_mib, 0.001, 1e6);
    fields.number("backward-fraction", model.backward_fraction, 0, 1);
    fields.finish();
    if (model.bytes > most_buckets * model.bucket_mib * bytes_of_mib)
        fields.reject("parameter-bytes",
                      "the model has more than 65536 buckets",
                      "parameter-bytes over bucket-mib",
                      "raise 'bucket-mib'");
}

void ClusterParser::read_job(const IniSection& section) {
    IniFields fields(section, file_);
    PlannedJob& job = cluster_.job;
    const bool has_batch = fields.integer("batch", job.batch, 1, most_units);
    const bool has_share = fields.integer("units-per-rank", job.units_per_rank, 1, most_units);
    std::size_t cut = 0;
    fields.choice("balance", cut, {"auto", "declared", "equal"});
    job.cut = std::array{Cut::balanced, Cut::declared, Cut::equal}[cut];
    fields.integer("updates", job.updates, 1, most_updates);
    fields.number("spread", job.spread, 0, 2);
    fields.finish();
    if (has_batch && has_share)
        fields.reject("units-per-rank",
                      "both 'batch' and 'units-per-rank'",
                      "either gives the global batch",
                      "remove one");
}

void ClusterParser::read_fit(const IniSection& section) {
    IniFields fields(section, file_);
    fields.each("parameters", [&](const IniEntry& entry) {
        for (const std::string& word : words_of(entry.value))
            read_parameter(word, entry);
    });
    fields.each("row", [&](const IniEntry& entry) { read_row(entry); });
    fields.finish();
    const auto fitted = static_cast<std::size_t>(
        std::count_if(cluster_.rows.begin(), cluster_.rows.end(), [](const MeasuredRow& row) {
            return row.is_fitted;
        }));
    if (cluster_.fit.size() > fitted)
        fields.reject("parameters",
                      std::to_string(cluster_.fit.size()) + " numbers are to be fitted to " +
                          std::to_string(fitted) + " rows",
                      "that determines nothing",
                      "fit fewer, or mark more rows 'fit'");
    if (cluster_.rows.size() > most_rows)
        fields.reject("row", "more than 256 rows");
}

// "compute" or "compute:DEVICE" or a link's number.
void ClusterParser::read_parameter(const std::string& word, const IniEntry& entry) {
    static const std::map<std::string, FitNumber> numbers{
        {"compute", FitNumber::compute},
        {"spread", FitNumber::spread},
        {"intra-latency-us", FitNumber::intra_latency},
        {"intra-bandwidth-gb", FitNumber::intra_bandwidth},
        {"inter-latency-us", FitNumber::inter_latency},
        {"inter-bandwidth-gb", FitNumber::inter_bandwidth},
        {"inter-update-ms", FitNumber::inter_update}};
    FitParameter parameter{word, FitNumber::compute, std::nullopt};
    if (word.rfind("compute:", 0) == 0) {
        const auto names = device_names();
        const auto found = std::find(names.begin(), names.end(), word.substr(8));
        if (found == names.end())
            reject_line(file_,
                        entry.line,
                        "parameters: no device '" + word.substr(8) + "'",
                        "",
                        suggestion(word.substr(8), names));
        parameter.device = static_cast<std::size_t>(found - names.begin());
    } else if (const auto found = numbers.find(word); found != numbers.end()) {
        parameter.number = found->second;
    } else {
        std::vector<std::string> names;
        for (const auto& number : numbers)
            names.push_back(number.first);
        reject_line(file_,
                    entry.line,
                    "parameters: '" + word + "' cannot be fitted",
                    "",
                    suggestion(word, names));
    }
    for (const FitParameter& other : cluster_.fit)
        if (other.name == word)
            reject_line(file_, entry.line, "parameters: '" + word + "' stands twice");
    cluster_.fit.push_back(parameter);
}

// "fit 940 p100=4 batch=512": use, step time [ms], nodes by class, and the batch where it is not
// the job's.
void ClusterParser::read_row(const IniEntry& entry) {
    const char* example = "write for example row = fit 940 p100=4";
    const auto words = words_of(entry.value);
    if (words.size() < 3 || (words[0] != "fit" && words[0] != "predict"))
        reject_line(file_,
                    entry.line,
                    "row: cannot read '" + entry.value + "'",
                    "a row is fit|predict STEP_MS NODES=COUNT ... [batch=UNITS]",
                    example);
    MeasuredRow row;
    row.is_fitted = words[0] == "fit";
    row.step_ms = to_number(words[1], entry, file_, least_unit_ms, most_ms * most_ms);
    row.nodes.resize(cluster_.nodes.size(), 0);
    const auto names = node_names();
    std::int64_t ranks = 0;
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        if (equals == std::string::npos)
            reject_line(file_,
                        entry.line,
                        "row: cannot read '" + words[i] + "'",
                        "expected NODES=COUNT",
                        example);
        const std::string name = words[i].substr(0, equals);
        const std::string number = words[i].substr(equals + 1);
        if (name == "batch") {
            row.batch = to_integer(number, entry, file_, 1, most_units);
            continue;
        }
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            reject_line(
                file_, entry.line, "row: no nodes '" + name + "'", "", suggestion(name, names));
        const auto index = static_cast<std::size_t>(found - names.begin());
        row.nodes[index] = to_integer(number, entry, file_, 0, most_planned_ranks);
        ranks += row.nodes[index] * cluster_.nodes[index].gpus;
    }
    if (ranks < 1 || ranks > most_planned_ranks)
        reject_line(file_,
                    entry.line,
                    "row: its nodes have " + std::to_string(ranks) + " GPUs",
                    "1 to 16384 are planned for");
    cluster_.rows.push_back(std::move(row));
}

std::vector<std::string> ClusterParser::device_names() const {
    std::vector<std::string> names;
    for (const DeviceClass& device : cluster_.devices)
        names.push_back(device.name);
    return names;
}

std::vector<std::string> ClusterParser::node_names() const {
    std::vector<std::string> names;
    for (const NodeClass& node : cluster_.nodes)
        names.push_back(node.name);
    return names;
}

// A device that no section describes may come from a run.
std::size_t ClusterParser::device_of(const std::string& name) {
    const auto names = device_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end())
        return static_cast<std::size_t>(found - names.begin());
    DeviceClass device;
    device.name = name;
    device.cost.micro_batch = most_units;
    cluster_.devices.push_back(std::move(device));
    return cluster_.devices.size() - 1;
}

}  // namespace

Cluster parse_cluster(std::string_view text, const std::string& name) {
    return ClusterParser(text, name).parse();
}

void require_complete(const Cluster& cluster) {
    if (cluster.ranks() == 0)
        throw BadConfig("the cluster has no GPUs",
                        "no [nodes NAME] with a 'count' above 0",
                        "describe at least one node");
    if (cluster.batch() == 0)
        throw BadConfig("the job has no batch",
                        "neither 'batch' nor 'units-per-rank' in [job]",
                        "give one, or --from RUN");
    std::vector<std::string> names;
    for (const DeviceClass& device : cluster.devices)
        if (device.has_times)
            names.push_back(device.name);
    for (const DeviceClass& device : cluster.devices)
        if (!device.has_times)
            throw BadConfig(
                "the device '" + device.name + "' has no times",
                "neither 'unit-ms' nor 'times' nor 'costs' in [device " + device.name + "]",
                "give one, or --from RUN; " + suggestion(device.name, names));
}

}  // namespace hetseq
