// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"encoding/json"
	"reflect"
	"testing"
)

const policyFile = "../../../deploy/admission-policy.yaml"

// policyOf gives the expressions of the variables of a policy, and the namespace that it is bound to.
func policyOf(t *testing.T, objects []object) (map[string]string, any) {
	t.Helper()
	policy := named(t, objects, "ValidatingAdmissionPolicy")
	binding := named(t, objects, "ValidatingAdmissionPolicyBinding")
	if at(binding, "spec", "policyName") != at(policy, "metadata", "name") {
		t.Errorf("the binding names %v, the policy is %v", at(binding, "spec", "policyName"),
			at(policy, "metadata", "name"))
	}
	variables := map[string]string{}
	for _, v := range at(policy, "spec", "variables").([]any) {
		variables[at(v, "name").(string)] = at(v, "expression").(string)
	}
	return variables, at(binding, "spec", "matchResources", "namespaceSelector", "matchLabels",
		"kubernetes.io/metadata.name")
}

// basePathsOf reads the paths of config.json, whatever the class.
func basePathsOf(t *testing.T, value any, out map[string]bool) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			basePathsOf(t, item, out)
		}
	case object:
		for key, item := range v {
			switch paths := item.(type) {
			case string:
				if key == "sharedFileSystemPath" && paths != "" {
					out[paths] = true
				}
			case []any:
				if key == "paths" {
					for _, path := range paths {
						out[path.(string)] = true
					}
					continue
				}
				basePathsOf(t, item, out)
			default:
				basePathsOf(t, item, out)
			}
		}
	}
}

func listOf(t *testing.T, expression string) map[string]bool {
	t.Helper()
	var paths []string
	if err := json.Unmarshal([]byte(expression), &paths); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	out := map[string]bool{}
	for _, path := range paths {
		out[path] = true
	}
	return out
}

func TestTheAdmissionPolicyAllowsTheConfiguredPathsInTheNamespaceOfTheHelperPods(t *testing.T) {
	for name, values := range valueFiles(t) {
		values = set(t, values, "admissionPolicy.enabled", true)
		extra, _ := at(values, "admissionPolicy", "extraPaths").([]any)
		objects := documents(t, render(t, values))
		variables, namespace := policyOf(t, objects)
		configMap := named(t, objects, "ConfigMap")
		want := map[string]bool{}
		basePathsOf(t, jsonOf(t, configMap), want)
		if len(want) == 0 {
			t.Errorf("%s: no paths in config.json", name)
		}
		if len(extra) > 0 {
			want["/mnt/old"] = true // written with a slash at its end
		}
		if got := listOf(t, variables["basePaths"]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the policy allows %v, config.json has %v", name, got, want)
		}
		if want := at(configMap, "metadata", "namespace"); namespace != want {
			t.Errorf("%s: the policy is for namespace %v, helper pods run in %v", name, namespace, want)
		}
		nested := false
		for _, o := range objects {
			nested = nested || at(o, "parameters", "pathPattern") != nil
		}
		if (variables["pathPatterns"] == "true") != nested {
			t.Errorf("%s: pathPatterns is %v", name, variables["pathPatterns"])
		}
	}
}

func TestTheAdmissionPolicyOfTheManifestIsForItsPathsAndNamespace(t *testing.T) {
	variables, namespace := policyOf(t, documents(t, map[string]string{"raw": readFile(t, policyFile)}))
	configMap := named(t, rawObjects(t), "ConfigMap")
	want := map[string]bool{}
	basePathsOf(t, jsonOf(t, configMap), want)
	for path := range want {
		if variables["basePaths"] != "['"+path+"']" || len(want) != 1 {
			t.Errorf("the policy allows %v, config.json has %v", variables["basePaths"], want)
		}
	}
	if namespace != at(configMap, "metadata", "namespace") {
		t.Errorf("the policy is for namespace %v", namespace)
	}
}
