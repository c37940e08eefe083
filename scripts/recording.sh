#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# recording.sh [--check]: draws what `make demo` prints as docs/demo.svg, the recording in the README.
#
# The lines appear one after another, each after the pause it had, times 8; without animations all of
# them are there at once. Times are those of this run; the random part of names is cut off. With
# --check nothing is written: it fails unless the recording shows the steps that the demo takes now.
# LPP_BUILD_DIR is CMake's build directory (build/dev), with lpp-demo and the daemon in it.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${LPP_BUILD_DIR:-build/dev}
picture=docs/demo.svg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Which sandbox the containers have depends on the machine.
"$build/test/devcluster/lpp-demo" --daemon "$build/src/local-path-provisioner" >"$work/output"
sed -E '/^ *its containers run/d; s/(pvc-[0-9a-f]{8})[-0-9a-f]{28}/\1…/g; s/[0-9.]+:[0-9]+$/127.0.0.1:6443/
  s/, [0-9]+ ms after SIGTERM//' "$work/output" >"$work/lines"

draw() {
  LC_ALL=C.UTF-8 awk -v name='make demo' '
    function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); return text }
    function line(text, class, at) {
      body = body sprintf("<text class=\"%s\" x=\"16\" y=\"%d\" style=\"animation-delay:%.1fs\">%s</text>\n",
                          class, 56 + 20 * count++, at, escaped(text))
    }
    BEGIN { line("$ " name, "command", 0); at = 1 }
    {
      if (match($0, /^\[ *[0-9.]+ s\]/)) {
        seconds = substr($0, 2, RLENGTH - 4) + 0
        at += 0.3 + 8 * (seconds - last)
        last = seconds
      }
      line($0, /^\[/ ? "step" : "detail", at)
    }
    END {
      height = 56 + 20 * count
      printf "<svg xml:space=\"preserve\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 %d\" width=\"960\" height=\"%d\" ", height, height
      printf "role=\"img\" aria-label=\"A terminal in which make demo shows a volume from claim to removal\">\n"
      printf "<style>\n"
      printf "text { font: 13px ui-monospace, Menlo, Consolas, monospace; white-space: pre; fill: #c9d1d9;\n"
      printf "       animation: appear .01s backwards }\n"
      printf ".command { fill: #ffffff; font-weight: bold } .detail { fill: #8b949e }\n"
      printf "@keyframes appear { from { opacity: 0 } }\n"
      printf "@media (prefers-reduced-motion: reduce) { text { animation: none } }\n"
      printf "</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n"
      printf "<circle cx=\"20\" cy=\"18\" r=\"5\" fill=\"#ff5f56\"/><circle cx=\"38\" cy=\"18\" r=\"5\" fill=\"#ffbd2e\"/>"
      printf "<circle cx=\"56\" cy=\"18\" r=\"5\" fill=\"#27c93f\"/>\n%s</svg>\n", body
    }' "$work/lines"
}

# The text of the picture without what differs from run to run.
told() { sed -nE 's/^<text [^>]*>(.*)<\/text>$/\1/p' "$1" | sed -E 's/^\[ *[0-9.]+ s\]//; s/pvc-[0-9a-f]{8}/pvc-/g; s/node-[12]/node/g'; }

draw >"$work/picture"
if [ "${1:-}" != --check ]; then
  cp "$work/picture" "$picture"
elif ! diff <(told "$picture") <(told "$work/picture") >&2; then
  echo 'recording: the demo does not do what docs/demo.svg shows; scripts/recording.sh draws it anew' >&2
  exit 1
fi
