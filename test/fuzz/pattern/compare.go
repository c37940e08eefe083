// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"gotemplate/config"
)

// Our engine's limit for patterns and results.
const limit = 64 << 10

var errTooLong = errors.New("too long")

type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > limit {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

type goAnswer struct {
	output string
	err    error
	// Whether a label or annotation that is missing was read.
	missing bool
}

func goResult(pattern string, data config.PatternData) (result goAnswer) {
	defer func() {
		if r := recover(); r != nil {
			result = goAnswer{err: fmt.Errorf("panic: %v", r)}
		}
	}()
	t, err := template.New("p").Parse(pattern)
	if err != nil {
		return goAnswer{err: err}
	}
	var out bounded
	if err := t.Execute(&out, data); err != nil {
		return goAnswer{err: err}
	}
	missing := t.Option("missingkey=error").Execute(&bounded{}, data) != nil
	return goAnswer{output: out.String(), missing: missing}
}

// What we refuse on purpose where Go gives a result: numbers but whole ones, formats that make no name,
// whole structs, fields that are not kept, methods and comparisons of times, the printing of what is
// not ASCII by %q and js, and of labels and annotations that are missing.
var refusals = regexp.MustCompile(`not supported|not available in patterns|longer than 64 KiB|too many steps|` +
	`nested too deep|there is no value to print|map has no entry for key|nil is not a command|cannot be compared|` +
	`does not print a value of type|there is no (verb|value) for|has no verb|in the format is too large`)

// Where both say no, Go's text may hold whole structs, or where the action began, which ours does not.
var alike = regexp.MustCompile(` in action started at p:\d+| started at p:\d+|non-comparable type (?s:.*)|` +
	`(range can't iterate over) (?s:.*)`)

var (
	place   = regexp.MustCompile(`^template: p:(\d+)(?::(\d+))?: (?s:(.*))$`)
	ourForm = regexp.MustCompile(`^p:(\d+):(\d+): (?s:(.*))$`)
	// Values and names in messages, so that differences of one kind are told once.
	varying = regexp.MustCompile("\"[^\"]*\"|<[^>]*>|'[^']*'|`[^`]*`|[0-9]+|U\\+[0-9A-F]+")
)

func kindOf(text string) string {
	text = varying.ReplaceAllString(text, "~")
	if len(text) > 100 {
		text = text[:100]
	}
	return text
}

var notASCII = regexp.MustCompile(`[^\x00-\x7f]|\\[uU][0-9a-f]{4}`)

// compare returns the kind of the difference, and what it is; nothing when there is none.
func compare(theirs goAnswer, ourOutput, ourError string) (string, string) {
	if theirs.err == nil && ourError == "" {
		if theirs.output == ourOutput {
			return "", ""
		}
		return "other output", fmt.Sprintf("Go   %q\n  ours %q", theirs.output, ourOutput)
	}
	if theirs.err == nil {
		// The path or name would be refused later in any case.
		unasked := strings.Contains(ourError, "map has no entry for key") && !theirs.missing
		if refusals.MatchString(ourError) && !unasked || !utf8.ValidString(theirs.output) {
			return "", ""
		}
		return "our error only: " + kindOf(ourError), fmt.Sprintf("Go   %q\n  ours %s", theirs.output, ourError)
	}
	if ourError == "" {
		return "Go's error only: " + kindOf(theirs.err.Error()),
			fmt.Sprintf("Go   %v\n  ours %q", theirs.err, ourOutput)
	}
	if refusals.MatchString(ourError) || errors.Is(theirs.err, errTooLong) {
		return "", ""
	}
	go_ := place.FindStringSubmatch(theirs.err.Error())
	our := ourForm.FindStringSubmatch(ourError)
	if our == nil {
		return "form of our error", ourError
	}
	if go_ == nil {
		return "", ""
	}
	wanted := strings.TrimPrefix(go_[3], `executing "p" `)
	wanted = alike.ReplaceAllString(wanted, "$1")
	same := strings.Contains(our[3], wanted)
	if go_[2] == "" {
		// A parse error: Go names the line it has read to, we the one that is wrong. A letter that
		// is not ASCII ends what we read as a number.
		same = same && len(our[1]) <= len(go_[1]) && our[1] <= go_[1] || notASCII.MatchString(wanted)
	} else {
		same = same && our[1] == go_[1]
		column, _ := strconv.Atoi(go_[2])
		same = same && our[2] == strconv.Itoa(column+1)
	}
	if same {
		return "", ""
	}
	return "other error: " + kindOf(wanted), fmt.Sprintf("Go   %v\n  ours %s", theirs.err, ourError)
}

// Loops without output have no end that could be waited for.
func mayTakeLong(pattern string) bool {
	return strings.Contains(pattern, "range") && longNumber.MatchString(pattern) ||
		strings.Count(pattern, "range") > 3 || len(pattern) > 4000
}

var longNumber = regexp.MustCompile(`[0-9_]{3,}|0[xXbBoO]|[0-9][eEpP]`)
