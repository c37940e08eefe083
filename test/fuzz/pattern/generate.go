// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	"gotemplate/config"
	"gotemplate/types"
	v1 "gotemplate/v1"
)

// claim is one claim in both forms.
type claim struct {
	data     config.PatternData
	metadata map[string]any
}

var values = []string{
	"", "web", "0", "1000", "front end", "a\"b<c>&'d'=\\e\n", "ümlaut ☃", "%d%%", "x/y", "../x", "true",
	"\t", "日本", "😀", "-1", "a.b", "ß\u0301", "\u00a0", "0x10", "é\u200b",
}

var keys = []string{"app", "tier", "zone", "example.com/zone", "empty", "owner", "n-1", "é"}

func pick(r *rand.Rand, list ...string) string { return list[r.Intn(len(list))] }

func randomMap(r *rand.Rand) map[string]string {
	count := r.Intn(6)
	if count == 0 {
		return nil // an API server sends no empty maps
	}
	m := map[string]string{}
	for i := count; i > 0; i-- {
		m[pick(r, keys...)] = pick(r, values...)
	}
	return m
}

func randomClaim(r *rand.Rand) claim {
	meta := v1.ObjectMeta{
		Name:            pick(r, "data-web-0", "a", "x.y"),
		GenerateName:    pick(r, "", "data-"),
		Namespace:       pick(r, "team-a", "b"),
		UID:             types.UID(pick(r, "0b5d4f0c-1111", "u")),
		ResourceVersion: pick(r, "1", "123"),
		Generation:      int64(r.Intn(3)),
		Labels:          randomMap(r),
		Annotations:     randomMap(r),
	}
	meta.CreationTimestamp.Time = time.Date(2000+r.Intn(40), time.Month(1+r.Intn(12)), 1+r.Intn(28),
		r.Intn(24), r.Intn(60), r.Intn(60), 0, time.UTC)
	for i := r.Intn(3); i > 0; i-- {
		meta.Finalizers = append(meta.Finalizers, pick(r, "kubernetes.io/pvc-protection", "b", ""))
	}
	var owners []map[string]any
	for i := r.Intn(3); i > 0; i-- {
		owner := v1.OwnerReference{
			APIVersion: pick(r, "v1", "apps/v1"), Kind: pick(r, "StatefulSet", "Backup"),
			Name: pick(r, "web", "a.b"), UID: types.UID(pick(r, "5c1e", "77aa")),
		}
		meta.OwnerReferences = append(meta.OwnerReferences, owner)
		owners = append(owners, map[string]any{
			"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": owner.UID,
		})
	}
	metadata := map[string]any{
		"name": meta.Name, "namespace": meta.Namespace, "uid": meta.UID,
		"resourceVersion":   meta.ResourceVersion,
		"creationTimestamp": meta.CreationTimestamp.Format(time.RFC3339),
	}
	if meta.Generation != 0 {
		metadata["generation"] = meta.Generation
	}
	if meta.GenerateName != "" {
		metadata["generateName"] = meta.GenerateName
	}
	if meta.Labels != nil {
		metadata["labels"] = meta.Labels
	}
	if meta.Annotations != nil {
		metadata["annotations"] = meta.Annotations
	}
	if meta.Finalizers != nil {
		metadata["finalizers"] = meta.Finalizers
	}
	if owners != nil {
		metadata["ownerReferences"] = owners
	}
	return claim{config.PatternData{PVName: pick(r, "pvc-1", "pvc-0b5d4f0c-1111"), PVC: meta}, metadata}
}

func readCorpus(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	var stored []struct{ Pattern string }
	if err := json.Unmarshal(text, &stored); err != nil {
		log.Fatal(err)
	}
	var corpus []string
	for _, c := range stored {
		corpus = append(corpus, c.Pattern)
	}
	return corpus
}

func randomPattern(r *rand.Rand, corpus []string) string {
	switch r.Intn(4) {
	case 0:
		return mutate(r, corpus[r.Intn(len(corpus))], corpus)
	case 1:
		return mutate(r, newGrammar(r).list(3), corpus)
	default:
		return newGrammar(r).list(3)
	}
}

var tokens = []string{
	"{{", "}}", "{{-", "-}}", "(", ")", "|", ",", ":=", "=", ".", "$", "$x", "$y", "if ", "else ", "end",
	"range ", "with ", "break", "continue", "nil", "true", "\"", "`", "'", "\\", "/*", "*/", " ", "\n", "\t",
	"0", "1", "-", "+", "_", "e", "x", "0x", "1.5", ".PVC", ".Labels", ".Name", "index ", "slice ", "printf ",
	"print ", "len ", "eq ", "and ", "or ", "not ", "html ", "js ", "urlquery ", "call ", "%v", "%q", "%d",
	"%x", "%5s", "%-5d", "%+v", "%#v", "%[1]s", "%*d", "%T", "%t", "%c", "%U", "%", "\xff", "é", "☃", "\x00",
	"\r", "else if ", "else with ", "$größe", "$名1", "\u0663", "{{end}}", "{{else}}", "{{/* c */}}", "template ", "define ", "block ",
}

func mutate(r *rand.Rand, pattern string, corpus []string) string {
	for i := 1 + r.Intn(4); i > 0; i-- {
		at := r.Intn(len(pattern) + 1)
		to := at + r.Intn(len(pattern)-at+1)
		switch r.Intn(6) {
		case 0:
			pattern = pattern[:at] + pick(r, tokens...) + pattern[at:]
		case 1:
			pattern = pattern[:at] + pattern[min(at+1+r.Intn(3), len(pattern)):]
		case 2:
			pattern = pattern[:at] + pick(r, tokens...) + pattern[min(at+1, len(pattern)):]
		case 3:
			pattern = pattern[:to] + pattern[at:]
		case 4:
			other := corpus[r.Intn(len(corpus))]
			from := r.Intn(len(other) + 1)
			pattern = pattern[:at] + other[from:]
		case 5:
			pattern += newGrammar(r).list(1)
		}
	}
	return pattern
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// grammar makes patterns that mostly parse.
type grammar struct {
	r         *rand.Rand
	variables []string
	loops     int
}

func newGrammar(r *rand.Rand) *grammar { return &grammar{r: r, variables: []string{"$"}} }

func (g *grammar) one(n int) bool { return g.r.Intn(n) == 0 }

func (g *grammar) open() string {
	return pick(g.r, "{{", "{{", "{{", "{{ ", "{{- ", "{{-\n")
}

func (g *grammar) close() string { return pick(g.r, "}}", "}}", "}}", " }}", " -}}", "\t-}}") }

func (g *grammar) action(inside string) string { return g.open() + inside + g.close() }

func (g *grammar) list(depth int) string {
	var b strings.Builder
	known := len(g.variables)
	for i := 1 + g.r.Intn(3); i > 0; i-- {
		b.WriteString(g.item(depth))
	}
	g.variables = g.variables[:known]
	return b.String()
}

func (g *grammar) item(depth int) string {
	choice := g.r.Intn(12)
	if depth <= 0 {
		choice %= 5
	}
	switch choice {
	case 0:
		return pick(g.r, "/", "text", " a b ", "\n  ", "}}", "{", "ü", "-")
	case 1, 2:
		return g.action(g.pipeline(depth))
	case 3:
		name := pick(g.r, "$x", "$y", "$long_1", "$größe", "$名1")
		text := g.action(name + pick(g.r, " := ", ":=") + g.pipeline(depth))
		g.variables = append(g.variables, name)
		return text
	case 4:
		if g.loops > 0 && g.one(2) {
			return g.action(pick(g.r, "break", "continue"))
		}
		if len(g.variables) > 1 && g.one(2) {
			return g.action(pick(g.r, g.variables[1:]...) + " = " + g.pipeline(depth))
		}
		return pick(g.r, "{{/* c */}}", "{{- /* c */ -}}", "{{/**/}}")
	case 5, 6:
		return g.branch("if", depth)
	case 7, 8:
		return g.branch("with", depth)
	case 9, 10:
		return g.loop(depth)
	default:
		return g.item(depth - 1)
	}
}

func (g *grammar) branch(word string, depth int) string {
	known := len(g.variables)
	head := g.pipeline(depth - 1)
	if g.one(4) {
		head = "$v := " + head
		g.variables = append(g.variables, "$v")
	}
	text := g.action(word+" "+head) + g.list(depth-1)
	for g.one(4) {
		text += g.action("else "+word+" "+g.pipeline(depth-1)) + g.list(depth-1)
	}
	if g.one(2) {
		text += g.action("else") + g.list(depth-1)
	}
	g.variables = g.variables[:known]
	return text + g.action("end")
}

func (g *grammar) loop(depth int) string {
	known := len(g.variables)
	over := pick(g.r, ".PVC.Labels", ".PVC.Annotations", ".PVC.Finalizers", ".PVC.OwnerReferences", "3", ".PVC.Name", g.pipeline(depth-1))
	switch g.r.Intn(4) {
	case 0:
		over = "$k, $v := " + over
		g.variables = append(g.variables, "$k", "$v")
	case 1:
		over = "$v := " + over
		g.variables = append(g.variables, "$v")
	case 2:
		if len(g.variables) > 1 {
			over = pick(g.r, g.variables[1:]...) + " = " + over
		}
	}
	g.loops++
	text := g.action("range "+over) + g.list(depth-1)
	g.loops--
	if g.one(3) {
		text += g.action("else") + g.list(depth-1)
	}
	g.variables = g.variables[:known]
	return text + g.action("end")
}

func (g *grammar) pipeline(depth int) string {
	text := g.command(depth)
	for g.one(4) {
		text += pick(g.r, " | ", "|", " |\n") + g.call(depth, true)
	}
	return text
}

func (g *grammar) command(depth int) string {
	if g.one(2) {
		return g.operand(depth)
	}
	return g.call(depth, false)
}

var arity = map[string]int{
	"index": 2, "slice": 2, "len": 1, "not": 1, "eq": 2, "ne": 2, "lt": 2, "le": 2, "gt": 2, "ge": 2, "and": 2,
	"or": 2, "print": 2, "println": 2, "html": 1, "js": 1, "urlquery": 1, "printf": 2, "call": 1,
}

var names = []string{
	"index", "slice", "len", "not", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "print", "println", "html",
	"js", "urlquery", "printf", "printf", "printf", "index", "slice", "call", "nofunction",
}

func (g *grammar) call(depth int, piped bool) string {
	name := pick(g.r, names...)
	count := arity[name] + g.r.Intn(5)/4*(g.r.Intn(5)-2)
	if piped {
		count--
	}
	text := name
	for i := 0; i < count; i++ {
		argument := g.operand(depth - 1)
		if name == "printf" && i == 0 && !g.one(8) {
			argument = g.format()
		}
		text += pick(g.r, " ", " ", "  ", "\t") + argument
	}
	return text
}

func (g *grammar) format() string {
	text := ""
	for i := 1 + g.r.Intn(3); i > 0; i-- {
		text += pick(g.r, "", "a", "%%", "é ") + "%" + pick(g.r, "", "", "", "-", "+", "#", " ", "0", "+#", "-0", "# ") +
			pick(g.r, "", "", "", "5", "12", "*", "[1]*", "[2]") + pick(g.r, "", "", "", ".0", ".3", ".", ".*", ".20") +
			pick(g.r, "", "", "[1]", "[3]") +
			pick(g.r, "v", "s", "d", "q", "x", "X", "t", "T", "c", "U", "o", "O", "b", "e", "E", "f", "F", "g", "G", "p", "w", "z", "!", "é")
	}
	return strconv.Quote(text)
}

func (g *grammar) operand(depth int) string {
	switch g.r.Intn(11) {
	case 0, 1, 2:
		return pick(g.r, ".PVC.Name", ".PVName", ".PVC.Namespace", ".PVC.UID", ".PVC.Labels", ".PVC.Annotations",
			".PVC.Finalizers", ".PVC.CreationTimestamp", ".PVC.DeletionTimestamp", ".PVC.GenerateName",
			".PVC.ResourceVersion", ".PVC.SelfLink", ".PVC.OwnerReferences", ".PVC.Nothing", ".PVC.Generation", ".PVC", ".")
	case 3:
		return pick(g.r, ".PVC.Labels.", ".PVC.Annotations.", "$.PVC.Labels.") + pick(g.r, "app", "tier", "zone", "empty", "owner", "missing")
	case 4:
		if g.one(4) {
			return "(index .PVC.OwnerReferences " + pick(g.r, "0", "1", "2") + ")" +
				pick(g.r, "", ".Name", ".Kind", ".UID", ".APIVersion", ".Nothing")
		}
		return "(index " + pick(g.r, ".PVC.Labels", ".PVC.Annotations", "$.PVC.Annotations") + " " + strconv.Quote(pick(g.r, keys...)) + ")"
	case 5:
		return g.literal()
	case 6:
		name := pick(g.r, g.variables...)
		if g.one(4) {
			name += pick(g.r, ".PVC.Name", ".PVName", ".app", ".Name", ".Kind")
		}
		return name
	case 7, 8:
		if depth > 0 {
			return "(" + g.pipeline(depth-1) + ")" + pick(g.r, "", "", "", ".Name", ".PVC", ".app", ".Kind", ".UID")
		}
		return g.literal()
	case 9:
		return pick(g.r, "true", "false", "nil", ".", "$")
	default:
		return g.literal()
	}
}

func (g *grammar) literal() string {
	switch g.r.Intn(8) {
	case 0, 1:
		return strconv.Quote(pick(g.r, values...))
	case 2:
		return "`" + strings.ReplaceAll(pick(g.r, values...), "`", "") + "`"
	case 3:
		return strconv.Itoa(g.r.Intn(7) - 2)
	case 4:
		return pick(g.r, "0x1F", "0b101", "0o17", "017", "1_000", "1e3", "1.5", "-2.25", ".5", "1e-7", "1e21", "0x1p4",
			"9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e400", "+3", "100000", "0.1", "3.0")
	case 5:
		return pick(g.r, "'a'", "'é'", "'\\n'", "'☃'", "'\\x41'", "'\\u00e9'", "'\\''", "'\\0'", "''")
	case 6:
		return fmt.Sprint(float64(g.r.Intn(1000)) / 8)
	default:
		return pick(g.r, `"\x41"`, `"\u00e9"`, `"\101"`, `"\""`, `"\q"`, `"%v"`, `"a`+"\\n"+`b"`, `"\xff"`)
	}
}
