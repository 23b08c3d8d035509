// Command baseline records what Go's YAML libraries read and write, for tests that run without Go.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// A reading is an input and what becomes of it.
type reading struct {
	YAML   string `json:"yaml"`
	JSON   string `json:"json,omitempty"`
	Error  string `json:"error,omitempty"`
	Strict string `json:"strict,omitempty"`
	JSON3  string `json:"json3,omitempty"`
	Error3 string `json:"error3,omitempty"`
}

// A writing is a value and its YAML.
type writing struct {
	JSON string `json:"json"`
	YAML string `json:"yaml"`
}

func read(input string) (r reading) {
	r.YAML = input
	converted, err := yaml.YAMLToJSON([]byte(input))
	if err != nil {
		r.Error = err.Error()
	} else {
		r.JSON = string(converted)
	}
	if _, err := yaml.YAMLToJSONStrict([]byte(input)); err != nil && r.Error == "" {
		r.Strict = err.Error()
	}
	var value any
	if err := yaml3.Unmarshal([]byte(input), &value); err != nil {
		r.Error3 = err.Error()
	} else if plain, err := json.Marshal(stringKeys(value)); err != nil {
		r.Error3 = err.Error()
	} else {
		r.JSON3 = string(plain)
	}
	return r
}

func stringKeys(value any) any {
	switch value := value.(type) {
	case map[any]any:
		out := map[string]any{}
		for key, item := range value {
			out[fmt.Sprint(key)] = stringKeys(item)
		}
		return out
	case map[string]any:
		for key, item := range value {
			value[key] = stringKeys(item)
		}
	case []any:
		for at, item := range value {
			value[at] = stringKeys(item)
		}
	}
	return value
}

var words = []string{
	"", "a", "a b", " a", "a ", "a  b", "yes", "Yes", "y", "n", "no", "on", "off", "true", "null", "~", "nil", "1", "-1", "+1", "0", "007", "08",
	"0x1f", "0o17", "0b11", "1_000", "_1", "1.5", "1.", ".5", ".", "..", "...", "---", "--- a", "-- a", "1e3", "1e400", ".inf", "-.inf", ".nan",
	"190:20:30", "1:2", "12:30:45", "1:60", "2001-01-01", "2001-1-1", "2001-13-01", "2001-02-29", "2000-02-29", "2001-01-01T00:00:00Z",
	"2001-01-01t00:00:00+01:00", "2001-01-01T0:0:0Z", "2001-01-01 00:00:00", "2001-01-01 00:00:00.5", "2001-01-01 00:00:00 -5",
	"2001-01-01T25:00:00Z", "2001-01-01T00:00:00", "2001-01-01T00:00:00.123456789Z", "2001-01-01T00:00:00.1234567890123Z", "20010101", "2001-01", "2001-01-01T00:00:60Z",
	"2001-01-01T00:00:00z", "2001-01-01T00:00:00+1:00", "2001-01-01T00:00:00,5Z", "2001-01-01T00:00:00.Z", "2001-01-01T00:00:00+25:00", "2001-01-01T00:00:00+24:59",
	"<<", "=", "a: b", "a:b", "a:", ":a", ": a", ":", "a #b", "a#b", "#a", "- a", "-a", "-", "--", "? a", "?a", "?", "[a]", "{a}", "]", "}", ",", ",a", "a,b",
	"&a", "*a", "!a", "|", ">", "'", "'a'", "it's", "\"", "\"a\"", "a\"b", "%a", "@a", "`a`", "a%", "a@b", "\\", "a\\b",
	"a\nb", "a\nb\n", "a\n\n", "\n", "\na", " a\nb", "a \nb", "a\n b", "a\nb ", "a\tb", "\ta", "a\t", "\t", "a\r\nb", "a\rb", "a\n\tb", "a: b\nc: d\n",
	"é", "日本語", "😀", "a😀\nb", "\u00a0", "\u0085", "a\u0085b", "a\u2028b", "a\u2028 b", "a \u2029b", "\ufeff", "\ufeffa", "\ufffe", "\u0000", "\u0007\b\f\v\x1b", "\x7f", "\u200b",
	"null ", "# \n", "a\n#b", "line one\n\nline three\n", "key: |\n  x\n", "=~", "/path/*", "*.example.com", "a/b", "http://x/y:z", "10.0.0.1", "1.2.3", "1Gi", "500m", "v1", "0.1.0",
	strings.Repeat("long words ", 30), strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("é", 64), strings.Repeat("é", 65), "a\n" + strings.Repeat("b", 130),
}

// The first string of these pairs sorts before the second in some way that is not obvious.
var keys = []string{"item10", "item9", "item09", "item", "Item", "a-b", "a.b", "a1", "ab", "a_b", "1", "10", "2", "01", "é", "z", "Z", "~", "", "a01b", "a1b", "a001", "v1beta1", "v1", "v1alpha1", "v10", "x0", "x00", "x100", "x10", "99999999999999999999", "99999999999999999998"}

var structures = []string{
	`null`, `true`, `[]`, `{}`, `[[]]`, `[{}]`, `{"a":{}}`, `{"a":[]}`, `[[1,2],[3]]`, `[[[1]]]`, `{"a":[1,[2,3],{"b":[4]}]}`, `[{"a":1,"b":[{"c":2},{"d":3}]}]`,
	`{"a":{"b":{"c":[{"d":"e"}]}}}`, `{"a":"x\ny","b":["x\ny\n"],"c":{"d":"x\n\n"}}`, `["x\ny",["x\ny"]]`, `{"a":["x\n"],"b":1}`,
	`[1.0,1.5,1e3,1e20,1e21,1e-7,0.0001,123456789.5,18446744073709551615,18446744073709551616,-9223372036854775808]`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","creationTimestamp":null,"labels":{"a":"1","b":"true"}},"data":{"k":"a: 1\nb:\n  - c\n","e":""}}`,
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// Go reads the JSON as YAML first, which fails for a few control characters; there is nothing to compare then.
func write(text string) []writing {
	out, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		return nil
	}
	return []writing{{text, string(out)}}
}

func main() {
	inputs, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var result struct {
		Readings []reading `json:"readings"`
		Writings []writing `json:"writings"`
	}
	for _, input := range strings.Split(string(inputs), "\n%%%%\n") {
		result.Readings = append(result.Readings, read(input))
	}
	for _, word := range words {
		if !strings.ContainsAny(word, "\n\r\x00\u0085\u2028\u2029") {
			result.Readings = append(result.Readings, read("a: "+word+"\n"), read("- "+word+"\n"), read("["+word+"]"), read("'"+word+"': x"), read(word+": x"), read("k: !!str "+word))
		}
		text := quoted(word)
		for _, shape := range []string{"%s", "[%s]", "[[%s,1]]", `{"k":%s}`, `{%s:"v"}`, `{%s:["v"]}`, `{%s:{"a":"v"}}`, `[{%s:[1,2]}]`, `{"a":[%s,{"b":%s}]}`} {
			result.Writings = append(result.Writings, write(strings.ReplaceAll(shape, "%s", text))...)
		}
	}
	for _, text := range structures {
		result.Writings = append(result.Writings, write(text)...)
	}
	for _, left := range keys {
		for _, right := range keys {
			if left < right {
				result.Writings = append(result.Writings, write("{"+quoted(left)+":1,"+quoted(right)+":2}")...)
			}
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(result); err != nil {
		panic(err)
	}
}
