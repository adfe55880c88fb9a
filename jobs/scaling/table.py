#!/usr/bin/env python3
"""Table and plot of runs of unlike size.

usage: jobs/scaling/table.py FOLDER RUN...

Reads FOLDER/RUN/summary.json of each run, the first one being what the others are compared with, and prints nodes,
devices, batch, step time, samples a second, speed-up (of samples a second), expansion (speed-up over devices, relative to
the first run's), the share of its own bound that each reached, and what communication took. Writes FOLDER/scaling.svg:
speed-up over devices, dashed what the devices of each run allow.
"""
import json
import os
import sys


def read(folder, run):
    with open(os.path.join(folder, run, "summary.json")) as file:
        summary = json.load(file)
    ranks = summary["ranks"]
    return {
        "run": run,
        "nodes": len({rank["host"] for rank in ranks}),
        "devices": len(ranks),
        "batch": round(summary["samples"] / summary["updates"]),
        "step_ms": summary["step_ms"]["median"],
        "seconds": summary["seconds"],
        "rate": summary["samples_per_second"],
        "achieved": summary["balance"]["achieved"],
        "communication": summary["balance"]["communication_share"],
    }


def percent(value):
    return "" if value is None else f"{100 * value:.1f} %"


def table(rows):
    print("| run | nodes | devices | samples an update | step ms | training s | samples/s | speed-up | expansion "
          "| of its bound | communication |")
    print("|" + "---|" * 11)
    for row in rows:
        print(f"| {row['run']} | {row['nodes']} | {row['devices']} | {row['batch']} | {row['step_ms']:.1f} "
              f"| {row['seconds']:.1f} | {row['rate']:.1f} | {row['speed_up']:.2f} | {row['expansion']:.2f} "
              f"| {percent(row['achieved'])} | {percent(row['communication'])} |")


def plot(rows, path):
    """Speed-up over devices, and dashed what each run's own devices allow (its bound)."""
    width, height, margin = 480, 360, 56
    rows = sorted(rows, key=lambda row: row["devices"])
    allowed = [(row["devices"], row["speed_up"] / row["achieved"]) for row in rows if row["achieved"]]
    most_devices = max(row["devices"] for row in rows)
    most = max([row["speed_up"] for row in rows] + [speed_up for _, speed_up in allowed])

    def place(devices, speed_up):
        return (margin + devices / most_devices * (width - 2 * margin),
                height - margin - speed_up / most * (height - 2 * margin))

    def polyline(points, style):
        return f'<polyline fill="none" {style} points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>'

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>']
    x0, y0 = place(0, 0)
    x1, y1 = place(most_devices, most)
    lines.append(f'<path d="M{x0:.1f} {y1:.1f}V{y0:.1f}H{x1:.1f}" fill="none" stroke="black"/>')
    lines.append(polyline([place(*point) for point in allowed], 'stroke="gray" stroke-dasharray="4 4"'))
    points = [place(row["devices"], row["speed_up"]) for row in rows]
    lines.append(polyline(points, 'stroke="#1f6feb" stroke-width="2"'))
    for row, (x, y) in zip(rows, points):
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1f6feb"/>')
        lines.append(f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle">{row["speed_up"]:.2f}</text>')
        lines.append(f'<text x="{x:.1f}" y="{y0 + 18:.1f}" text-anchor="middle">{row["devices"]}</text>')
    lines.append(f'<text x="{(x0 + x1) / 2:.1f}" y="{height - 12}" text-anchor="middle">devices</text>')
    lines.append(f'<text x="14" y="{(y0 + y1) / 2:.1f}" text-anchor="middle" '
                 f'transform="rotate(-90 14 {(y0 + y1) / 2:.1f})">speed-up</text>')
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n</svg>\n")


def main(folder, runs):
    rows = [read(folder, run) for run in runs]
    for row in rows:
        row["speed_up"] = row["rate"] / rows[0]["rate"]
        row["expansion"] = row["speed_up"] * rows[0]["devices"] / row["devices"]
    table(rows)
    plot(rows, os.path.join(folder, "scaling.svg"))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
