package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	quotaOverlay = "../../../examples/hard-quota"
	quotaGolden  = "../kustomize/hard-quota.yaml"
)

// kustomized is what `kubectl kustomize FOLDER` prints.
func kustomized(t *testing.T, folder string) string {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func kustomizedObjects(t *testing.T, folder string) []object {
	t.Helper()
	return documents(t, map[string]string{"all": kustomized(t, folder)})
}

// Other tests install it from here.
func TestTheQuotaOverlayIsItsGoldenFile(t *testing.T) {
	got := "# Rendered from examples/hard-quota; run.sh --update writes it anew.\n" + kustomized(t, quotaOverlay)
	if *update {
		if err := os.WriteFile(quotaGolden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := readFile(t, quotaGolden); got != want {
		t.Errorf("%s differs; look at it after run.sh --update:\n%s", quotaGolden, firstDifference(got, want))
	}
}

// Wherever the image was set, below the overlay or in it as docs/sizes.md says.
func TestHelperPodsHaveTheImageThatTheBaseHasSet(t *testing.T) {
	root := t.TempDir()
	for _, part := range []string{"deploy", "examples/hard-quota"} {
		if err := os.CopyFS(filepath.Join(root, part), os.DirFS("../../../"+part)); err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Join(root, "deploy/kustomization.yaml")
	text := strings.Replace(readFile(t, base), "newTag: v0.1.0", "newName: registry.example.com/a\n    newTag: v2", 1)
	if err := os.WriteFile(base, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	container := at(named(t, kustomizedObjects(t, filepath.Join(root, "examples/hard-quota")), "Deployment"),
		"spec", "template", "spec", "containers", 0)
	same(t, "image", at(container, "image"), "registry.example.com/a:v2")
	same(t, "HELPER_IMAGE", environmentOf(container)["HELPER_IMAGE"], "registry.example.com/a:v2")
}

func environmentOf(container any) map[string]any {
	out := map[string]any{}
	for _, variable := range at(container, "env").([]any) {
		out[at(variable, "name").(string)] = at(variable, "value")
	}
	return out
}

func TestWithQuotaTheChartMakesTheObjectsOfTheOverlay(t *testing.T) {
	values := valueFiles(t)["raw-manifest"]
	values = set(t, values, "quota.enabled", true)
	got := documents(t, render(t, values))
	want := kustomizedObjects(t, quotaOverlay)
	if len(got) != len(want) {
		t.Errorf("the chart makes %d objects, the overlay %d", len(got), len(want))
	}
	ours, theirs := named(t, got, "ConfigMap"), named(t, want, "ConfigMap")
	same(t, "config.json", jsonOf(t, ours), jsonOf(t, theirs))
	pod := helperPodOf(t, ours)
	container := at(pod, "spec", "containers", 0).(object)
	same(t, "image of helper pods", container["image"],
		at(named(t, want, "Deployment"), "spec", "template", "spec", "containers", 0, "image"))
	delete(container, "image") // the overlay's comes by HELPER_IMAGE
	same(t, "helperPod.yaml", pod, helperPodOf(t, theirs))
	command := at(named(t, got, "Deployment"), "spec", "template", "spec", "containers", 0, "command").([]any)
	unsafe := false
	for _, word := range command {
		unsafe = unsafe || word == "--allow-unsafe-helper-pod-template"
	}
	if !unsafe {
		t.Errorf("the template would be refused: %v", command)
	}
	for _, name := range []string{"local-path", "local-path-quota"} {
		ours, theirs := named(t, got, "StorageClass", name), named(t, want, "StorageClass", name)
		for key, value := range theirs {
			if key != "metadata" {
				same(t, name+" "+key, ours[key], value)
			}
		}
	}
}
