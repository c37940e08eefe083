// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// set puts a value at a dotted path into a copy of values.
func set(t *testing.T, values object, path string, value any) object {
	t.Helper()
	out := object{}
	if values != nil {
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
	}
	steps := strings.Split(path, ".")
	place := out
	for _, step := range steps[:len(steps)-1] {
		next, ok := place[step].(object)
		if !ok {
			next = object{}
			place[step] = next
		}
		place = next
	}
	place[steps[len(steps)-1]] = value
	return out
}

// ofParents are values that a chart which depends on this one may hand down.
var ofParents = object{"global": object{"imageRegistry": "registry.example.com"}, "enabled": true}

// schema knows the values of values.schema.json by their dotted paths; "*" stands for any key.
type schema struct {
	leaves  map[string]object
	objects []string // places with a fixed set of keys
}

func readSchema(t *testing.T) schema {
	t.Helper()
	root := parse(t, readFile(t, chartDir+"/values.schema.json"))
	out := schema{leaves: map[string]object{}}
	var walk func(node object, path string)
	walk = func(node object, path string) {
		if ref, ok := node["$ref"].(string); ok {
			node = at(root, "definitions", strings.TrimPrefix(ref, "#/definitions/")).(object)
		}
		join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
		if properties, ok := node["properties"].(object); ok {
			out.objects = append(out.objects, path)
			for key, child := range properties {
				if _, parents := ofParents[join(key)]; !parents {
					walk(child.(object), join(key))
				}
			}
			return
		}
		if any, ok := node["additionalProperties"].(object); ok && any["properties"] != nil {
			walk(any, join("*"))
			return
		}
		out.leaves[path] = node
	}
	walk(root, "")
	return out
}

type effect struct {
	Value   string `json:"value"`
	Set     any    `json:"set"`
	With    object `json:"with"`
	Without object `json:"without"`
	Refused string `json:"refused"`
}

func TestEveryValueHasAnEffect(t *testing.T) {
	var effects []effect
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "../effects.yaml")), &effects); err != nil {
		t.Fatal(err)
	}
	untried := readSchema(t).leaves
	for _, e := range effects {
		delete(untried, strings.Replace(e.Value, "storageClassConfigs.x.", "storageClassConfigs.*.", 1))
		with := set(t, e.With, e.Value, e.Set)
		if e.Refused != "" {
			if _, err := tryRender(t, with); err == nil || !strings.Contains(err.Error(), e.Refused) {
				t.Errorf("%s: %v must be refused with %q, got: %v", e.Value, e.Set, e.Refused, err)
			}
			continue
		}
		before := e.With
		if e.Without != nil {
			before = e.Without
		}
		if objectsText(t, render(t, before)) == objectsText(t, render(t, with)) {
			t.Errorf("%s: %v changes nothing", e.Value, e.Set)
		}
	}
	for path := range untried {
		t.Errorf("%s is in values.schema.json and not in effects.yaml", path)
	}
}

func TestValuesOfAParentChartChangeNothing(t *testing.T) {
	if objectsText(t, render(t, ofParents)) != objectsText(t, render(t, nil)) {
		t.Error("they have an effect")
	}
}

// Every value of the chart of rancher/local-path-provisioner v0.0.37.
func TestValuesOfTheFormerChartAreKnown(t *testing.T) {
	var former []string
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "../former-values.yaml")), &former); err != nil {
		t.Fatal(err)
	}
	known := readSchema(t)
	for _, path := range former {
		if _, ok := known.leaves[path]; !ok && !slices.Contains(known.objects, path) {
			t.Errorf("%s is not in values.schema.json", path)
		}
	}
}

func TestWrongTypesAreRefusedForEveryValue(t *testing.T) {
	for path := range readSchema(t).leaves {
		place := strings.Replace(path, "*", "x", 1)
		_, err := tryRender(t, set(t, nil, place, []any{[]any{}}))
		if err == nil || !strings.Contains(err.Error(), "schema") {
			t.Errorf("%s: [[]] is not refused by the schema: %v", path, err)
		}
	}
}

func TestUnknownNamesAreRefusedEverywhere(t *testing.T) {
	for _, path := range readSchema(t).objects {
		place := strings.TrimPrefix(strings.Replace(path, "*", "x", 1)+".misspelt", ".")
		_, err := tryRender(t, set(t, nil, place, 1))
		if err == nil || !strings.Contains(err.Error(), "misspelt") {
			t.Errorf("%s is not refused: %v", place, err)
		}
	}
}

func TestValuesThatCannotWorkAreRefusedWithAReason(t *testing.T) {
	var cases []struct {
		Values object `json:"values"`
		Says   string `json:"says"`
	}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "../refused.yaml")), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		_, err := tryRender(t, c.Values)
		if err == nil {
			t.Errorf("%v is accepted", c.Values)
			continue
		}
		// Newer versions of the schema library write /a/b for a.b.
		text := strings.ReplaceAll(err.Error(), "/", ".")
		if !strings.Contains(text, strings.ReplaceAll(c.Says, "/", ".")) {
			t.Errorf("%v: the message does not say %q: %v", c.Values, c.Says, err)
		}
	}
}

// The comments in values.yaml are the documentation, so a value must be there to be found.
func TestEveryValueOfTheSchemaIsShownInTheValuesFile(t *testing.T) {
	text := readFile(t, chartDir+"/values.yaml")
	values := parse(t, text)
	for path := range readSchema(t).leaves {
		switch steps := strings.Split(path, "."); {
		case steps[0] == "storageClassConfigs": // said there in words
		case len(steps) == 3 && steps[0] == "health": // fields of Kubernetes
		case strings.HasSuffix(path, "esources."+steps[len(steps)-1]):
		case slices.Contains(steps[:len(steps)-1], "affinity"):
		case steps[0] == "podDisruptionBudget":
			if !strings.Contains(text, " "+steps[1]+":") {
				t.Errorf("%s is not in values.yaml", path)
			}
		default:
			var place any = values
			for _, step := range steps[:len(steps)-1] {
				place = at(place, step)
			}
			keys, _ := place.(object)
			if _, shown := keys[steps[len(steps)-1]]; !shown {
				t.Errorf("%s is not in values.yaml", path)
			}
		}
	}
}
