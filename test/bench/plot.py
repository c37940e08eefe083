#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plot.py RUNS.jsonl OUT.svg    Time to Bound and memory, as a picture.

Left: seconds until all claims are Bound, by the number of claims. Right: resident memory when idle,
at its peak and in a full cluster. Both axes of times are logarithmic. Needs nothing but Python.
"""
import math
import statistics
import sys

from report import load, rounds

COLOURS = {"floor": "#8a8f98", "ours": "#1f6feb", "tuned": "#d9822b", "peer": "#b3261e"}
NAMES = {"floor": "floor", "ours": "this provisioner", "tuned": "peer, set up for speed",
         "peer": "peer, as it comes"}
FONT = 'font-family="sans-serif" font-size="12"'


def text(x, y, content, anchor="middle", extra=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" %s %s>%s</text>' % (
        x, y, anchor, FONT, extra, content)


def line(x1, y1, x2, y2, colour, width=1):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%s"/>' % (
        x1, y1, x2, y2, colour, width)


class LogAxis:
    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = math.log10(low), math.log10(high), start, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def times_to_bound(runs):
    """{kind: {claims: seconds}}"""
    points = {}
    for case, kinds in runs.items():
        if case != "one" and not (case.startswith("claims-") and case[7:].isdigit()):
            continue
        for kind, results in kinds.items():
            values = [r["create"]["seconds"] for r in rounds(results) if r["create"]["complete"]]
            if values and kind in COLOURS:
                claims = next(iter(results.values()))["claims"]
                points.setdefault(kind, {})[claims] = statistics.median(values)
    return points


def draw_times(runs, left, top, width, height):
    points = times_to_bound(runs)
    every = [p for kind in points.values() for p in kind.items()]
    x = LogAxis(1, max(c for c, _ in every) * 1.2, left, left + width)
    low, high = min(s for _, s in every), max(s for _, s in every)
    y = LogAxis(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)), top + height, top)
    out = [text(left + width / 2, top - 14, "Seconds until all claims are Bound", extra='font-weight="bold"')]
    exponent = math.floor(math.log10(low))
    while 10 ** exponent <= 10 ** math.ceil(math.log10(high)):
        at = y(10 ** exponent)
        out += [line(left, at, left + width, at, "#e3e5e8"), text(left - 6, at + 4, "%g" % 10 ** exponent, "end")]
        exponent += 1
    for claims in sorted({c for c, _ in every}):
        out += [line(x(claims), top, x(claims), top + height, "#f0f1f3"),
                text(x(claims), top + height + 18, "%d" % claims)]
    out.append(text(left + width / 2, top + height + 36, "claims at once"))
    for kind, values in points.items():
        path = " ".join("%.1f,%.1f" % (x(c), y(s)) for c, s in sorted(values.items()))
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (path, COLOURS[kind]))
        for claims, seconds in values.items():
            out.append('<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>' % (x(claims), y(seconds), COLOURS[kind]))
    return out


def memory_bars(runs):
    """[(label, {kind: MiB})]"""
    def of(case, pick):
        values = {}
        for kind, results in runs.get(case, {}).items():
            found = [v for v in (pick(r) for r in results.values()) if v]
            if found and kind in COLOURS and kind != "floor":
                values[kind] = statistics.median(found) / 1024
        return values

    def peak(result):
        return max((r[p].get("memory_kib", {}).get("VmHWM", 0) for r in result.get("rounds", [])
                    for p in ("create", "delete")), default=0)

    def after_start(result):
        return statistics.median(r["memory_kib"]["VmRSS"] for r in result["rounds"])

    bars = [("idle", of("startup", after_start)), ("100 claims, peak", of("claims-100", peak)),
            ("500 claims, peak", of("claims-500", peak)),
            ("5,000 volumes of others", of("startup-5000-other", after_start)),
            ("10,000, half of others", of("startup-10000-half", after_start))]
    return [(label, values) for label, values in bars if values]


def draw_memory(runs, left, top, width, height):
    bars = memory_bars(runs)
    if not bars:
        return []
    high = max(v for _, values in bars for v in values.values()) * 1.15
    out = [text(left + width / 2, top - 14, "Resident memory, MiB", extra='font-weight="bold"')]
    row = height / len(bars)
    for i, (label, values) in enumerate(bars):
        begin = top + i * row
        out.append(text(left, begin + 12, label, "start"))
        thick = (row - 22) / max(1, len(values))
        for j, kind in enumerate(k for k in COLOURS if k in values):
            at = begin + 17 + j * thick
            length = values[kind] / high * (width - 40)
            out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>' % (
                left, at, length, thick - 2, COLOURS[kind]))
            out.append(text(left + length + 5, at + thick / 2 + 3, "%.1f" % values[kind], "start"))
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    runs = load(sys.argv[1])
    kinds = [k for k in COLOURS if any(k in case for case in runs.values())]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="920" height="430" viewBox="0 0 920 430">',
           '<rect width="920" height="430" fill="#ffffff"/>']
    out += draw_times(runs, 60, 40, 420, 300)
    out += draw_memory(runs, 540, 40, 350, 320)
    for i, kind in enumerate(kinds):
        at = 60 + i * 205
        out += ['<rect x="%d" y="402" width="14" height="14" fill="%s"/>' % (at, COLOURS[kind]),
                text(at + 20, 414, NAMES[kind], "start")]
    out.append("</svg>")
    with open(sys.argv[2], "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
