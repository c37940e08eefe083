// Command gotemplate writes cases.json: patterns with the result that Go's text/template gives, for
// the unit test of the C++ engine. Run it here after a change: go run . > cases.json
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
	"regexp"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"gotemplate/config"
	v1 "gotemplate/v1"
)

type result struct {
	Data    string `json:"data"`
	Pattern string `json:"pattern"`
	// Result of Go; nil when it is an error.
	Output *string `json:"output,omitempty"`
	// The error's place ("line" or "line:column", column from 0) and the text after it.
	Place string `json:"place,omitempty"`
	Error string `json:"error,omitempty"`
	// Refused says that we answer with an error of our own on purpose.
	Refused bool `json:"refused,omitempty"`
}

func data() map[string]config.PatternData {
	created := v1.Time{Time: time.Date(2026, 5, 28, 20, 26, 40, 0, time.UTC)}
	return map[string]config.PatternData{
		"full": {
			PVName: "pvc-0b5d4f0c-1111-2222-3333-444455556666",
			PVC: v1.ObjectMeta{
				Name:              "data-web-0",
				GenerateName:      "data-",
				Namespace:         "team-a",
				UID:               "0b5d4f0c-1111-2222-3333-444455556666",
				ResourceVersion:   "123",
				Generation:        7,
				CreationTimestamp: created,
				Labels: map[string]string{
					"app": "web", "tier": "front end", "zone": "z1", "example.com/zone": "z2", "empty": "",
				},
				Annotations: map[string]string{
					"path": "x/y", "owner": "1000", "quoted": "a\"b<c>&'d'=\\e\n", "unicode": "ümlaut ☃",
					"percent": "%d%%", "empty": "", "zero": "0",
				},
				OwnerReferences: []v1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "5c1e"},
					{APIVersion: "example.com/v1", Kind: "Backup", Name: "nightly", UID: "77aa"},
				},
				Finalizers: []string{"kubernetes.io/pvc-protection", "b"},
			},
		},
		"bare": {PVName: "pvc-1", PVC: v1.ObjectMeta{Name: "a", Namespace: "b", UID: "u", CreationTimestamp: created}},
	}
}

var place = regexp.MustCompile(`^template: p:(\d+(?::\d+)?): (?s:(.*))$`)

// What Go prints for a label or annotation that is missing.
var noValue = regexp.MustCompile(`no.value|<nil>`)

func run(name string, d config.PatternData, c pattern) result {
	r := result{Data: name, Pattern: c.text, Refused: c.refused}
	if c.refused {
		return r
	}
	var out bytes.Buffer
	t, err := template.New("p").Parse(c.text)
	if err == nil {
		err = t.Execute(&out, d)
	}
	if err == nil {
		text := out.String()
		if noValue.MatchString(text) && t.Option("missingkey=error").Execute(&out, d) != nil {
			r.Refused = true
			return r
		}
		if !utf8.ValidString(text) {
			log.Fatalf("%s: result is not UTF-8", c.text)
		}
		r.Output = &text
		return r
	}
	m := place.FindStringSubmatch(err.Error())
	if m == nil {
		log.Fatalf("%s: unexpected error: %v", c.text, err)
	}
	r.Place = m[1]
	r.Error = strings.TrimPrefix(m[2], `executing "p" `)
	return r
}

func main() {
	all := data()
	var results []result
	for _, c := range patterns() {
		results = append(results, run("full", all["full"], c))
		if c.bare {
			results = append(results, run("bare", all["bare"], c))
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(results); err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(out.Bytes()); err != nil {
		log.Fatal(err)
	}
}
