#include "python_calls.hpp"

#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// The package puts this before the traceback of an exception that says so.
constexpr const char* memory_mark = "hetseq: out of memory\n";

// The text that the package gave, without the class in front and the place of the package behind.
std::string text_of(const std::exception& error) {
    std::string text = error.what();
    text = text.substr(0, text.find("\n\nAt:\n"));
    const std::string class_name = "RuntimeError: ";
    return text.rfind(class_name, 0) == 0 ? text.substr(class_name.size()) : text;
}

}  // namespace

std::vector<c10::IValue> call_python(const char* name, std::vector<c10::IValue> arguments) {
    std::string failure;
    try {
        c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(arguments);
        return arguments;
    } catch (const std::exception& error) {
        failure = text_of(error);
    }
    if (failure.rfind(memory_mark, 0) == 0)  // the last line has the exception
        TORCH_CHECK_WITH(OutOfMemoryError, false, failure.substr(failure.rfind('\n') + 1));
    throw BadConfig("the task's Python failed:\n" + failure);
}

}  // namespace hetseq
