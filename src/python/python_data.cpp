#include "python_data.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/options/absolute_path.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/files/fixed_shard_writer.hpp"

#include "python_calls.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::json;

// The fields of a file that stands for a dataset; python/hetseq/batches.py has the same names.
constexpr const char* sample_field = "hetseq_sample";
constexpr const char* source_field = "hetseq_source";

std::string kind_of(const PythonTask& task, const PartOptions& options) {
    if (!task.makes_samples || options.data.empty())
        return "files";
    return call_python("hetseq::task_source", {python_choices(options), options.data})
        .at(0)
        .toStringRef();
}

Json located(const std::string& name) {
    return parse_json<Json>(call_python("hetseq::task_locate", {name}).at(0).toStringRef());
}

// Collective. Samples of which each rank has others would be taken twice, or never.
void check_alike(const HostComm& world, const std::string& name, const Json& found) {
    const std::string first = world.broadcast(json_text(found.at("features")), 0);
    agree_on(world, [&] { call_python("hetseq::task_check_alike", {name, first}); });
}

void write_numbers(const std::filesystem::path& path, std::int64_t samples, std::int32_t source) {
    FixedShardWriter writer(path, samples, {{.name = sample_field}, {.name = source_field}});
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        const std::array<std::int32_t, 1> number{static_cast<std::int32_t>(sample)};
        writer.append(0, number);
        writer.append(1, std::array{source});
    }
    writer.finish();
    writer.commit();
}

// The file depends on the dataset's name and length alone. Each host has its own where it has a
// folder of its own.
LocatedData locate_samples(const HostComm& world, const std::string& name) {
    const Json found = agree_on(world, [&] {
        Json json = located(name);
        if (json.at("samples").get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
            throw BadConfig("the dataset '" + name + "' has more than 2^31 samples",
                            "they are numbered by 4 bytes",
                            "write it as shards: --cache-data on");
        return json;
    });
    check_alike(world, name, found);
    const auto samples = found.at("samples").get<std::int64_t>();
    const std::string file = "samples-" + name + "-" + std::to_string(samples) + ".h5";
    const std::filesystem::path path =
        std::filesystem::path(found.at("folder").get<std::string>()) / file;
    const HostComm host = world.split_by_host();
    agree_on(world, [&] {
        if (host.rank() == 0 && !std::filesystem::exists(path))
            write_numbers(path, samples, found.at("source").get<std::int32_t>());
    });
    return {.files = path.string(),
            .block_length = found.at("block_length").get<std::int64_t>(),
            .identity = found.at("identity").get<std::vector<std::string>>()};
}

// Collective. Whether all ranks see one folder.
bool is_shared(const HostComm& world, const std::filesystem::path& folder) {
    const std::string name = world.broadcast(
        world.rank() == 0 ? "probe-" + std::to_string(std::random_device{}()) : "", 0);
    const std::filesystem::path probe = folder / name;
    agree_on(world, [&] {
        if (world.rank() == 0 && !std::ofstream{probe})
            throw IoError(
                "cannot write to " + folder.string(), "", "name another folder: --cache-dir");
    });
    const bool all =
        world.all_reduce(std::int64_t{std::filesystem::exists(probe)}, ReduceOp::min) > 0;
    world.barrier();
    if (world.rank() == 0)
        std::filesystem::remove(probe);
    return all;
}

// The ranks that see a folder write its shards together; those that are there are kept.
LocatedData locate_shards(const HostComm& world, const std::string& name) {
    const Json found = agree_on(world, [&] { return located(name); });
    check_alike(world, name, found);
    const auto folder = found.at("folder").get<std::string>();
    const HostComm writers = is_shared(world, folder) ? world.duplicate() : world.split_by_host();
    const Json missing = parse_json<Json>(writers.broadcast(json_text(found.at("missing")), 0));
    std::vector<std::int64_t> own;
    for (std::size_t i = static_cast<std::size_t>(writers.rank()); i < missing.size();
         i += static_cast<std::size_t>(writers.size()))
        own.push_back(missing.at(i).get<std::int64_t>());
    agree_on(world, [&] { call_python("hetseq::task_write_parts", {name, own}); });
    return {.files = folder, .identity = found.at("identity").get<std::vector<std::string>>()};
}

// Files, where a dataset could be meant.
LocatedData locate_files(const HostComm& world, const std::string& name) {
    agree_on(world, [&] {
        if (call_python("hetseq::task_is_split", {name}).at(0).toBool())
            throw BadConfig("'" + name + "' names a split of the task's dataset, and --data files",
                            "the validation's data are read as the training's",
                            "name both by split, or both by files");
    });
    return {.files = name};
}

// Files, of a task that reads nothing else.
LocatedData locate_only_files(const HostComm& world, const std::string& name) {
    agree_on(world, [&] {
        if (names_no_file(name))
            throw MissingInput(
                "no such file: " + name,
                "the task has no method dataset, which would give a split of this "
                "name; a run may have had it from a script, by hetseq.train(data=...)",
                "name shards, or give the task a method dataset(config, split)");
    });
    return {.files = name};
}

CorpusSchema numbers_of_samples(const PythonTask& task) {
    CorpusSchema schema;
    schema.kind = task.schema.kind;
    for (const char* name : {sample_field, source_field})
        schema.fields.push_back({.name = name, .type = ElementType::int64});
    schema.locate = locate_samples;
    return schema;
}

}  // namespace

CorpusSchema python_schema(const PythonTask& task, const PartOptions& options) {
    const std::string kind = kind_of(task, options);
    if (kind == "samples")
        return numbers_of_samples(task);
    CorpusSchema schema = task.schema;
    if (kind == "shards")
        schema.locate = locate_shards;
    else
        schema.locate = task.reads_dataset ? locate_files : locate_only_files;
    return schema;
}

bool names_dataset(const PythonTask& task, const std::string& data) {
    return task.reads_dataset && call_python("hetseq::task_is_split", {data}).at(0).toBool();
}

bool stands_for_dataset(const TensorDict& rows) {
    return rows.count(sample_field) > 0;
}

}  // namespace hetseq
