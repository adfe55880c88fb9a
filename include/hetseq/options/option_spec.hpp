#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"

namespace hetseq {

/// job: must be the same on all ranks. rank: may differ. command: says what to do now, and is not
/// written to config.cfg.
enum class OptionScope { job, rank, command };

/// Says whether a checkpoint fixes an option. A run keeps options of `run` to its end. The others
/// may change in a run from --restore-file with --reset-position, --reset-optimizer or
/// --reset-lr-scheduler.
enum class FixedWith { nothing, run, position, optimizer, schedule };

/// A part that declared an option, such as "optimizer" and "lion".
struct OptionOwner {
    std::string option;  // the one that chooses the part
    std::string part;
    friend bool operator==(const OptionOwner&, const OptionOwner&) = default;
};

/// All that is known of an option but the type of its value. Help, usage, completion, the man page,
/// the page of options and config.cfg are made from it.
struct OptionSpec {
    std::string name;           // without dashes: "label-smoothing"
    std::string type;           // as help shows it: "N", "X", "PATH", "NAME"; empty for a switch
    std::string default_value;  // as text; a task may have its own
    std::string help;
    /// The texts that it takes, if they can be listed. After a text that ends in ':' the user
    /// writes more.
    std::vector<std::string> choices = {};
    std::function<void(const std::string&)> check = {};  // throws BadConfig: what was expected
    /// The text by which config.cfg says the same in another folder; empty: the text itself.
    std::function<std::string(const std::string&)> repeated = {};
    OptionScope scope = OptionScope::job;
    FixedWith fixed_with = FixedWith::nothing;
    bool is_required = false;              // a command's own option without a default
    std::string group = {};                // the heading it stands under
    std::vector<OptionOwner> owners = {};  // parts that declared it; empty: all runs have it
    /// If other parts are chosen, a part's option is an error (false) or has no effect (true), so
    /// that one configuration serves several parts.
    bool is_ignored_elsewhere = false;
    /// A run may be continued with another value of a part's option: it changes neither the network
    /// nor its training.
    bool may_change = false;

    bool is_switch() const noexcept { return type.empty(); }
    /// The default as help shows it; empty where there is none to show.
    std::string shown_default() const { return is_switch() ? "" : default_value; }
};

using OptionTable = std::vector<OptionSpec>;

/// Option texts by name, as given or by default.
using OptionValues = std::map<std::string, std::string>;

/// Options by their source.
struct GivenOptions {
    OptionValues line;  // the command line
    OptionValues file;  // the configuration
};

/// Null if there is none of this name.
const OptionSpec* find_option(const OptionTable& table, const std::string& name);
OptionSpec* find_option(OptionTable& table, const std::string& name);

std::vector<std::string> names_of(const OptionTable& table);

/// Throws BadConfig for a text that config.cfg could not repeat.
void check_repeatable(const std::string& text);

/// Calls `read`, and names the option in a BadConfig that it throws.
template <class Read>
void read_value_of(const OptionSpec& spec, Read&& read) {
    try {
        read();
    } catch (const BadConfig& error) {
        throw BadConfig("--" + spec.name + ": " + error.what(), spec.help);
    }
}

}  // namespace hetseq
