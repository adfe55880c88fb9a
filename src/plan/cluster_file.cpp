#include "hetseq/plan/cluster_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "cluster_sections.hpp"
#include "ini_fields.hpp"

namespace hetseq {

namespace {

constexpr double most_latency_us = 1e6;
constexpr double least_gb = 1e-6;
constexpr double most_gb = 1e6;
constexpr double most_bytes = 1e14;
constexpr double most_buckets = 65536;
constexpr std::int64_t most_parameters = 1'000'000'000'000;
constexpr std::int64_t most_state_tensors = 64;
constexpr std::int64_t most_updates = 1000000000000;
constexpr std::size_t most_classes = 64;
constexpr std::size_t most_sizes = 8;

class ClusterParser {
public:
    ClusterParser(std::string_view text, const std::string& file)
        : file_{file}, sections_{parse_ini(text, file)} {}

    Cluster parse() {
        check_sections();
        // Layers are read before the devices that time them, devices before the nodes that name
        // them, and nodes before the rows that count them.
        for (const char* kind :
             {"layer", "tied", "device", "nodes", "links", "model", "job", "fit"})
            for (const IniSection& section : sections_)
                if (section.kind == kind)
                    read(section);
        check_size();
        check_layers();
        return std::move(cluster_);
    }

private:
    void check_sections() const;
    void check_name(const IniSection& section, bool has_name) const;
    void check_size() const;
    void check_layers() const;

    void read(const IniSection& section);
    void add_device(const IniSection& section);
    void read_nodes(const IniSection& section);
    void read_links(const IniSection& section);
    void read_link(IniFields& fields, const std::string& prefix, Link& link, bool& given) const;
    void read_model(const IniSection& section);
    void read_job(const IniSection& section);
    void read_micro_batches(IniFields& fields);

    std::size_t device_of(const std::string& name);

    const std::string& file_;
    std::vector<IniSection> sections_;
    Cluster cluster_;
};

void ClusterParser::check_sections() const {
    static const std::map<std::string, bool> kinds{{"layer", true},
                                                   {"tied", true},
                                                   {"device", true},
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
                        "a plan takes at most 16384",
                        "lower 'count' or 'gpus'");
    if (cluster_.batch() > most_units)
        throw BadConfig(file_ + ": the batch has " + std::to_string(cluster_.batch()) + " units",
                        "a plan takes at most 10^9",
                        "lower 'batch' or 'units-per-rank', or count in larger units");
}

// What one section cannot know.
void ClusterParser::check_layers() const {
    if (cluster_.layers.empty() == cluster_.job.micro_batches.empty()) {
        if (!cluster_.layers.empty() && cluster_.model.parameters > 0)
            throw BadConfig(file_ + ": both 'parameters' in [model] and [layer NAME]",
                            "each of them gives the number",
                            "remove 'parameters'");
        return;
    }
    if (cluster_.layers.empty())
        throw BadConfig(file_ + ": 'micro-batches' in [job], but no layers",
                        "layouts are compared where the model's layers are known",
                        "add a [layer NAME] for each kind, or remove 'micro-batches'");
    throw BadConfig(file_ + ": the model has layers, but the job no 'micro-batches'",
                    "layouts are compared for given sizes",
                    "write for example micro-batches = 32, 16, 8 in [job]");
}

void ClusterParser::read(const IniSection& section) {
    if (section.kind == "layer")
        read_layer(section, file_, cluster_.layers);
    else if (section.kind == "tied")
        read_tied(section, file_, cluster_);
    else if (section.kind == "device")
        add_device(section);
    else if (section.kind == "nodes")
        read_nodes(section);
    else if (section.kind == "links")
        read_links(section);
    else if (section.kind == "model")
        read_model(section);
    else if (section.kind == "job")
        read_job(section);
    else
        read_fit(section, file_, cluster_);
}

void ClusterParser::add_device(const IniSection& section) {
    if (cluster_.devices.size() == most_classes)
        reject_line(file_, section.line, "more than 64 devices", "", "describe like ones once");
    cluster_.devices.push_back(read_device(section, file_, cluster_.layers));
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
    fields.choice("all-reduce", algorithm, {"ring", "tree", "mpi"});
    constexpr std::array algorithms{
        AllReduceAlgorithm::ring, AllReduceAlgorithm::tree, AllReduceAlgorithm::mpi};
    network.algorithm = algorithms.at(algorithm);
    fields.number("inter-update-ms", network.inter_update_ms, 0, most_ms);
    fields.finish();
}

void ClusterParser::read_model(const IniSection& section) {
    IniFields fields(section, file_);
    ModelSize& model = cluster_.model;
    fields.number("parameter-bytes", model.bytes, 0, most_bytes);
    model.bucket_given = fields.number("bucket-mib", model.bucket_mib, 0.001, 1e6);
    fields.number(
        "backward-fraction", model.backward_fraction, 0, cluster_.layers.empty() ? 1 : 0.99);
    fields.integer("parameters", model.parameters, 1, most_parameters);
    fields.integer("state-tensors", model.state_tensors, 0, most_state_tensors);
    fields.finish();
    if (model.bytes > most_buckets * model.bucket_mib * bytes_of_mib)
        fields.reject("parameter-bytes",
                      "the model has more than 65536 buckets",
                      "parameter-bytes divided by bucket-mib",
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
    std::size_t shard = 0, shard_by = 0;
    fields.choice("shard", shard, {"none", "optimizer"});
    fields.choice("shard-by", shard_by, {"memory", "even"});
    if (shard == 1)
        job.state = shard_by == 0 ? StateParts::by_memory : StateParts::even;
    read_micro_batches(fields);
    fields.integer("updates", job.updates, 1, most_updates);
    fields.number("spread", job.spread, 0, 2);
    fields.finish();
    if (has_batch && has_share)
        fields.reject("units-per-rank",
                      "both 'batch' and 'units-per-rank'",
                      "each of them gives the global batch",
                      "remove one");
}

void ClusterParser::read_micro_batches(IniFields& fields) {
    std::vector<std::int64_t>& sizes = cluster_.job.micro_batches;
    fields.each("micro-batches", [&](const IniEntry& entry) {
        for (const std::string& word : words_of(entry.value))
            sizes.push_back(to_integer(word, entry, file_, 1, most_units));
    });
    std::sort(sizes.rbegin(), sizes.rend());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.size() > most_sizes)
        fields.reject("micro-batches",
                      "more than 8 micro-batches",
                      "each is planned for",
                      "give powers of two");
}

// A device that no section describes may come from a run.
std::size_t ClusterParser::device_of(const std::string& name) {
    const auto names = names_of(cluster_.devices);
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
