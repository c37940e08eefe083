// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// What `helm lint --strict` says, with every file of values.
func TestHelmLintFindsNothing(t *testing.T) {
	for name, values := range valueFiles(t) {
		for _, message := range lint.AllWithKubeVersion(chartDir, values, namespace, nil).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// files gives all that is applied as it is: the folder deploy/ and the examples.
func files(t *testing.T) map[string][]object {
	t.Helper()
	out := map[string][]object{}
	for _, pattern := range []string{"deploy/*.yaml", "deploy/monitoring/*.yaml", "examples/*.yaml"} {
		paths, err := filepath.Glob("../../../" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files: %s: %v", pattern, err)
		}
		for _, path := range paths {
			if filepath.Base(path) != "kustomization.yaml" {
				out[path] = documents(t, map[string]string{path: readFile(t, path)})
			}
		}
	}
	folders, err := filepath.Glob("../../../examples/*/kustomization.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders of examples: %v", err)
	}
	for _, path := range append(folders, "../../../deploy/kustomization.yaml") {
		out[filepath.Dir(path)] = kustomizedObjects(t, filepath.Dir(path))
	}
	for name, values := range valueFiles(t) {
		out["chart with values "+name] = documents(t, render(t, values))
	}
	return out
}

// No field that Kubernetes does not know, none of the wrong type, none twice.
func TestEveryObjectIsWhatItsTypeOfKubernetesKnows(t *testing.T) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	known := 0
	for name, objects := range files(t) {
		for _, o := range objects {
			switch group, _, _ := strings.Cut(o["apiVersion"].(string), "/"); group {
			case "monitoring.coreos.com", "security.openshift.io":
				continue // of the Prometheus Operator and of OpenShift
			}
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := strict.Decode(text, nil, nil); err != nil {
				t.Errorf("%s: %v %v: %v", name, o["kind"], at(o, "metadata", "name"), err)
			}
			known++
		}
	}
	if known < 100 {
		t.Errorf("only %d objects were looked at", known)
	}
}

var ofInstallations = regexp.MustCompile("/(separate-namespace|openshift|hard-quota|node-agents|node-agents-with-limits|free-space)$")

func TestEveryObjectOfAnInstallationIsLabelled(t *testing.T) {
	for name, objects := range files(t) {
		if strings.Contains(name, "examples/") && !ofInstallations.MatchString(name) {
			continue // objects of users
		}
		for _, o := range objects {
			if name == "chart with values everything" && o["kind"] == "LimitRange" {
				continue // an extra object
			}
			if label, _ := at(o, "metadata", "labels", "app.kubernetes.io/name").(string); label == "" {
				t.Errorf("%s: %v %v has no label app.kubernetes.io/name", name, o["kind"], at(o, "metadata", "name"))
			}
		}
	}
}
