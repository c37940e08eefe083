// SPDX-License-Identifier: Apache-2.0
// Command patternfuzz feeds random patterns and claims to Go's text/template and to our engine, and
// reports every difference: patternfuzz -driver PROGRAM [-seconds N] [-seed N] [-cases cases.json]
//
// Patterns come from a grammar and from mutations of the stored cases. Exit code 1: a difference or a
// crash; each one is printed with its pattern and claim, smallest first.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"os"
	"os/exec"
	"sort"
	"time"
)

type answer struct {
	Output *string `json:"output"`
	Error  *string `json:"error"`
	Broken string  `json:"broken"`
}

// driver is our engine as a child process.
type driver struct {
	command *exec.Cmd
	in      *bufio.Writer
	closeIn io.Closer
	out     *bufio.Scanner
}

func start(program string) *driver {
	command := exec.Command(program)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := command.Start(); err != nil {
		log.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 64<<20)
	return &driver{command: command, in: bufio.NewWriter(in), closeIn: in, out: scanner}
}

// ask returns false when the driver has died.
func (d *driver) ask(pattern string, c claim) (answer, bool) {
	line, err := json.Marshal(map[string]any{
		"pattern": hex.EncodeToString([]byte(pattern)), "pvName": c.data.PVName, "claim": c.metadata,
	})
	if err != nil {
		log.Fatal(err)
	}
	d.in.Write(line)
	d.in.WriteByte('\n')
	if d.in.Flush() != nil || !d.out.Scan() {
		return answer{}, false
	}
	var a answer
	if err := json.Unmarshal(d.out.Bytes(), &a); err != nil || a.Broken != "" {
		log.Fatalf("driver: %v %s", err, a.Broken)
	}
	return a, true
}

func text(digits *string) string {
	decoded, err := hex.DecodeString(*digits)
	if err != nil {
		log.Fatal(err)
	}
	return string(decoded)
}

type finding struct {
	pattern, kind, detail string
	claim                 claim
}

func main() {
	program := flag.String("driver", "", "our engine")
	seconds := flag.Int("seconds", 10, "how long")
	seed := flag.Int64("seed", time.Now().UnixNano(), "of the random numbers")
	stored := flag.String("cases", "../../data/gotemplate/cases.json", "patterns to mutate")
	flag.Parse()
	fmt.Printf("seed %d\n", *seed)
	random := rand.New(rand.NewSource(*seed))
	corpus := readCorpus(*stored)
	ours := start(*program)

	findings := map[string]finding{}
	cases, outputs := 0, 0
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	for time.Now().Before(end) && len(findings) < 200 {
		c := randomClaim(random)
		pattern := randomPattern(random, corpus)
		if mayTakeLong(pattern) {
			continue
		}
		theirs := goResult(pattern, c.data)
		cases++
		if theirs.err == nil {
			outputs++
		}
		a, alive := ours.ask(pattern, c)
		var kind, detail string
		if !alive {
			kind, detail = "crash", "the engine has died"
			ours = start(*program)
		} else if a.Output != nil {
			kind, detail = compare(theirs, text(a.Output), "")
		} else {
			kind, detail = compare(theirs, "", text(a.Error))
		}
		if kind == "" {
			continue
		}
		if old, known := findings[kind]; !known || len(pattern) < len(old.pattern) {
			findings[kind] = finding{pattern, kind, detail, c}
		}
	}
	ours.closeIn.Close()
	if err := ours.command.Wait(); err != nil {
		log.Fatalf("driver: %v", err)
	}
	fmt.Printf("%d patterns, %d of them render; %d kinds of differences\n", cases, outputs, len(findings))
	var list []finding
	for _, f := range findings {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return len(list[i].pattern) < len(list[j].pattern) })
	for _, f := range list {
		metadata, _ := json.Marshal(f.claim.metadata)
		fmt.Printf("\n%s\n  pattern %q\n  claim   %s\n  %s\n", f.kind, f.pattern, metadata, f.detail)
	}
	if len(list) > 0 {
		os.Exit(1)
	}
}
