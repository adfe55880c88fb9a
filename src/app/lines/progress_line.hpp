#pragma once

#include <functional>
#include <string>

namespace hetseq {

/// A line on the terminal while a command works.
class ProgressLine {
public:
    enum class Streams { used, free };  // whether standard input or output belong to the command

    /// Nothing is drawn where no terminal shows standard error, or where the command's own lines
    /// would be on the same one.
    explicit ProgressLine(Streams streams);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// Draws the text that `line` makes of the seconds so far, now and then.
    void show(const std::function<std::string(double)>& line);
    double seconds() const;  // since the start

private:
    int columns_;
    double begin_s_;
    double drawn_s_ = 0;
};

}  // namespace hetseq
