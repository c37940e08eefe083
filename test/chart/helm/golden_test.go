// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The manifest is the source of the scripts; the chart has copies, because Helm reads its own folder
// only.
func TestTheScriptsOfTheChartAreThoseOfTheManifest(t *testing.T) {
	configMap := named(t, rawObjects(t), "ConfigMap")
	for _, name := range []string{"setup", "teardown"} {
		path := filepath.Join(chartDir, "files", name)
		want := at(configMap, "data", name).(string) + "\n"
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := readFile(t, path); got != want {
			t.Errorf("%s is not the script of %s; run.sh --update copies it:\n%s", path, rawManifest,
				firstDifference(got, want))
		}
	}
}

func TestTheFilesOfTheChartAreThoseOfDeploy(t *testing.T) {
	for _, name := range []string{"prometheusrule.yaml", "dashboard.json", "admission-policy.yaml"} {
		path := filepath.Join(chartDir, "files", name)
		from := monitoringDir
		if name == "admission-policy.yaml" {
			from = filepath.Dir(rawManifest)
		}
		want := readFile(t, filepath.Join(from, name))
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := readFile(t, path); got != want {
			t.Errorf("%s is not that of %s; run.sh --update copies it:\n%s", path, from,
				firstDifference(got, want))
		}
	}
}

// The rendering of default.yaml stands there as it is, each other one by what it has other than that,
// for `patch` and test/harness/rendering.h: one sees what the values do. So do not the two that have little
// in common with it: their difference would be longer, or as long.
func isWhole(name string) bool {
	switch name {
	case "default", "everything", "old-defaults":
		return true
	}
	return false
}

func TestEachValueFileRendersAsItsGoldenFile(t *testing.T) {
	files := valueFiles(t)
	usual := objectsText(t, render(t, files["default"]))
	for name, values := range files {
		t.Run(name, func(t *testing.T) {
			got := objectsText(t, render(t, values))
			if !isWhole(name) {
				got = difference(t, "default", usual, got)
			}
			isGolden(t, goldenFile(name), "values/"+name+".yaml", got)
		})
	}
}

// isGolden compares what was made of a file with what stands there, or writes it.
func isGolden(t *testing.T, golden, from, text string) {
	t.Helper()
	got := "# Rendered from " + from + "; run.sh --update writes it anew.\n" + text
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := readFile(t, golden); got != want {
		t.Errorf("%s differs; look at it after run.sh --update:\n%s", golden, firstDifference(got, want))
	}
}

func goldenFile(name string) string {
	if isWhole(name) {
		return filepath.Join(goldenDir, name+".yaml")
	}
	return filepath.Join(goldenDir, name+".diff")
}

func difference(t *testing.T, name, from, to string) string {
	t.Helper()
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(from), B: lines(to),
		FromFile: name, ToFile: "this", Context: 1})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	return all[:len(all)-1]
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			wanted := "(end of file)"
			if i < len(w) {
				wanted = w[i]
			}
			return "got:    " + g[i] + "\nwanted: " + wanted
		}
	}
	return "the golden file is longer"
}

func TestEveryGoldenFileHasItsValueFile(t *testing.T) {
	want := map[string]bool{}
	for name := range valueFiles(t) {
		want[goldenFile(name)] = true
	}
	paths, _ := filepath.Glob(filepath.Join(goldenDir, "*"))
	for _, path := range paths {
		if !want[path] {
			t.Errorf("%s belongs to no value file", path)
		}
	}
}
