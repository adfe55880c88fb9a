#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/options/option.hpp"
#include "hetseq/options/option_spec.hpp"

namespace hetseq {

/// The options of the structure S of settings: for each of them the member that its value becomes.
/// Whoever uses S declares them, in the order of the help.
template <class S>
class OptionsOf {
public:
    OptionsOf() = default;

    /// What is added from here on stands under this heading.
    OptionsOf& heading(std::string text) {
        heading_ = std::move(text);
        return *this;
    }

    template <class T>
    OptionsOf& add(T S::*member, const Option<T>& option) {
        const auto set = [member, option](S& settings, const std::string& text) {
            settings.*member = option.read(text);
        };
        const auto place = [member](const S& settings) -> const void* {
            return &(settings.*member);
        };
        return take({option.spec(), set, place});
    }

    /// For an option whose value is not a member as it stands. It is applied after those before it.
    template <class T>
    OptionsOf& apply(const Option<T>& option,
                     std::type_identity_t<std::function<void(S&, T)>> change) {
        const auto set = [option, change](S& settings, const std::string& text) {
            change(settings, option.read(text));
        };
        return take({option.spec(), set, [](const S&) -> const void* { return nullptr; }});
    }

    /// Those of a structure inside S. They keep headings of their own.
    template <class Inner>
    OptionsOf& add(Inner S::*member, const OptionsOf<Inner>& options) {
        for (const auto& entry : options.entries()) {
            const auto set = [member, entry](S& settings, const std::string& text) {
                entry.set(settings.*member, text);
            };
            const auto place = [member, entry](const S& settings) {
                return entry.place(settings.*member);
            };
            take({entry.spec, set, place});
        }
        return *this;
    }

    OptionTable table() const {
        OptionTable table;
        for (const Entry& entry : entries_)
            table.push_back(entry.spec);
        return table;
    }

    /// The settings that these texts say; an option that is not among them has its default. Throws
    /// BadConfig that names the option.
    S read(const OptionValues& values) const {
        S settings;
        for (const Entry& entry : entries_) {
            const auto found = values.find(entry.spec.name);
            const std::string& text =
                found != values.end() ? found->second : entry.spec.default_value;
            read_value_of(entry.spec, [&] { entry.set(settings, text); });
        }
        return settings;
    }

    /// The option whose value `place`, a member of `settings`, is.
    const OptionSpec& at(const S& settings, const void* place) const {
        for (const Entry& entry : entries_)
            if (entry.place(settings) == place)
                return entry.spec;
        throw InternalError("no option has its value there");
    }

    struct Entry {
        OptionSpec spec;
        std::function<void(S&, const std::string&)> set;
        std::function<const void*(const S&)> place;
    };
    const std::vector<Entry>& entries() const noexcept { return entries_; }

private:
    OptionsOf& take(Entry entry) {
        if (entry.spec.group.empty())
            entry.spec.group = heading_;
        entries_.push_back(std::move(entry));
        return *this;
    }

    std::string heading_;
    std::vector<Entry> entries_;
};

}  // namespace hetseq
