// Command kubernetes-e2e runs Kubernetes' own end-to-end tests, chosen by their full names, against the server of a
// kubeconfig. Upstream's own test program insists on schedulable nodes before it runs anything; this one takes the
// test packages alone, so that the tests that need no kubelet can judge a server that has none.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	conformancetestdata "k8s.io/kubernetes/test/conformance/testdata"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	e2etestingmanifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	testfixtures "k8s.io/kubernetes/test/fixtures"

	// The names of features must be registered before the tests that carry them.
	_ "k8s.io/kubernetes/test/e2e/feature"

	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/auth"
	_ "k8s.io/kubernetes/test/e2e/common"
	_ "k8s.io/kubernetes/test/e2e/instrumentation"
	_ "k8s.io/kubernetes/test/e2e/kubectl"
	_ "k8s.io/kubernetes/test/e2e/network"
	_ "k8s.io/kubernetes/test/e2e/node"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
	_ "k8s.io/kubernetes/test/e2e/storage"
)

const suite = "Kubernetes e2e"

// outcome is what ginkgo needs of a *testing.T: somewhere to say that a test failed.
type outcome struct{ failed bool }

func (o *outcome) Fail() { o.failed = true }

func main() {
	names := flag.String("names", "", "file with the full name of one test a line; only these run")
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()

	wanted, err := readNames(*names)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes-e2e:", err)
		os.Exit(2)
	}

	testfiles.AddFileSource(e2etestingmanifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(testfixtures.GetTestFixturesFS())
	testfiles.AddFileSource(conformancetestdata.GetConformanceTestdataFS())
	framework.AfterReadingAllFlags(&framework.TestContext)

	gomega.RegisterFailHandler(framework.Fail)
	suiteConfig, reporterConfig := ginkgo.GinkgoConfiguration()
	suiteConfig.RandomizeAllSpecs = false
	for _, name := range wanted {
		suiteConfig.FocusStrings = append(suiteConfig.FocusStrings, "^"+suite+" "+regexp.QuoteMeta(name)+"$")
	}
	result := &outcome{}
	if !ginkgo.RunSpecs(result, suite, suiteConfig, reporterConfig) || result.failed {
		os.Exit(1)
	}
}

func readNames(path string) ([]string, error) {
	if path == "" {
		return nil, fmt.Errorf("-names FILE is needed: which tests to run, the full name of one a line")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var names []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" {
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s names no test", path)
	}
	return names, nil
}
