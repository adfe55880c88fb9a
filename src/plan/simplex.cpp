#include "simplex.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

namespace {

using Point = std::vector<double>;
using Function = std::function<double(const Point&)>;

constexpr int most_steps = 400;
constexpr int most_restarts = 5;
constexpr double smallest_edge = 1e-7;

struct Corner {
    double error = 0;
    Point point;
};

// centre + factor (centre - worst), of all but the worst corner.
Point reflected(const std::vector<Corner>& corners, double factor) {
    Point centre(corners.size() - 1, 0.0);
    for (std::size_t i = 0; i + 1 < corners.size(); ++i)
        for (std::size_t k = 0; k < centre.size(); ++k)
            centre[k] += corners[i].point[k] / static_cast<double>(centre.size());
    for (std::size_t k = 0; k < centre.size(); ++k)
        centre[k] += factor * (centre[k] - corners.back().point[k]);
    return centre;
}

void shrink(const Function& error, std::vector<Corner>& corners) {
    for (std::size_t i = 1; i < corners.size(); ++i) {
        for (std::size_t k = 0; k < corners[i].point.size(); ++k)
            corners[i].point[k] = (corners[i].point[k] + corners[0].point[k]) / 2;
        corners[i].error = error(corners[i].point);
    }
}

// Replaces the worst corner: reflection, expansion, contraction, or all shrink to the best.
void improve(const Function& error, std::vector<Corner>& corners) {
    const auto corner_at = [&](double factor) {
        const Point point = reflected(corners, factor);
        return Corner{error(point), point};
    };
    const Corner mirrored = corner_at(1);
    if (mirrored.error < corners.front().error) {
        const Corner further = corner_at(2);
        corners.back() = further.error < mirrored.error ? further : mirrored;
    } else if (mirrored.error < corners[corners.size() - 2].error) {
        corners.back() = mirrored;
    } else {
        const Corner nearer = corner_at(mirrored.error < corners.back().error ? 0.5 : -0.5);
        if (nearer.error < std::min(mirrored.error, corners.back().error))
            corners.back() = nearer;
        else
            shrink(error, corners);
    }
}

double edge_of(const std::vector<Corner>& corners) {
    double edge = 0;
    for (const Corner& corner : corners)
        for (std::size_t k = 0; k < corner.point.size(); ++k)
            edge = std::max(edge, std::abs(corner.point[k] - corners.front().point[k]));
    return edge;
}

Corner descend(const Function& error, const Point& start, double step) {
    std::vector<Corner> corners{{error(start), start}};
    for (std::size_t k = 0; k < start.size(); ++k) {
        Point point = start;
        point[k] += step;
        corners.push_back({error(point), point});
    }
    const auto better = [](const Corner& a, const Corner& b) { return a.error < b.error; };
    std::stable_sort(corners.begin(), corners.end(), better);
    for (int i = 0; i < most_steps && edge_of(corners) > smallest_edge; ++i) {
        improve(error, corners);
        std::stable_sort(corners.begin(), corners.end(), better);
    }
    return corners.front();
}

}  // namespace

std::vector<double> minimise(const Function& error, const Point& start, double step) {
    if (start.empty())
        return start;
    Corner best = descend(error, start, step);
    for (int i = 0; i < most_restarts; ++i) {
        const Corner again = descend(error, best.point, step);
        const bool gained = again.error < best.error * (1 - 1e-6);
        if (again.error < best.error)
            best = again;
        if (!gained)
            break;
    }
    return best.point;
}

}  // namespace hetseq
