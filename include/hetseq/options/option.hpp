#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/options/option_spec.hpp"

namespace hetseq {

/// An option with the type of its value. One object declares it and reads it, whether it belongs to
/// all runs, to one command or to a part.
template <class T>
class Option {
public:
    using Reader = std::function<T(const std::string&)>;  // throws BadConfig

    Option(OptionSpec spec, Reader read) : spec_{std::move(spec)}, read_{std::move(read)} {
        spec_.check = [read = read_](const std::string& text) { read(text); };
    }

    const std::string& name() const noexcept { return spec_.name; }
    const std::string& default_value() const noexcept { return spec_.default_value; }
    const OptionSpec& spec() const noexcept { return spec_; }
    T read(const std::string& text) const { return read_(text); }

    /// Each returns the same option with another property.
    Option ignored_elsewhere() const { return with(&OptionSpec::is_ignored_elsewhere, true); }
    Option changeable() const { return with(&OptionSpec::may_change, true); }
    Option required() const { return with(&OptionSpec::is_required, true); }
    Option of_rank() const { return with(&OptionSpec::scope, OptionScope::rank); }
    Option of_command() const { return with(&OptionSpec::scope, OptionScope::command); }
    Option fixed_with(FixedWith what) const { return with(&OptionSpec::fixed_with, what); }
    Option repeated_as(std::function<std::string(const std::string&)> text) const {
        return with(&OptionSpec::repeated, std::move(text));
    }
    /// As help shows its type: "N|LIST".
    Option shown_as(std::string type) const { return with(&OptionSpec::type, std::move(type)); }

    operator OptionSpec() const { return spec_; }

private:
    template <class Value>
    Option with(Value OptionSpec::*member, Value value) const {
        Option option = *this;
        option.spec_.*member = std::move(value);
        return option;
    }

    OptionSpec spec_;
    Reader read_;
};

/// An option for a number from `minimum` to `maximum`. This and the following functions throw
/// InternalError if the default is not allowed.
Option<double> number_option(const std::string& name,
                             const std::string& default_value,
                             const std::string& help,
                             double minimum = 0,
                             double maximum = std::numeric_limits<double>::max());
/// An option for a number greater than 0.
Option<double> positive_number_option(const std::string& name,
                                      const std::string& default_value,
                                      const std::string& help);
/// An option for a number from 0 to below 1.
Option<double> fraction_option(const std::string& name,
                               const std::string& default_value,
                               const std::string& help);
/// The same for a probability that has no default.
Option<std::optional<double>> probability_option(const std::string& name, const std::string& help);
Option<std::int64_t> whole_number_option(const std::string& name,
                                         const std::string& default_value,
                                         const std::string& help,
                                         std::int64_t minimum = 0,
                                         std::int64_t maximum = 1'000'000'000);
/// An option for any whole number from 0 to 2^64 - 1.
Option<std::uint64_t> seed_option(const std::string& help);
/// An option for a text. Help shows `type`; "PATH", "FILE" and "DIR" are completed.
Option<std::string> text_option(const std::string& name,
                                const std::string& type,
                                const std::string& default_value,
                                const std::string& help);
/// An option for names of files separated by commas.
Option<std::vector<std::string>> files_option(const std::string& name, const std::string& help);
Option<std::string> choice_option(const std::string& name,
                                  const std::vector<std::string>& choices,
                                  const std::string& default_value,
                                  const std::string& help);
/// An option that is false unless it is given.
Option<bool> switch_option(const std::string& name, const std::string& help);
/// --json
Option<bool> json_option();
/// A length of time, [D-]HH:MM:SS, in seconds; 0 for an empty text, the default.
Option<double> duration_option(const std::string& name, const std::string& help);

/// An option for one of `values`, each by its name.
template <class T>
Option<T> named_value_option(const std::string& name,
                             const std::vector<std::pair<std::string, T>>& values,
                             const std::string& default_value,
                             const std::string& help) {
    std::vector<std::string> names;
    for (const auto& [text, value] : values)
        names.push_back(text);
    std::erase(names, "");  // what is meant without one
    const auto read = [values, names](const std::string& given) {
        for (const auto& [known, value] : values)
            if (known == given)
                return value;
        option_value::reject(given, "one of " + join(names, ", "));
    };
    return {{name, "NAME", default_value, help, names}, read};
}

}  // namespace hetseq
