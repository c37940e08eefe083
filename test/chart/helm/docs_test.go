// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	ofCommand = regexp.MustCompile(`--set(?: |=)(?:'([^']+)'|([^\s` + "`" + `'\\]+))`)
	inlineSet = regexp.MustCompile("`(--set [^`]+)`(?:,\\s+together\\s+with\\s+`([^`]+)`)?")
	fenced    = regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```")
)

// pagesOf gives the text of each page for people by its file.
func pagesOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	pages := map[string]string{}
	for _, file := range append(files, "../../../README.md", filepath.Join(chartDir, "README.md")) {
		pages[file] = readFile(t, file)
	}
	return pages
}

// helmArguments gives the --set of each command of the page: of a block, over lines that go on, and
// those that a sentence names.
func helmArguments(page string) []string {
	var out []string
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		for _, line := range strings.Split(strings.ReplaceAll(block[2], "\\\n", " "), "\n") {
			if strings.Contains(line, "helm ") && strings.Contains(line, "--set") {
				out = append(out, line)
			}
		}
	}
	for _, inline := range inlineSet.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		if inline[2] != "" {
			inline[1] += " --set " + inline[2] + "=true"
		}
		out = append(out, inline[1])
	}
	return out
}

// withArguments renders the chart as Helm would with these arguments.
func withArguments(t *testing.T, where, arguments string) map[string]string {
	t.Helper()
	values := object{}
	for _, set := range ofCommand.FindAllStringSubmatch(arguments, -1) {
		if err := strvals.ParseInto(set[1]+set[2], values); err != nil {
			t.Fatalf("%s: %s: %v", where, arguments, err)
		}
	}
	files, err := tryRender(t, values)
	if err != nil {
		t.Fatalf("%s: %s: %v", where, arguments, err)
	}
	return files
}

func TestEveryHelmCommandOfTheDocsRendersAndChangesSomething(t *testing.T) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	byDefault := objectsText(t, render(t, nil))
	seen := 0
	for where, page := range pagesOf(t) {
		for _, arguments := range helmArguments(page) {
			text := objectsText(t, withArguments(t, where, arguments))
			if text == byDefault {
				t.Errorf("%s: %s changes nothing", where, arguments)
			}
			for _, one := range strings.Split(text, "---\n")[1:] {
				if _, _, err := strict.Decode([]byte(one), nil, nil); err != nil {
					t.Errorf("%s: %s: %v\n%s", where, arguments, err, one)
				}
			}
			seen++
		}
	}
	if seen < 7 {
		t.Errorf("only %d commands were looked at", seen)
	}
}

// What docs/sizes.md says of the command that turns limits on.
func TestTheHelmCommandOfThePageTurnsLimitsOn(t *testing.T) {
	const page = "../../../docs/sizes.md"
	arguments := helmArguments(readFile(t, page))
	if len(arguments) != 1 {
		t.Fatalf("%s has not the one command: %q", page, arguments)
	}
	objects := documents(t, withArguments(t, page, arguments[0]))
	class := named(t, objects, "StorageClass", "local-path-quota")
	same(t, "quota", at(class, "parameters", "quota"), "hard")
	same(t, "allowVolumeExpansion", class["allowVolumeExpansion"], true)
	configMap := named(t, objects, "ConfigMap")
	config := jsonOf(t, configMap)
	for _, command := range []string{"setupCommand", "teardownCommand", "resizeCommand"} {
		same(t, command, config[command], "/usr/bin/local-path-node")
	}
	capabilities, _ := at(helperPodOf(t, configMap), "spec", "containers", 0, "securityContext",
		"capabilities", "add").([]any)
	for _, one := range capabilities {
		if !strings.Contains(readFile(t, page), "| `"+one.(string)+"` |") {
			t.Errorf("the page does not say what %v is for", one)
		}
	}
	if !slices.Contains(capabilities, any("SYS_ADMIN")) {
		t.Errorf("helper pods cannot set limits: %v", capabilities)
	}
}

// In the namespace of the manifest, with no field that Kubernetes does not know; that it is enough
// shows test/integration/story_commands_test.cpp.
func TestTheRoleOfThePageIsWhatVolumesAsksFor(t *testing.T) {
	const page = "../../../docs/sizes.md"
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	var role object
	for _, block := range fenced.FindAllStringSubmatch(readFile(t, page), -1) {
		if block[1] != "yaml" || !strings.Contains(block[2], "kind: Role ") {
			continue
		}
		if _, _, err := strict.Decode([]byte(block[2]), nil, nil); err != nil {
			t.Errorf("%s: %v\n%s", page, err, block[2])
		}
		role = parse(t, block[2])
	}
	if role == nil {
		t.Fatalf("%s has no Role", page)
	}
	same(t, "namespace", at(role, "metadata", "namespace"),
		at(named(t, rawObjects(t), "Deployment"), "metadata", "namespace"))
	// As the command itself says it.
	asked := regexp.MustCompile(`permission to (\w+) (\w+/\w+) in its namespace`)
	help := strings.ReplaceAll(readFile(t, "../../../src/cli/volumes_command.cpp"), "\"", "")
	needs := asked.FindStringSubmatch(strings.Join(strings.Fields(help), " "))
	if needs == nil {
		t.Fatal("the help of volumes does not say which permission it needs")
	}
	same(t, "rules", role["rules"], []any{object{
		"apiGroups": []any{""}, "resources": []any{needs[2]}, "verbs": []any{needs[1]},
	}})
}
