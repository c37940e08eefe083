// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func TestEachValueFileRendersAsItsGoldenFile(t *testing.T) {
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join(goldenDir, name+".yaml")
			got := "# Rendered from values/" + name + ".yaml; run.sh --update writes it anew.\n" +
				objectsText(t, render(t, values))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := readFile(t, golden); got != want {
				t.Errorf("%s differs; look at it after run.sh --update:\n%s", golden,
					firstDifference(got, want))
			}
		})
	}
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
	values := valueFiles(t)
	paths, _ := filepath.Glob(filepath.Join(goldenDir, "*.yaml"))
	for _, path := range paths {
		if _, ok := values[strings.TrimSuffix(filepath.Base(path), ".yaml")]; !ok {
			t.Errorf("%s belongs to no value file", path)
		}
	}
}
