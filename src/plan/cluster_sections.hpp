#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/plan/cluster.hpp"

#include "ini_sections.hpp"

namespace hetseq {

// Limits of values. They are wide, but no sum or product of values within them overflows.
constexpr double most_ms = 1e6;
constexpr double least_unit_ms = 1e-6;
constexpr std::int64_t most_units = 1000000000;

/// The [device NAME] of a cluster's description, whose `layers` are known. Throws BadConfig that
/// names the line.
DeviceClass read_device(const IniSection& section,
                        const std::string& file,
                        const std::vector<LayerClass>& layers);

/// Adds the [layer NAME] of a description. Throws BadConfig that names the line.
void read_layer(const IniSection& section,
                const std::string& file,
                std::vector<LayerClass>& layers);

/// Adds the [tied NAME] of a description whose layers are known. Throws BadConfig that names the
/// line.
void read_tied(const IniSection& section, const std::string& file, Cluster& cluster);

/// Reads the [fit] of a cluster whose devices and nodes are known. Throws BadConfig that names the
/// line.
void read_fit(const IniSection& section, const std::string& file, Cluster& cluster);

/// The names of devices or of nodes.
template <class Classes>
std::vector<std::string> names_of(const Classes& classes) {
    std::vector<std::string> names;
    for (const auto& one : classes)
        names.push_back(one.name);
    return names;
}

}  // namespace hetseq
