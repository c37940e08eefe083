// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	quotaOverlay         = "../../../examples/hard-quota"
	agentsOverlay        = "../../../examples/node-agents"
	limitedAgentsOverlay = "../../../examples/node-agents-with-limits"
	spaceOverlay         = "../../../examples/free-space"
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

// Other tests install them from here. That of quota stands there as it is, each other one by what it has
// other than that.
func TestOverlaysAreTheirGoldenFiles(t *testing.T) {
	const folder = "../kustomize"
	usual := kustomized(t, quotaOverlay)
	isGolden(t, filepath.Join(folder, "hard-quota.yaml"), "examples/hard-quota", usual)
	for _, overlay := range []string{agentsOverlay, limitedAgentsOverlay, spaceOverlay} {
		name := filepath.Base(overlay)
		isGolden(t, filepath.Join(folder, name+".diff"), "examples/"+name,
			difference(t, "hard-quota", usual, kustomized(t, overlay)))
	}
}

// But for names, which begin with that of the release.
func TestWithAgentsTheChartMakesTheObjectsOfTheOverlay(t *testing.T) {
	values := set(t, valueFiles(t)["raw-manifest"], "agents.enabled", true)
	got := documents(t, render(t, values))
	want := kustomizedObjects(t, agentsOverlay)
	if len(got) != len(want) {
		t.Errorf("the chart makes %d objects, the overlay %d", len(got), len(want))
	}
	ours, theirs := named(t, got, "DaemonSet"), named(t, want, "DaemonSet")
	same(t, "updateStrategy", at(ours, "spec", "updateStrategy"), at(theirs, "spec", "updateStrategy"))
	pod, other := at(ours, "spec", "template", "spec").(object), at(theirs, "spec", "template", "spec").(object)
	for _, key := range []string{"securityContext", "priorityClassName", "tolerations", "nodeSelector",
		"automountServiceAccountToken", "terminationGracePeriodSeconds", "enableServiceLinks"} {
		same(t, key, pod[key], other[key])
	}
	container, its := at(pod, "containers", 0).(object), at(other, "containers", 0).(object)
	for _, key := range []string{"securityContext", "resources"} {
		same(t, key, container[key], its[key])
	}
	mounts := func(container object) map[any]any {
		out := map[any]any{}
		for _, mount := range container["volumeMounts"].([]any) {
			out[at(mount, "mountPath")] = at(mount, "mountPropagation")
		}
		return out
	}
	same(t, "mounts", mounts(container), mounts(its))
	token := func(pod object) any {
		for _, volume := range pod["volumes"].([]any) {
			if at(volume, "name") == "token" {
				return at(volume, "projected")
			}
		}
		return nil
	}
	same(t, "token", token(pod), token(other))
	sameGrants(t, got, want)
	for _, objects := range [][]object{got, want} {
		deployment := named(t, objects, "Deployment")
		service := named(t, objects, "Service")
		labels := at(deployment, "spec", "template", "metadata", "labels").(object)
		for key, value := range at(service, "spec", "selector").(object) {
			same(t, "selector "+key, labels[key], value)
		}
		has := false
		for _, port := range at(deployment, "spec", "template", "spec", "containers", 0, "ports").([]any) {
			has = has || at(port, "name") == at(service, "spec", "ports", 0, "targetPort")
		}
		if !has {
			t.Errorf("the Deployment has no port of the name that its Service asks for")
		}
	}
}

// The agents too: they are the same program.
func TestAgentsHaveTheImageThatTheBaseHasSet(t *testing.T) {
	for _, overlay := range []string{"examples/node-agents", "examples/node-agents-with-limits"} {
		objects := kustomizedObjects(t, overlayOfAnotherImage(t, overlay))
		image := at(named(t, objects, "DaemonSet"), "spec", "template", "spec", "containers", 0, "image")
		same(t, overlay+": image", image, "registry.example.com/a:v2")
	}
}

// What limits take on top of agents: the capability, and all that deploy/quota brings.
func TestAgentsMaySetLimitsOnlyWhereThereAreSome(t *testing.T) {
	capabilities := func(objects []object) any {
		return at(named(t, objects, "DaemonSet"), "spec", "template", "spec", "containers", 0, "securityContext",
			"capabilities", "add")
	}
	plain, limited := kustomizedObjects(t, agentsOverlay), kustomizedObjects(t, limitedAgentsOverlay)
	without := capabilities(plain).([]any)
	if slices.Contains(without, any("SYS_ADMIN")) {
		t.Errorf("agents without limits have SYS_ADMIN: %v", without)
	}
	same(t, "capabilities", capabilities(limited), append(slices.Clone(without), "SYS_ADMIN"))
	values := set(t, set(t, valueFiles(t)["raw-manifest"], "quota.enabled", true), "agents.enabled", true)
	ofChart := documents(t, render(t, values))
	same(t, "capabilities of the chart", capabilities(ofChart), capabilities(limited))
	quota := kustomizedObjects(t, quotaOverlay)
	same(t, "configuration", named(t, limited, "ConfigMap")["data"], named(t, quota, "ConfigMap")["data"])
	same(t, "class", named(t, limited, "StorageClass", "local-path-quota"),
		named(t, quota, "StorageClass", "local-path-quota"))
}

// overlayOfAnotherImage is a copy of the overlay, on a base whose image is registry.example.com/a:v2.
func overlayOfAnotherImage(t *testing.T, overlay string) string {
	t.Helper()
	root := t.TempDir()
	for _, part := range []string{"deploy", overlay} {
		if err := os.CopyFS(filepath.Join(root, part), os.DirFS("../../../"+part)); err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Join(root, "deploy/kustomization.yaml")
	text := strings.Replace(readFile(t, base), "newTag: v0.1.0", "newName: registry.example.com/a\n    newTag: v2", 1)
	if err := os.WriteFile(base, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, overlay)
}

// Wherever the image was set, below the overlay or in it as docs/sizes.md says.
func TestHelperPodsHaveTheImageThatTheBaseHasSet(t *testing.T) {
	container := at(named(t, kustomizedObjects(t, overlayOfAnotherImage(t, "examples/hard-quota")), "Deployment"),
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

// blockOf is the one block of the page in that language that has all of these words.
func blockOf(t *testing.T, page, language string, words ...string) string {
	t.Helper()
	var found []string
	for _, block := range fenced.FindAllStringSubmatch(readFile(t, page), -1) {
		missing := slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(block[2], word) })
		if block[1] == language && !missing {
			found = append(found, block[2])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d blocks with %q", page, len(found), words)
	}
	return found[0]
}

// The overlays that the docs print patch config.json as a whole, and patches come after components: with
// the text of docs/sizes.md the helper pods of deploy/quota keep their commands.
func TestAPatchOfConfigJsonKeepsTheCommandsOfQuotaAsThePageSays(t *testing.T) {
	const sizes = "../../../docs/sizes.md"
	config := blockOf(t, sizes, "json", "nodePathMap", "Command")
	want := jsonOf(t, named(t, kustomizedObjects(t, quotaOverlay), "ConfigMap"))
	for _, page := range []string{"../../../docs/install.md", "../../../docs/migrating.md"} {
		overlay := parse(t, blockOf(t, page, "yaml", "kind: Kustomization", "config.json"))
		overlay["components"] = []any{"deploy/quota"}
		for _, one := range overlay["patches"].([]any) {
			patch := parse(t, one.(object)["patch"].(string))
			if patch["kind"] == "ConfigMap" {
				patch["data"].(object)["config.json"] = config
			}
			text, err := yaml.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			one.(object)["patch"] = string(text)
		}
		text, err := yaml.Marshal(overlay)
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		if err := os.CopyFS(filepath.Join(root, "deploy"), os.DirFS("../../../deploy")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "kustomization.yaml"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		objects := kustomizedObjects(t, root)
		got := jsonOf(t, named(t, objects, "ConfigMap"))
		same(t, page+": paths", at(got, "nodePathMap", 0, "paths"), []any{"/mnt/disks"})
		for _, command := range []string{"setupCommand", "teardownCommand", "resizeCommand"} {
			same(t, page+": "+command, got[command], want[command])
		}
		named(t, objects, "StorageClass", "local-path-quota")
	}
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
