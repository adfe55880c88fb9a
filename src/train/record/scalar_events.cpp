#include "hetseq/train/record/scalar_events.hpp"

#include <chrono>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"

namespace hetseq {

void ScalarEvents::write(std::int64_t update, const std::vector<Scalar>& scalars) {
    if (scalars.empty())
        return;
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    if (!file_)
        file_.emplace(folder_, first_update_, now);
    for (const Scalar& scalar : scalars)
        file_->add_scalar(scalar.tag, update, scalar.value, now);
    try {
        file_->flush();
        problem_.clear();
    } catch (const IoError& error) {
        if (error.what() != problem_)
            log::warn(std::string(error.what()) +
                      "; its numbers are kept until it can be written, and are in metrics.jsonl");
        problem_ = error.what();
    }
}

}  // namespace hetseq
