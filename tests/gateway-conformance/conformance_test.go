// Package conformance runs the conformance suite of Gateway API, as upstream wrote it, against the server of a kubeconfig.
package conformance

import (
	"flag"
	"testing"

	v1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
)

var (
	usable   = flag.String("usable-address", "", "an address of this host that no Gateway has")
	unusable = flag.String("unusable-address", "", "an address that this host does not have")
)

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.UsableNetworkAddresses = addresses(*usable)
	options.UnusableNetworkAddresses = addresses(*unusable)
	conformance.RunConformanceWithOptions(t, options)
}

func addresses(value string) []v1.GatewaySpecAddress {
	kind := v1.IPAddressType
	return []v1.GatewaySpecAddress{{Type: &kind, Value: value}}
}
