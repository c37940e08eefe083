// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
)

const (
	chartReadme = chartDir + "/README.md"
	tableBegin  = "<!-- values: begin -->\n"
	tableEnd    = "<!-- values: end -->\n"
)

// What has the fields of Kubernetes is one value.
var ofKubernetes = regexp.MustCompile(`^(health\.[a-z]+Probe|(.*\.)?(resources|affinity))\.`)

var keyLine = regexp.MustCompile(`^( *)([A-Za-z]+):( |$)`)

// commentsOf gives the comment above each key of values.yaml by its dotted path, and all paths in
// the order of the file.
func commentsOf(text string) (map[string]string, []string) {
	comments := map[string]string{}
	var order, path []string
	var comment []string
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "# ---") || trimmed == "" {
			comment = nil
			continue
		}
		if strings.HasPrefix(trimmed, "#") {
			comment = append(comment, strings.TrimPrefix(strings.TrimPrefix(trimmed, "#"), " "))
			continue
		}
		match := keyLine.FindStringSubmatch(line)
		if match != nil && len(match[1])/2 <= len(path) { // else it is in an item of a list
			path = append(path[:len(match[1])/2:len(match[1])/2], match[2])
			dotted := strings.Join(path, ".")
			order = append(order, dotted)
			comments[dotted] = strings.Join(comment, " ")
		}
		comment = nil
	}
	return comments, order
}

// valuesTable is a line for each value of the schema: its name, default and comment in values.yaml. The
// first value of a group has the comment of the group too.
func valuesTable(t *testing.T) string {
	t.Helper()
	text := readFile(t, chartDir+"/values.yaml")
	values := parse(t, text)
	comments, order := commentsOf(text)
	place := map[string]int{}
	for i, path := range order {
		place[path] = i + 1
	}
	var paths []string
	listed := map[string]bool{}
	for path := range readSchema(t).leaves {
		if strings.HasPrefix(path, "storageClassConfigs.") {
			path = "storageClassConfigs"
		} else if match := ofKubernetes.FindString(path); match != "" {
			path = strings.TrimSuffix(match, ".")
		}
		if !listed[path] {
			listed[path] = true
			paths = append(paths, path)
		}
	}
	nearest := func(path string) int {
		for ; path != ""; path, _ = cutLast(path) {
			if place[path] > 0 {
				return place[path]
			}
		}
		return 0
	}
	sort.Slice(paths, func(i, j int) bool {
		if a, b := nearest(paths[i]), nearest(paths[j]); a != b {
			return a < b
		}
		return paths[i] < paths[j]
	})
	var out strings.Builder
	out.WriteString("| Value | Default | |\n|---|---|---|\n")
	said := map[string]bool{}
	for _, path := range paths {
		var value any = values
		for _, step := range strings.Split(path, ".") {
			value = at(value, step)
		}
		what := comments[path]
		for above, _ := cutLast(path); above != "" && !said[above]; above, _ = cutLast(above) {
			said[above] = true
			what = strings.TrimSpace(comments[above] + " " + what)
		}
		shown := ""
		if value != nil && value != "" {
			data, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			shown = "`" + strings.ReplaceAll(string(data), "|", `\|`) + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", path, shown, cell(what))
	}
	return out.String()
}

func cutLast(path string) (string, string) {
	i := strings.LastIndex(path, ".")
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// cell is text that means the same in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "{{", "`{{`", "}}", "`}}`").Replace(text)
}

func TestTheTableOfValuesIsThatOfTheSchemaAndTheValuesFile(t *testing.T) {
	readme := readFile(t, chartReadme)
	before, rest, begins := strings.Cut(readme, tableBegin)
	table, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no marks for the table", chartReadme)
	}
	want := valuesTable(t)
	if *update {
		if err := os.WriteFile(chartReadme, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the table of %s is old; run.sh --update writes it:\n%s", chartReadme, firstDifference(table, want))
	}
}

func TestCommentsBelongToTheKeyBelowThem(t *testing.T) {
	comments, order := commentsOf("# file\n\n# one\n# two\na:\n  # three\n  b: 1\n  c: 2\nd: 3 # no\n")
	want := map[string]string{"a": "one two", "a.b": "three", "a.c": "", "d": ""}
	for path, comment := range want {
		if comments[path] != comment {
			t.Errorf("%s: %q", path, comments[path])
		}
	}
	if strings.Join(order, " ") != "a a.b a.c d" {
		t.Errorf("order: %v", order)
	}
}
