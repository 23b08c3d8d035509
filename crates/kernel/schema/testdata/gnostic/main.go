// Encodes the entries of an OpenAPI v2 document with gnostic, for comparison.
//
// Values of any form are carried as YAML, which has many spellings; they are brought to compact JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	document, err := openapi_v2.ParseDocument(text)
	check(err)
	for _, entry := range document.Paths.Path {
		show("paths", entry.Name, entry.Value)
	}
	for _, entry := range document.Definitions.AdditionalProperties {
		show("definitions", entry.Name, entry.Value)
	}
	for _, entry := range document.Parameters.AdditionalProperties {
		show("parameters", entry.Name, entry.Value)
	}
}

func show(section, name string, message proto.Message) {
	spellAsJSON(message.ProtoReflect())
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	check(err)
	fmt.Printf("%s %s %x\n", section, name, encoded)
}

func spellAsJSON(message protoreflect.Message) {
	if message.Descriptor().FullName() == "openapi.v2.Any" {
		field := message.Descriptor().Fields().ByName("yaml")
		var value any
		check(yaml.Unmarshal([]byte(message.Get(field).String()), &value))
		spelled, err := json.Marshal(value)
		check(err)
		message.Set(field, protoreflect.ValueOfString(string(spelled)+"\n"))
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range value.List().Len() {
				spellAsJSON(value.List().Get(i).Message())
			}
		default:
			spellAsJSON(value.Message())
		}
		return true
	})
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
