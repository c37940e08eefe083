// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../../deploy/chart/local-path-provisioner"
	valuesDir = "../values"
	goldenDir = "../golden"
	release   = "lpp"
	namespace = "default"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm's remarks about values that the tests make wrong on purpose
	os.Exit(m.Run())
}

// object is a Kubernetes object, or any map of YAML.
type object = map[string]any

// at follows keys and list indices; nil when there is nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := value.(object)
			value = m[key]
		case int:
			list, _ := value.([]any)
			if key >= len(list) {
				return nil
			}
			value = list[key]
		}
	}
	return value
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// parse reads one YAML document, refusing keys that are given twice.
func parse(t *testing.T, text string) object {
	t.Helper()
	var out object
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("not valid YAML: %v\n%s", err, text)
	}
	return out
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// tryRender gives the text of each template that is not empty, or what Helm would say.
func tryRender(t *testing.T, values object) (map[string]string, error) {
	t.Helper()
	loaded := loadChart(t)
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	options := chartutil.ReleaseOptions{
		Name: release, Namespace: namespace, IsInstall: true, Revision: 1,
	}
	all, err := chartutil.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, text := range files {
		if strings.TrimSpace(text) != "" {
			out[strings.TrimPrefix(name, loaded.Name()+"/templates/")] = text
		}
	}
	return out, nil
}

func render(t *testing.T, values object) map[string]string {
	t.Helper()
	files, err := tryRender(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// documents gives the objects of the rendered files in the order of the file names.
func documents(t *testing.T, files map[string]string) []object {
	t.Helper()
	var names []string
	for name := range files {
		if name != "NOTES.txt" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out []object
	for _, name := range names {
		for _, text := range strings.Split("\n"+files[name], "\n---") {
			if doc := parse(t, text); len(doc) > 0 {
				out = append(out, doc)
			}
		}
	}
	return out
}

// named gives the one object of that kind; of several, the one of that name.
func named(t *testing.T, objects []object, kind string, names ...string) object {
	t.Helper()
	for _, o := range objects {
		if o["kind"] == kind && (len(names) == 0 || at(o, "metadata", "name") == names[0]) {
			return o
		}
	}
	t.Fatalf("no %s %v was rendered", kind, names)
	return nil
}

// objectsText is what `kubectl apply` would get.
func objectsText(t *testing.T, files map[string]string) string {
	t.Helper()
	var out strings.Builder
	for _, doc := range documents(t, files) {
		text, err := yaml.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.String()
}

// valueFiles gives the name (without .yaml) and values of each file; "default" has none.
func valueFiles(t *testing.T) map[string]object {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(valuesDir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no value files: %v", err)
	}
	out := map[string]object{"default": {}}
	for _, path := range paths {
		out[strings.TrimSuffix(filepath.Base(path), ".yaml")] = parse(t, readFile(t, path))
	}
	return out
}
