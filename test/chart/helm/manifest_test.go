// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const rawManifest = "../../../deploy/local-path-storage.yaml"

func rawObjects(t *testing.T) []object {
	t.Helper()
	return documents(t, map[string]string{"raw": readFile(t, rawManifest)})
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, _ := yaml.Marshal(got)
	w, _ := yaml.Marshal(want)
	t.Errorf("%s differs from %s\nchart:\n%s\nmanifest:\n%s", what, rawManifest, g, w)
}

// jsonOf reads config.json of a ConfigMap.
func jsonOf(t *testing.T, configMap object) object {
	t.Helper()
	text, _ := at(configMap, "data", "config.json").(string)
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("config.json: %v\n%s", err, text)
	}
	return out
}

func helperPodOf(t *testing.T, configMap object) object {
	t.Helper()
	text, _ := at(configMap, "data", "helperPod.yaml").(string)
	return parse(t, text)
}

// flagOf gives the value of a flag of the Deployment's command, or another.
func flagOf(objects []object, t *testing.T, name, otherwise string) string {
	command := at(named(t, objects, "Deployment"), "spec", "template", "spec", "containers", 0, "command").([]any)
	for i, word := range command {
		if word == name {
			return command[i+1].(string)
		}
	}
	return otherwise
}

// beside are the roles that a release makes when it is asked for more; components_test.go has them.
var beside = regexp.MustCompile("-(agents|capacity|node-lost)$")

func TestTheRulesOfAllRolesAreThoseOfTheManifest(t *testing.T) {
	raw := rawObjects(t)
	for name, values := range valueFiles(t) {
		rendered := documents(t, render(t, values))
		for _, kind := range []string{"Role", "ClusterRole"} {
			var want []any
			for _, rule := range named(t, raw, kind)["rules"].([]any) {
				needsElection := reflect.DeepEqual(at(rule, "resources"), []any{"leases"})
				if names, ok := at(rule, "resourceNames").([]any); ok { // called as the daemon is told
					lease := strings.ReplaceAll(flagOf(rendered, t, "--provisioner-name", ""), "/", "-")
					if names[0] = flagOf(rendered, t, "--configmap-name", ""); needsElection {
						names[0] = flagOf(rendered, t, "--leader-elect-resource-name", lease)
					}
				}
				if !needsElection || at(values, "leaderElection", "enabled") != false {
					want = append(want, rule)
				}
			}
			var got []any
			for _, o := range rendered { // a lease elsewhere has a role of its own
				if o["kind"] == kind && !beside.MatchString(at(o, "metadata", "name").(string)) {
					got = append(got, o["rules"].([]any)...)
				}
			}
			same(t, name+": "+kind, got, want)
		}
	}
}

func TestWithTheManifestsNamesTheChartMakesTheManifestsObjects(t *testing.T) {
	raw := rawObjects(t)
	got := documents(t, render(t, valueFiles(t)["raw-manifest"]))
	if len(got) != len(raw) {
		t.Errorf("the chart makes %d objects, the manifest %d", len(got), len(raw))
	}
	for _, want := range raw {
		kind := want["kind"].(string)
		o := named(t, got, kind)
		if kind != "Role" && kind != "RoleBinding" && kind != "ClusterRole" &&
			kind != "ClusterRoleBinding" { // these are called after the release
			same(t, kind+" metadata.name", at(o, "metadata", "name"), at(want, "metadata", "name"))
		}
		same(t, kind+" namespace", at(o, "metadata", "namespace"), at(want, "metadata", "namespace"))
		switch kind {
		case "ConfigMap":
			same(t, "config.json", jsonOf(t, o), jsonOf(t, want))
			same(t, "helperPod.yaml", helperPodOf(t, o), helperPodOf(t, want))
			same(t, "setup", at(o, "data", "setup"), at(want, "data", "setup"))
			same(t, "teardown", at(o, "data", "teardown"), at(want, "data", "teardown"))
		case "Deployment":
			sameDeployment(t, o, want)
		default:
			for key, value := range want {
				if key != "metadata" && key != "roleRef" {
					same(t, kind+" "+key, o[key], value)
				}
			}
		}
		if kind == "Namespace" {
			for key, value := range at(want, "metadata", "labels").(object) {
				same(t, "Namespace label "+key, at(o, "metadata", "labels", key), value)
			}
		}
	}
}

// sameDeployment compares all but labels; the chart's command has flags that say the defaults.
func sameDeployment(t *testing.T, got, want object) {
	t.Helper()
	container := at(got, "spec", "template", "spec", "containers", 0).(object)
	wanted := at(want, "spec", "template", "spec", "containers", 0).(object)
	command := container["command"].([]any)
	common := len(wanted["command"].([]any))
	if len(command) < common {
		t.Fatalf("command %v is too short", command)
	}
	same(t, "command", command[:common], wanted["command"])
	same(t, "flags", command[common:], []any{
		"--service-account-name", "local-path-provisioner-service-account",
		"--provisioner-name", "rancher.io/local-path",
		"--helper-image", "rancher/library-busybox:1.32.1",
		"--configmap-name", "local-path-config"})
	delete(container, "command")
	delete(wanted, "command")
	for _, o := range []object{got, want} {
		delete(at(o, "spec").(object), "selector")
		delete(at(o, "spec", "template").(object), "metadata")
	}
	same(t, "Deployment spec", got["spec"], want["spec"])
}

func TestTheConfigurationIsReadableInEveryRendering(t *testing.T) {
	for name, values := range valueFiles(t) {
		configMap := named(t, documents(t, render(t, values)), "ConfigMap")
		config := jsonOf(t, configMap)
		if len(config) == 0 {
			t.Errorf("%s: config.json is empty", name)
		}
		pod := helperPodOf(t, configMap)
		if image, _ := at(pod, "spec", "containers", 0, "image").(string); image == "" {
			t.Errorf("%s: the helper pod has no image", name)
		}
		for _, script := range []string{"setup", "teardown"} {
			if text, _ := at(configMap, "data", script).(string); !strings.HasPrefix(text, "#!/bin/sh\n") {
				t.Errorf("%s: %s is no script: %q", name, script, text)
			}
		}
	}
}

func TestNoClassPromisesExpansionUnasked(t *testing.T) {
	for name, values := range valueFiles(t) {
		asked := strings.Contains(fmt.Sprint(values), "allowVolumeExpansion:true") ||
			at(values, "quota", "enabled") == true
		for _, o := range documents(t, render(t, values)) {
			if _, promised := o["allowVolumeExpansion"]; promised && !asked {
				t.Errorf("%s: StorageClass %v", name, at(o, "metadata", "name"))
			}
		}
	}
}

func TestTheNetworkPolicyIsThatOfDeploy(t *testing.T) {
	want := named(t, documents(t, map[string]string{
		"raw": readFile(t, "../../../deploy/network-policy.yaml")}), "NetworkPolicy")
	values := parse(t, "networkPolicy: {enabled: true}")
	got := named(t, documents(t, render(t, values)), "NetworkPolicy")
	for _, field := range []string{"policyTypes", "ingress"} {
		same(t, "spec."+field, at(got, "spec", field), at(want, "spec", field))
	}
}
