// Writes what the original makes of expressions: each line of the first file is evaluated with the variables of the second one, as
// argocd-notifications evaluates a trigger's condition, and printed with its value or that it has none.
//
//	go run . ../../crates/gitops/notifications/testdata/expressions.txt ../../crates/gitops/notifications/testdata/variables.json \
//	    > ../../crates/gitops/notifications/testdata/expressions.golden
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/expr-lang/expr"
)

// The clock of the golden file.
const now = "2026-05-01T10:00:00Z"

func parse(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return moment
}

// Whole numbers are int64 in objects of Kubernetes, others float64.
func whole(value any) any {
	switch it := value.(type) {
	case map[string]any:
		for key, entry := range it {
			it[key] = whole(entry)
		}
	case []any:
		for at, item := range it {
			it[at] = whole(item)
		}
	case json.Number:
		if int, err := it.Int64(); err == nil {
			return int
		}
		float, _ := it.Float64()
		return float
	}
	return value
}

func evaluate(text string, variables map[string]any) string {
	program, err := expr.Compile(text)
	if err != nil {
		return "error"
	}
	value, err := expr.Run(program, variables)
	if err != nil {
		return "error"
	}
	return fmt.Sprintf("%v", value)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	expressions, err := os.Open(os.Args[1])
	check(err)
	content, err := os.ReadFile(os.Args[2])
	check(err)
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	variables := map[string]any{}
	check(decoder.Decode(&variables))
	whole(variables)
	variables["time"] = map[string]any{
		"Parse":   parse,
		"Now":     func() time.Time { return parse(now) },
		"Second":  time.Second,
		"Minute":  time.Minute,
		"Hour":    time.Hour,
		"RFC3339": time.RFC3339,
		"Kitchen": time.Kitchen,
	}
	variables["strings"] = map[string]any{
		"ReplaceAll": func(text, old, new string) string { return strings.ReplaceAll(text, old, new) },
		"ToUpper":    func(text string) string { return strings.ToUpper(text) },
		"ToLower":    func(text string) string { return strings.ToLower(text) },
	}
	lines := bufio.NewScanner(expressions)
	for lines.Scan() {
		if text := lines.Text(); text != "" {
			fmt.Printf("%s\n  %q\n", text, evaluate(text, variables))
		}
	}
	check(lines.Err())
}
