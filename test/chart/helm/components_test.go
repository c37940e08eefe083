// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// grants lists each rule that a binding gives to an account: where it holds, whose it is, and the rule
// itself. Names of roles and bindings are not in it. A binding of a role that is not there is an error.
func grants(t *testing.T, objects []object) []string {
	t.Helper()
	roles := map[string]object{}
	id := func(kind, namespace, name any) string { return fmt.Sprint(kind, namespace, name) }
	for _, o := range objects {
		if o["kind"] == "Role" || o["kind"] == "ClusterRole" {
			roles[id(o["kind"], at(o, "metadata", "namespace"), at(o, "metadata", "name"))] = o
		}
	}
	unbound := maps.Clone(roles)
	var out []string
	for _, o := range objects {
		if o["kind"] != "RoleBinding" && o["kind"] != "ClusterRoleBinding" {
			continue
		}
		namespace := at(o, "metadata", "namespace")
		of := namespace
		if at(o, "roleRef", "kind") == "ClusterRole" {
			of = nil
		}
		key := id(at(o, "roleRef", "kind"), of, at(o, "roleRef", "name"))
		role, found := roles[key]
		if !found {
			t.Errorf("%v %v names a role that is not there", o["kind"], at(o, "metadata", "name"))
			continue
		}
		delete(unbound, key)
		for _, subject := range o["subjects"].([]any) {
			for _, rule := range role["rules"].([]any) {
				text, err := yaml.Marshal(rule)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, fmt.Sprintf("namespace %v, %v %v/%v:\n%s", namespace, at(subject, "kind"),
					at(subject, "namespace"), at(subject, "name"), text))
			}
		}
	}
	for key := range unbound {
		t.Errorf("nothing binds the role %s", key)
	}
	slices.Sort(out)
	return out
}

// sameGrants compares what accounts may do, rule by rule. The values give the release the names of the
// manifest.
func sameGrants(t *testing.T, got, want []object) {
	t.Helper()
	ours, theirs := grants(t, got), grants(t, want)
	if len(theirs) == 0 {
		t.Error("the overlay grants nothing")
	}
	for _, rule := range theirs {
		if !slices.Contains(ours, rule) {
			t.Errorf("only the overlay has: %s", rule)
		}
	}
	for _, rule := range ours {
		if !slices.Contains(theirs, rule) {
			t.Errorf("only the chart has: %s", rule)
		}
	}
	if len(ours) != len(theirs) {
		t.Errorf("the chart grants %d rules, the overlay %d", len(ours), len(theirs))
	}
}

func TestARuleThatDiffersIsNoticed(t *testing.T) {
	want := rawObjects(t)
	for _, change := range []func([]any){
		func(rules []any) { rules[0].(object)["verbs"] = []any{"list"} },
		func(rules []any) { rules[0].(object)["resourceNames"] = []any{"one"} },
	} {
		got := rawObjects(t)
		change(named(t, got, "ClusterRole")["rules"].([]any))
		if slices.Equal(grants(t, got), grants(t, want)) {
			t.Error("it is not")
		}
	}
}

// sameClass compares all but names of labels and annotations.
func sameClass(t *testing.T, got, want []object, name string) {
	t.Helper()
	ours, theirs := named(t, got, "StorageClass", name), named(t, want, "StorageClass", name)
	for _, class := range []object{ours, theirs} {
		delete(class, "metadata")
	}
	same(t, "StorageClass "+name, ours, theirs)
}

func TestWithCapacityTheChartMakesTheObjectsOfTheOverlay(t *testing.T) {
	values := set(t, valueFiles(t)["raw-manifest"], "quota.enabled", true)
	got := documents(t, render(t, set(t, values, "capacity.enabled", true)))
	want := kustomizedObjects(t, spaceOverlay)
	if len(got) != len(want) {
		t.Errorf("the chart makes %d objects, the overlay %d", len(got), len(want))
	}
	sameGrants(t, got, want)
	for _, name := range []string{"local-path", "local-path-quota", "local-path-capacity"} {
		sameClass(t, got, want, name)
	}
	container := at(named(t, want, "Deployment"), "spec", "template", "spec", "containers", 0)
	same(t, "second name", flagOf(got, t, "--capacity-provisioner-name", ""),
		environmentOf(container)["CAPACITY_PROVISIONER_NAME"])
}

func TestTheNameOfTheCSIDriverIsTheSameWhereverItIsSaid(t *testing.T) {
	for name, values := range valueFiles(t) {
		if at(values, "capacity", "enabled") != true {
			continue
		}
		objects := documents(t, render(t, values))
		driver := flagOf(objects, t, "--capacity-provisioner-name", "")
		class := named(t, objects, "StorageClass", at(values, "capacity", "storageClass", "name").(string))
		same(t, name+": provisioner", class["provisioner"], driver)
		found := false
		for _, grant := range grants(t, objects) {
			found = found || strings.Contains(grant, "csidrivers") &&
				strings.Contains(grant, "resourceNames:\n- "+driver+"\n")
		}
		if !found {
			t.Errorf("%s: no rule for the CSIDriver %s", name, driver)
		}
	}
}

func TestWithNodeLostTheChartGrantsWhatTheManifestDoes(t *testing.T) {
	values := set(t, valueFiles(t)["raw-manifest"], "nodeLost.enabled", true)
	want := append(rawObjects(t), documents(t, map[string]string{
		"node-lost": readFile(t, "../../../deploy/node-lost.yaml")})...)
	sameGrants(t, documents(t, render(t, values)), want)
}

func TestRolesBesideAreMadeOnlyWithRBACAndWhenAskedFor(t *testing.T) {
	values := parse(t, "{agents: {enabled: true}, capacity: {enabled: true}, nodeLost: {enabled: true}, "+
		"rbac: {create: false}}")
	for _, o := range documents(t, render(t, values)) {
		if strings.Contains(o["kind"].(string), "Role") {
			t.Errorf("%v %v is made without rbac.create", o["kind"], at(o, "metadata", "name"))
		}
	}
	for _, grant := range grants(t, documents(t, render(t, nil))) {
		if strings.Contains(grant, "csi") || strings.Contains(grant, "tokenreviews") ||
			strings.Contains(grant, "persistentvolumeclaims\n  verbs:\n  - delete") {
			t.Errorf("granted without being asked for: %s", grant)
		}
	}
}
