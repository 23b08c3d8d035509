package clientgo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 30 * time.Second

// config is the administrator's, in JSON, without client-side throttling.
func config(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatal("KUBECONFIG must name the kubeconfig of a Fairway")
	}
	found, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	found.QPS = -1
	return found
}

// protobuf is what controllers of Kubernetes itself use: they write protobuf, and prefer it in answers.
func protobuf(t *testing.T) *rest.Config {
	found := config(t)
	found.ContentType = "application/vnd.kubernetes.protobuf"
	found.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return found
}

func clients(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	made, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// namespace makes one for the test and removes it after.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ctx := context.Background()
	made, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "client-go-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("the test's namespace cannot be deleted: %v", err)
		}
	})
	return made.Name
}

// buoys defines a custom kind with a status and waits until it is served.
func buoys(t *testing.T, group string) {
	t.Helper()
	ctx := context.Background()
	client, err := apiextensionsclient.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	preserve := true
	anything := apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	definition := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "buoys." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Kind: "Buoy", Plural: "buoys"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensions.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := definitions.Delete(ctx, definition.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("the definition cannot be deleted: %v", err)
		}
	})
	eventually(t, "the definition is established", func() (bool, string) {
		found, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
				return true, ""
			}
		}
		return false, fmt.Sprint(found.Status.Conditions)
	})
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ask func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		yes, seen := ask()
		if yes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v; last seen: %s", what, patience, seen)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// recorder remembers what a client asks, so that tests can tell a watch-list from its fallback.
type recorder struct {
	next http.RoundTripper
	lock sync.Mutex
	seen []string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	code := 0
	if response != nil {
		code = response.StatusCode
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.seen = append(r.seen, fmt.Sprintf("%d %s %s", code, request.Method, request.URL.RequestURI()))
	return response, err
}

func (r *recorder) count(parts ...string) int {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := 0
	for _, line := range r.seen {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			found++
		}
	}
	return found
}

// recording makes a copy of the config whose requests are remembered.
func recording(config *rest.Config) (*rest.Config, *recorder) {
	own, seen := rest.CopyConfig(config), &recorder{}
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	return own, seen
}
