#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py RUNS.jsonl    The measurements of run.sh as tables (Markdown, to standard output).

Of several measurements of the same thing the median is shown, and the range where it matters.
Ratios are taken between measurements of the same round, so that what changes on the machine in
between does not count.
"""
import json
import re
import statistics
import sys

NAMES = {"ours": "this", "agents": "this, with agents", "floor": "floor", "floor-pod": "floor, same pods",
         "floor-volumes": "floor, one call", "floor-bound": "floor, same calls as with agents",
         "peer": "peer", "tuned": "peer, tuned"}
ORDER = ["floor", "floor-pod", "floor-volumes", "floor-bound", "ours", "agents", "tuned", "peer"]


def load(path):
    """{case: {kind: {repeat: result}}}; of the same measurement the last one counts."""
    runs = {}
    with open(path) as file:
        for line in file:
            run = json.loads(line)
            runs.setdefault(run["case"], {}).setdefault(run["kind"], {})[run["repeat"]] = run["result"]
    return runs


def rounds(results):
    return [r for result in results.values() for r in result.get("rounds", [])]


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def show(value, form="%.2f"):
    return "–" if value is None else form % value


def spread(values, form="%.2f"):
    values = [v for v in values if v is not None]
    if not values:
        return "–"
    if len(values) == 1:
        return form % values[0]
    return "%s (%s–%s)" % (form % statistics.median(values), form % min(values), form % max(values))


def mib(kib):
    return None if kib is None else kib / 1024


def phase_row(case, kind, results):
    cells = [case, NAMES[kind]]
    all_rounds = rounds(results)
    claims = next(iter(results.values()))["claims"]
    for phase in ("create", "delete"):
        parts = [r[phase] for r in all_rounds]
        cells.append(spread([p["seconds"] for p in parts]))
        cells.append(show(median([p["per_second"] for p in parts]), "%.1f"))
        cells.append(" / ".join(show(median([p["latency_s"].get(q) for p in parts]))
                                for q in ("p50", "p95", "p99", "max")))
        cells.append(show(median([p["requests_per_volume"] for p in parts]), "%.1f"))
        cells.append(show(median([p["cpu_s"].get("daemon", 0) * 1000 / claims for p in parts])))
        cells.append(show(median([p["cpu_s"].get("kube-apiserver", 0) * 1000 / claims for p in parts]), "%.1f"))
    memory = [p["memory_kib"] for r in all_rounds for p in (r["create"], r["delete"]) if "memory_kib" in p]
    idle = [r["before_kib"].get("VmRSS") for r in results.values() if "before_kib" in r]
    cells.append(" / ".join(show(mib(median(v)), "%.1f") for v in (
        idle, [m.get("VmHWM") for m in memory], [m.get("VmRSS") for m in memory])))
    cells.append(show(median([m.get("Threads") for m in memory]), "%d"))
    cells.append(show(median([(r["create"]["log_bytes"] + r["delete"]["log_bytes"]) / claims for r in all_rounds]), "%d"))
    noise = max(p["foreign_share"] for r in all_rounds for p in (r["create"], r["delete"]))
    bad = sum(not p["complete"] for r in all_rounds for p in (r["create"], r["delete"]))
    cells.append("%d %%%s" % (round(100 * noise), ", %d INCOMPLETE" % bad if bad else ""))
    return cells


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(out + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def is_load(kinds):
    return any(rounds(results) and "create" in rounds(results)[0] for results in kinds.values())


def case_key(case):
    number = re.search(r"\d+", case)
    return (re.sub(r"\d+", "", case), int(number.group()) if number else 0)


def load_table(runs):
    rows = []
    for case in sorted((c for c in runs if is_load(runs[c])), key=case_key):
        for kind in ORDER:
            if kind in runs[case]:
                rows.append(phase_row(case, kind, runs[case][kind]))
    head = ["case", "who"]
    for phase in ("create", "delete"):
        head += [phase + ", s", "volumes/s", "p50 / p95 / p99 / max, s", "requests", "CPU, ms", "API server CPU, ms"]
    head += ["RSS idle / peak / after, MiB", "threads", "log bytes", "foreign CPU"]
    return "Requests, processor time and log bytes are per volume.\n\n" + table(head, rows)


def ratios(kinds, other, phase, mine="ours"):
    """seconds(other) / seconds(mine), round by round."""
    out = []
    for repeat, result in kinds.get(mine, {}).items():
        if repeat in kinds.get(other, {}):
            ours = median([r[phase]["seconds"] for r in result["rounds"]])
            theirs = median([r[phase]["seconds"] for r in kinds[other][repeat]["rounds"]])
            out.append(theirs / ours)
    return out


def work(results, phase):
    """Processor time of all programs together, of the control plane too, per volume."""
    return median([sum(r[phase]["cpu_s"].values()) / result["claims"]
                   for result in results for r in result["rounds"]])


def work_ratios(kinds, other, phase, mine="ours"):
    return [work([kinds[other][i]], phase) / work([kinds[mine][i]], phase)
            for i in kinds.get(mine, {}) if i in kinds.get(other, {})]


def ratio_table(runs):
    rows = []
    for case in sorted((c for c in runs if is_load(runs[c])), key=case_key):
        pairs = [("ours", other) for other in ("floor", "floor-pod", "agents", "tuned", "peer")]
        pairs += [("agents", other) for other in ("floor-volumes", "floor-bound")]
        for mine, other in pairs:
            cells = [ratios(runs[case], other, phase, mine) for phase in ("create", "delete")]
            if cells[0]:
                cells += [work_ratios(runs[case], other, phase, mine) for phase in ("create", "delete")]
                rows.append([case, NAMES[mine], NAMES[other]] + [spread(c) for c in cells])
    return ("How many times as long the other one takes, and how much more processor time all programs "
            "take together (control plane, nodes, provisioner); median and range of the rounds. The "
            "floor is below 1 by nature.\n\n" + table(
                ["case", "who", "compared with", "time, create", "delete", "work, create", "delete"], rows))


def request_tables(runs):
    case = next((c for c in ("claims-500", "claims-100", "claims-20") if c in runs), None)
    return "\n".join(request_table(runs, c) for c in (case, "agents-500") if c in runs)


def request_table(runs, case):
    rows = []
    for kind in ORDER:
        for phase in ("create", "delete"):
            counts, volumes = {}, 0
            results = runs[case].get(kind, {})
            for result in results.values():
                for r in result["rounds"]:
                    volumes += result["claims"]
                    for name, number in r[phase]["requests"]["by_verb"].items():
                        counts[name] = counts.get(name, 0) + number
            if volumes:
                rows.append([NAMES[kind], phase, ", ".join(
                    "%.2f %s" % (counts[n] / volumes, n) for n in sorted(counts))])
    return "By verb and resource, " + case + ":\n\n" + table(["who", "", "requests per volume"], rows)


def startup_table(runs):
    rows = []
    for case in sorted((c for c in runs if c.startswith("startup")), key=case_key):
        for kind in ORDER:
            for result in runs[case].get(kind, {}).values():
                parts = result["rounds"]
                rows.append([case, NAMES[kind], spread([p["synced_s"] for p in parts]),
                             spread([p["stop_s"] for p in parts]),
                             show(median([p["cpu_s"] * 1000 for p in parts]), "%.0f"),
                             show(mib(median([p["memory_kib"].get("VmRSS") for p in parts])), "%.1f"),
                             show(mib(median([p["memory_kib"].get("VmHWM") for p in parts])), "%.1f")])
    return table(["case", "who", "start to caches filled, s", "end, s", "CPU, ms",
                  "RSS after, MiB", "RSS peak, MiB"], rows) if rows else ""


def sample_table(runs):
    rows = []
    for case in sorted((c for c in runs if c.startswith(("idle", "storm"))), key=case_key):
        for kind in ORDER:
            for repeat, result in sorted(runs[case].get(kind, {}).items()):
                memory = result.get("memory_kib", {})
                rows.append([case, NAMES[kind], repeat, show(result["seconds"], "%.1f"),
                             show(result["cpu_s"].get("daemon", 0) * 1000, "%.1f"),
                             show(mib(memory.get("VmRSS")), "%.1f"), show(mib(memory.get("VmHWM")), "%.1f"),
                             memory.get("Threads", "–"), result["requests"]["sum"]])
    return table(["case", "who", "round", "seconds", "CPU, ms", "RSS after, MiB", "RSS peak, MiB",
                  "threads", "requests"], rows) if rows else ""


def other_lines(runs):
    lines = []
    for kind, results in runs.get("size", {}).items():
        for result in results.values():
            image = ", runtime image %.1f MiB" % (result["image"] / 2**20) if "image" in result else ""
            lines.append("* size, %s: stripped binary %.1f MiB%s" % (NAMES[kind], result["binary"] / 2**20, image))
    if "failure" in runs:
        found = [r for results in runs["failure"].values() for r in results.values()]
        lines.append("* a helper pod that fails at once: claim to Event %s s, pod failed to Event %s s" % (
            spread([r.get("event_s") for r in found]),
            spread([r["event_s"] - r["pod_failed_s"] for r in found if "event_s" in r and "pod_failed_s" in r], "%.3f")))
    for case, when in (("agents-before", "before its first claim"), ("agents-after", "after 500 claims of ten"), ("agents-idle", "idle")):
        found = [k for result in runs.get(case, {}).get("ours", {}).values() for k in result["agent_kib"]]
        if found:
            def of(what):
                return spread([mib(k) for result in runs[case]["ours"].values() for k in result.get(what, [])], "%.1f")
            lines.append("* an agent, %s: RSS %s MiB, its own (RssAnon) %s, proportional (PSS) %s" % (
                when, of("agent_kib"), of("agent_anon_kib"), of("agent_pss_kib")))
    for result in runs.get("agents-idle", {}).get("ours", {}).values():
        lines.append("* an idle agent on the network: %.1f bytes/s sent, %.1f received, of %d s" % (
            result["sent"] / result["seconds"], result["received"] / result["seconds"], result["seconds"]))
    waits = {}
    for case in ("tenants-alone", "tenants-beside"):
        if case in runs:
            waits[case] = sorted(r["create"]["seconds"] for r in rounds(runs[case].get("ours", {})))
    if len(waits) == 2 and all(waits.values()):
        alone, beside = waits.values()
        at = lambda values, share: values[min(int(share * len(values)), len(values) - 1)]
        lines.append("* a namespace's claims one after another, beside 5,000 of another one that fail and are changed "
                     "in a loop: p50 / p99 / max %s s (alone %s s), p99 delayed by %.2f s" % (
                         " / ".join(show(at(beside, q)) for q in (0.5, 0.99, 1)),
                         " / ".join(show(at(alone, q)) for q in (0.5, 0.99, 1)),
                         at(beside, 0.99) - at(alone, 0.99)))
    sizes = sorted((c for c in runs if re.fullmatch(r"claims-\d+", c)), key=case_key)
    base = runs.get("claims-100", {}).get("ours")
    if base:
        per_claim = median([r["create"]["seconds"] for r in rounds(base)]) / 100
        for case in sizes:
            if "ours" in runs[case] and case_key(case)[1] > 100:
                took = median([r["create"]["seconds"] for r in rounds(runs[case]["ours"])])
                lines.append("* %s: %.2f times the linear extrapolation from 100 claims" % (
                    case, took / (per_claim * case_key(case)[1])))
    return "\n".join(lines) + "\n" if lines else ""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    runs = load(sys.argv[1])
    parts = [("Load", load_table(runs)), ("Ratios", ratio_table(runs)), ("Requests", request_tables(runs)),
             ("Start and stop", startup_table(runs)), ("Idle, and a restart of the API server", sample_table(runs)),
             ("Others", other_lines(runs))]
    for title, text in parts:
        if text:
            print("## %s\n\n%s" % (title, text))


if __name__ == "__main__":
    main()
