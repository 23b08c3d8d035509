// Package conformance runs the conformance suite of Gateway API, as upstream wrote it, against the server of a kubeconfig.
package conformance

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
