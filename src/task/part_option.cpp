#include "hetseq/task/part_option.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/option_value.hpp"

namespace hetseq {

namespace {

template <class T>
PartOption<T> checked(PartOption<T> option) {
    try {
        option.read(option.default_value());
    } catch (const BadConfig& error) {
        throw InternalError("the default of --" + option.name() + ": " + error.what());
    }
    return option;
}

}  // namespace

PartOption<double> number_option(const std::string& name,
                                 const std::string& default_value,
                                 const std::string& help,
                                 double minimum,
                                 double maximum) {
    const auto read = [minimum, maximum](const std::string& text) {
        return option_value::number(text, minimum, maximum);
    };
    return checked(PartOption<double>({name, "X", default_value, help}, read));
}

PartOption<double> positive_number_option(const std::string& name,
                                          const std::string& default_value,
                                          const std::string& help) {
    return checked(PartOption<double>({name, "X", default_value, help}, option_value::positive));
}

PartOption<double> fraction_option(const std::string& name,
                                   const std::string& default_value,
                                   const std::string& help) {
    return checked(PartOption<double>({name, "X", default_value, help}, option_value::fraction));
}

PartOption<std::int64_t> whole_number_option(const std::string& name,
                                             const std::string& default_value,
                                             const std::string& help,
                                             std::int64_t minimum,
                                             std::int64_t maximum) {
    const auto read = [minimum, maximum](const std::string& text) {
        return option_value::whole_number(text, minimum, maximum);
    };
    return checked(PartOption<std::int64_t>({name, "N", default_value, help}, read));
}

PartOption<std::string> text_option(const std::string& name,
                                    const std::string& type,
                                    const std::string& default_value,
                                    const std::string& help) {
    return {{name, type, default_value, help}, [](const std::string& text) { return text; }};
}

PartOption<std::string> choice_option(const std::string& name,
                                      const std::vector<std::string>& choices,
                                      const std::string& default_value,
                                      const std::string& help) {
    const auto read = [choices](const std::string& text) {
        return option_value::choice(text, choices);
    };
    return checked(PartOption<std::string>({name, "NAME", default_value, help, choices}, read));
}

PartOption<bool> switch_option(const std::string& name, const std::string& help) {
    return {{name, "", "false", help}, option_value::is_on};
}

}  // namespace hetseq
