#include "hetseq/state/measured_chain_json.hpp"

#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json_number.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

using Array = nlohmann::json::array_t;

constexpr double longest_ms = 1e12;
constexpr double largest_mb = 1e12;
constexpr double most_of_unit = 1e15;
constexpr std::int64_t most_of_batch = 1'000'000'000;

MeasuredChain::Unit unit_of(const nlohmann::json& json) {
    return {.kind = json.at("kind").get<std::string>(),
            .parameters = json_number(json.at("parameters"), 0, most_of_unit),
            .kept_mb = json_number(json.at("kept_mb"), 0, largest_mb),
            .output_mb = json_number(json.at("output_mb"), 0, largest_mb),
            .workspace_mb = json_number(json.at("workspace_mb"), 0, largest_mb)};
}

MeasuredChain::Devices devices_of(const nlohmann::json& json, std::size_t units) {
    MeasuredChain::Devices devices{
        .name = json.at("device").get<std::string>(),
        .hosts = json.at("hosts").get<std::vector<std::string>>(),
        .launch_ms = json_number(json.at("launch_ms"), 0, longest_ms),
        .unit_ms = {},
        .message_ms_per_mb = json_number(json.value("message_ms_per_mb", nlohmann::json(0)),
                                         0,
                                         longest_ms)};  // earlier versions did not know
    for (const nlohmann::json& ms : json.at("unit_ms"))
        devices.unit_ms.push_back(json_number(ms, 0, longest_ms));
    if (devices.unit_ms.size() != units)
        throw BadData("a device has times of " + std::to_string(devices.unit_ms.size()) + " units",
                      "the chain has " + std::to_string(units));
    return devices;
}

MeasuredChain::Tied tied_of(const nlohmann::json& json, std::size_t units) {
    MeasuredChain::Tied tied{.units = {},
                             .parameters = json_number(json.at("parameters"), 0, most_of_unit),
                             .filled = {}};
    for (const nlohmann::json& unit : json.at("units"))
        tied.units.push_back(
            static_cast<std::size_t>(json_integer(unit, 0, static_cast<std::int64_t>(units) - 1)));
    for (const nlohmann::json& part : json.at("filled"))
        tied.filled.push_back(json_number(part, 0, 1));
    const std::set<std::size_t> different(tied.units.begin(), tied.units.end());
    if (different.size() < 2 || different.size() != tied.units.size() ||
        tied.filled.size() != tied.units.size())
        throw BadData("tied parameters have " + std::to_string(tied.units.size()) + " units and " +
                          std::to_string(tied.filled.size()) + " filled parts",
                      "two different units or more read them, with a part each");
    return tied;
}

// A parameter is in one group alone.
void check_tied(const MeasuredChain& chain) {
    constexpr double rounding = 1e-9;
    std::vector<double> shared(chain.units.size());
    for (const MeasuredChain::Tied& tied : chain.tied)
        for (const std::size_t unit : tied.units)
            shared[unit] += tied.parameters;
    for (std::size_t u = 0; u < shared.size(); ++u)
        if (shared[u] > (1 + rounding) * chain.units[u].parameters)
            throw BadData(
                "unit " + std::to_string(u) + " shares more parameters than it has",
                format_number(shared[u]) + " of " + format_number(chain.units[u].parameters));
}

// Throws the library's exceptions, and BadData that does not say where the number stands.
MeasuredChain chain_of(const nlohmann::json& json) {
    MeasuredChain chain{.counts_tokens = json.at("unit").get<std::string>() == "tokens"};
    for (const nlohmann::json& units : json.at("micro_batches"))
        chain.micro_batches.push_back(json_integer(units, 1, most_of_batch));
    for (const nlohmann::json& unit : json.at("units"))
        chain.units.push_back(unit_of(unit));
    if (chain.units.empty())
        throw BadData("it has no units");
    if (json.contains("tied"))  // earlier versions did not know
        for (const nlohmann::json& tied : json.at("tied").get_ref<const Array&>())
            chain.tied.push_back(tied_of(tied, chain.units.size()));
    check_tied(chain);
    for (const nlohmann::json& devices : json.at("devices"))
        chain.devices.push_back(devices_of(devices, chain.units.size()));
    return chain;
}

}  // namespace

nlohmann::ordered_json measured_chain_to_json(const MeasuredChain& chain) {
    nlohmann::ordered_json json{{"unit", chain.counts_tokens ? "tokens" : "samples"},
                                {"micro_batches", chain.micro_batches},
                                {"units", nlohmann::ordered_json::array()},
                                {"tied", nlohmann::ordered_json::array()},
                                {"devices", nlohmann::ordered_json::array()}};
    for (const MeasuredChain::Unit& unit : chain.units)
        json["units"].push_back({{"kind", unit.kind},
                                 {"parameters", unit.parameters},
                                 {"kept_mb", unit.kept_mb},
                                 {"output_mb", unit.output_mb},
                                 {"workspace_mb", unit.workspace_mb}});
    for (const MeasuredChain::Tied& tied : chain.tied)
        json["tied"].push_back(
            {{"units", tied.units}, {"parameters", tied.parameters}, {"filled", tied.filled}});
    for (const MeasuredChain::Devices& devices : chain.devices)
        json["devices"].push_back({{"device", devices.name},
                                   {"hosts", devices.hosts},
                                   {"launch_ms", devices.launch_ms},
                                   {"unit_ms", devices.unit_ms},
                                   {"message_ms_per_mb", devices.message_ms_per_mb}});
    return json;
}

MeasuredChain measured_chain_from_json(const nlohmann::json& json) {
    try {
        return chain_of(json);
    } catch (const std::exception& error) {
        throw BadData("'chain' is not what a run measures of its model", error.what());
    }
}

}  // namespace hetseq
