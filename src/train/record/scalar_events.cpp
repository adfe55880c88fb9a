#include "hetseq/train/record/scalar_events.hpp"

#include <chrono>
#include <system_error>

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
    look_for_file(update, now);
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

// Where its folder is gone with the whole run, metrics.jsonl says so.
void ScalarEvents::look_for_file(std::int64_t update, double now) {
    std::error_code unknown;
    if (!file_->is_gone() || !std::filesystem::is_directory(folder_.parent_path(), unknown))
        return;
    log::warn("somebody removed " + file_->path().string() +
              " while the run goes on: another file begins here, and metrics.jsonl has the rest");
    was_removed_ = true;
    file_.emplace(folder_, update, now);
}

void ScalarEvents::finish() {
    if (was_removed_)
        log::warn(folder_.string() + " lacks an event file that somebody removed");
}

}  // namespace hetseq
