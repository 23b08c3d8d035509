// Prints every kind of Kubernetes as Go encodes it when nothing is set; zero-objects.tsv holds the lines of the kinds that
// are served by default. To renew it, run this in a Go module that requires these packages at the version that the
// table of facts names.
package main

import (
	"encoding/json"
	"fmt"
	"sort"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func main() {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	var lines []string
	for kind := range all.AllKnownTypes() {
		object, err := all.New(kind)
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(object)
		if err != nil {
			panic(err)
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s", kind.Group, kind.Version, kind.Kind, text))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}
