module gnostic-baseline

go 1.24

require (
	github.com/google/gnostic-models v0.7.0
	go.yaml.in/yaml/v3 v3.0.3
	google.golang.org/protobuf v1.35.1
)
