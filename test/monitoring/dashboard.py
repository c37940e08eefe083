#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dashboard.py DASHBOARD.json PROMETHEUS_URL SECONDS OUT.html

Asks Prometheus every query of a Grafana dashboard over the last SECONDS and draws the panels, where
the dashboard has them, into a page. Exit: 0 every query of every panel has an answer with a number in
it, 1 one has not (says which).
"""

import html
import json
import math
import re
import sys
import time
import urllib.parse
import urllib.request

STEP = 2  # seconds, of the scrapes
VARIABLES = {"$namespace": ".*", "$__rate_interval": "10s", "${datasource}": ""}
COLOURS = ("#56a64b", "#e0b400", "#3274d9", "#e02f44", "#a352cc", "#ff780a", "#37872d", "#8ab8ff",
           "#fade2a", "#c4162a", "#705da0", "#b877d9", "#1f60c4")
COLUMN, ROW, GAP = 64, 36, 8  # pixels of Grafana's grid


def ask(url, path, **parameters):
    query = urllib.parse.urlencode(parameters)
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=20) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        sys.exit(f"dashboard: {parameters['query']}: {json.load(error).get('error')}")


def expression(target):
    text = target["expr"]
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return text


def legend(target, labels):
    text = target.get("legendFormat", "")
    for name, value in labels.items():
        text = text.replace("{{%s}}" % name, value)
    return text


def finite(points):
    return [(float(t), float(v)) for t, v in points if math.isfinite(float(v))]


def series(url, target, begin, end):
    """[(legend, points)] of one query; points without a number are left out."""
    if target.get("instant"):
        found = [(one["metric"], [one["value"]])
                 for one in ask(url, "query", query=expression(target), time=end)]
    else:
        found = [(one["metric"], one["values"])
                 for one in ask(url, "query_range", query=expression(target), start=begin, end=end,
                                step=STEP)]
    return [(legend(target, labels), finite(points)) for labels, points in found if finite(points)]


def shown(value, unit):
    """A number as Grafana's units have it."""
    if unit == "s":
        return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / 2 ** 20:.3g} MiB"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    return f"{value:.3g}" + {"ops": " ops/s", "reqps": " req/s"}.get(unit, "")


def chart(all_series, unit, width, height, begin, end):
    left, top, bottom = 62, 6, 18
    highest = max((v for _, points in all_series for _, v in points), default=0) or 1
    x = lambda t: left + (t - begin) / (end - begin) * (width - left - 8)
    y = lambda v: top + (1 - v / highest) * (height - top - bottom)
    out = [f'<svg width="{width}" height="{height}">']
    for part in (0, 0.5, 1):
        at = y(highest * part)
        out.append(f'<line x1="{left}" x2="{width - 8}" y1="{at}" y2="{at}" stroke="#333"/>'
                   f'<text x="{left - 6}" y="{at + 4}" text-anchor="end">'
                   f'{shown(highest * part, unit)}</text>')
    for number, (_, points) in enumerate(all_series):
        line = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in points)
        out.append(f'<polyline points="{line}" fill="none" stroke-width="1.5" '
                   f'stroke="{COLOURS[number % len(COLOURS)]}"/>')
    return "".join(out) + "</svg>"


def panel_html(panel, all_series, begin, end):
    grid = panel["gridPos"]
    box = [grid["x"] * COLUMN, grid["y"] * (ROW + GAP), grid["w"] * COLUMN - GAP,
           grid["h"] * (ROW + GAP) - GAP]
    style = "left:%dpx;top:%dpx;width:%dpx;height:%dpx" % tuple(box)
    title = html.escape(panel["title"])
    if panel["type"] == "row":
        return f'<h2 style="{style}">{title}</h2>'
    unit = panel["fieldConfig"]["defaults"].get("unit", "")
    if panel["type"] == "stat":
        mappings = panel["fieldConfig"]["defaults"].get("mappings", [])
        texts = [(name, mapped(points[-1][1], mappings) or shown(points[-1][1], unit))
                 for name, points in all_series]
        body = "<br>".join(html.escape(f"{text} {name}") for name, text in texts)
        return f'<div style="{style}"><b>{title}</b><p>{body}</p></div>'
    rows = 1 + len(all_series) // 3
    drawn = chart(all_series, unit, box[2] - 16, box[3] - 34 - 17 * rows, begin, end)
    names = " ".join(f'<i style="color:{COLOURS[n % len(COLOURS)]}">&#9632;</i>&nbsp;'
                     + html.escape(name).replace(" ", "&nbsp;")
                     for n, (name, _) in enumerate(all_series))
    return f'<div style="{style}"><b>{title}</b><br>{drawn}<small>{names}</small></div>'


def mapped(value, mappings):
    for mapping in mappings:
        text = mapping.get("options", {}).get(f"{value:g}", {})
        if isinstance(text, dict) and "text" in text:
            return text["text"]
    return ""


def main():
    dashboard, url, seconds, out = sys.argv[1:]
    with open(dashboard, encoding="utf-8") as file:
        dashboard = json.load(file)
    end = time.time()
    begin = end - int(seconds)
    empty, parts, asked, bottom = [], [], 0, 0
    for panel in dashboard["panels"]:
        all_series = []
        for target in panel.get("targets", []):
            found = series(url, target, begin, end)
            asked += 1
            # Hollow nodes have no kubelet that measures, and helper pods that know no space.
            told_by_nodes = re.search("kubelet_|local_path_provisioner_(path|volume_stats)_",
                                      target["expr"])
            if not found and not told_by_nodes:
                empty.append(f"{panel['title']}: {expression(target)}")
            names = [name for name, _ in found]
            if len(names) != len(set(names)):
                empty.append(f"{panel['title']}: two lines of one name: {sorted(names)}")
            all_series += found
        parts.append(panel_html(panel, all_series, begin, end))
        bottom = max(bottom, (panel["gridPos"]["y"] + panel["gridPos"]["h"]) * (ROW + GAP))
    with open(out, "w", encoding="utf-8") as file:
        file.write(f"""<!doctype html><meta charset="utf-8"><title>{dashboard['title']}</title><style>
body {{ background:#111217; color:#ccccdc; font:12px sans-serif; margin:12px; height:{bottom}px }}
div, h2 {{ position:absolute; box-sizing:border-box; padding:6px 8px; margin:12px; overflow:hidden }}
div {{ background:#181b1f; border:1px solid #2c3235; border-radius:3px }} h2 {{ font-size:15px }}
p {{ font-size:22px; color:#73bf69; margin:14px 0; text-align:center }} text {{ fill:#8e8e9e; font-size:11px }}
i {{ font-style:normal }} small {{ font-size:11px }}</style>""" + "\n".join(parts))
    for one in empty:
        print(f"dashboard: nothing to show: {one}", file=sys.stderr)
    print(f"dashboard: {asked - len(empty)} passed, {len(empty)} failed")
    sys.exit(1 if empty else 0)


main()
