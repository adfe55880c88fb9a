#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hetseq {

/// An option that one part declares, or several parts alike. Help, configurations and completion
/// show it so.
struct PartOptionSpec {
    std::string name;           // without dashes: "label-smoothing"
    std::string type;           // as help shows it: "N", "X", "PATH"; empty for a switch
    std::string default_value;  // as text
    std::string help;
    std::vector<std::string> choices = {};               // where they can be listed
    std::function<void(const std::string&)> check = {};  // throws BadConfig: what was expected
    /// If other parts are chosen, the option is an error (false) or has no effect (true), so that
    /// one configuration serves several parts.
    bool is_ignored_elsewhere = false;
    /// A run may be continued with another value: it changes neither the network nor its training.
    bool may_change = false;
};

/// The same with the type of its value. A part declares and reads the option with one object.
template <class T>
class PartOption {
public:
    using Reader = std::function<T(const std::string&)>;  // throws BadConfig

    PartOption(PartOptionSpec spec, Reader read) : spec_{std::move(spec)}, read_{std::move(read)} {
        spec_.check = [read = read_](const std::string& text) { read(text); };
    }

    const std::string& name() const noexcept { return spec_.name; }
    const std::string& default_value() const noexcept { return spec_.default_value; }
    T read(const std::string& text) const { return read_(text); }

    /// The same option, but it is no error if other parts are chosen.
    PartOption ignored_elsewhere() const {
        PartOption option = *this;
        option.spec_.is_ignored_elsewhere = true;
        return option;
    }

    /// The same option, which a continued run may have otherwise.
    PartOption changeable() const {
        PartOption option = *this;
        option.spec_.may_change = true;
        return option;
    }

    operator PartOptionSpec() const { return spec_; }

private:
    PartOptionSpec spec_;
    Reader read_;
};

/// An option for a number from `minimum` to `maximum`. This and the following functions throw
/// InternalError if the default is not allowed.
PartOption<double> number_option(const std::string& name,
                                 const std::string& default_value,
                                 const std::string& help,
                                 double minimum = 0,
                                 double maximum = std::numeric_limits<double>::max());
/// An option for a number greater than 0.
PartOption<double> positive_number_option(const std::string& name,
                                          const std::string& default_value,
                                          const std::string& help);
/// An option for a number from 0 to below 1.
PartOption<double> fraction_option(const std::string& name,
                                   const std::string& default_value,
                                   const std::string& help);
PartOption<std::int64_t> whole_number_option(const std::string& name,
                                             const std::string& default_value,
                                             const std::string& help,
                                             std::int64_t minimum = 0,
                                             std::int64_t maximum = 1'000'000'000);
/// An option for a text. Help shows `type`; "PATH", "FILE" and "DIR" are completed.
PartOption<std::string> text_option(const std::string& name,
                                    const std::string& type,
                                    const std::string& default_value,
                                    const std::string& help);
PartOption<std::string> choice_option(const std::string& name,
                                      const std::vector<std::string>& choices,
                                      const std::string& default_value,
                                      const std::string& help);
/// An option that is false unless it is given.
PartOption<bool> switch_option(const std::string& name, const std::string& help);

}  // namespace hetseq
