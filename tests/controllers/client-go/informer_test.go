package clientgo

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// log is what an informer told, in order.
type log struct {
	lock  sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) text() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return fmt.Sprint(l.lines)
}

func (l *log) handler() cache.ResourceEventHandler {
	name := func(object any) string {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		return object.(metav1.Object).GetName()
	}
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool { return name(object) != "kube-root-ca.crt" },
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { l.add("+" + name(object)) },
			UpdateFunc: func(_, object any) { l.add("~" + name(object)) },
			DeleteFunc: func(object any) { l.add("-" + name(object)) },
		},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func follow(t *testing.T, informer cache.SharedIndexInformer) *log {
	t.Helper()
	seen := &log{}
	if _, err := informer.AddEventHandler(seen.handler()); err != nil {
		t.Fatal(err)
	}
	return seen
}

func synced(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
}

func change(t *testing.T, client kubernetes.Interface, place string, seen *log) {
	t.Helper()
	ctx, in := context.Background(), client.CoreV1().ConfigMaps(place)
	made, err := in.Create(ctx, configMap("late"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Data = map[string]string{"a": "b"}
	if _, err := in.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := in.Delete(ctx, "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = "[+early +late ~late -late]"
	eventually(t, "every change is told, in order", func() (bool, string) { return seen.text() == want, seen.text() })
}

// Typed informers get their initial state from the watch (WatchList), in protobuf-preferring and JSON clients.
func TestSharedInformersUseWatchList(t *testing.T) {
	client := clients(t, config(t))
	place := namespace(t, client)
	if _, err := client.CoreV1().ConfigMaps(place).Create(context.Background(), configMap("early"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	own, requests := recording(protobuf(t))
	factory := informers.NewSharedInformerFactoryWithOptions(clients(t, own), time.Minute, informers.WithNamespace(place))
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen := follow(t, informer)
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	synced(t, informer)
	change(t, client, place, seen)
	if lists, streams := requests.count("/configmaps", "limit="), requests.count("200 GET", "sendInitialEvents=true"); lists != 0 || streams != 1 {
		t.Errorf("%d lists and %d streams with initial events: %v", lists, streams, requests.seen)
	}
}

// Metadata informers ask for PartialObjectMetadata, in protobuf first.
func TestMetadataInformers(t *testing.T) {
	client := clients(t, config(t))
	place := namespace(t, client)
	if _, err := client.CoreV1().ConfigMaps(place).Create(context.Background(), configMap("early"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	own, err := metadata.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(own, time.Minute, place, nil)
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
	seen := follow(t, informer)
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	synced(t, informer)
	change(t, client, place, seen)
	for _, object := range informer.GetStore().List() {
		if partial, ok := object.(*metav1.PartialObjectMetadata); !ok || partial.UID == "" {
			t.Errorf("%T instead of metadata", object)
		}
	}
}

// A dynamic informer on a kind that was defined a moment ago; then the server ends its watch and it goes on.
func TestDynamicInformersOfNewKinds(t *testing.T) {
	buoys(t, "dynamic.example.com")
	ctx, client := context.Background(), clients(t, config(t))
	place := namespace(t, client)
	own, requests := recording(config(t))
	dynamicClient, err := dynamic.NewForConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionResource{Group: "dynamic.example.com", Version: "v1", Resource: "buoys"}
	buoy := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "dynamic.example.com/v1", "kind": "Buoy",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"depth": int64(7)},
		}}
	}
	in := dynamicClient.Resource(kind).Namespace(place)
	if _, err := in.Create(ctx, buoy("early"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Longer than a second: client-go takes a shorter watch for a fault and lists again.
	short := int64(2)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, time.Minute, place,
		func(options *metav1.ListOptions) { options.TimeoutSeconds = &short })
	informer := factory.ForResource(kind).Informer()
	seen := follow(t, informer)
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	synced(t, informer)
	eventually(t, "the watch has been ended and resumed", func() (bool, string) {
		return requests.count("200 GET", "watch=true") >= 3, fmt.Sprint(requests.seen)
	})
	if _, err := in.Create(ctx, buoy("late"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is told twice", func() (bool, string) { return seen.text() == "[+early +late]", seen.text() })
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	return clientscheme.Scheme
}

// eventSink writes core events of one namespace.
type eventSink struct{ events typedcore.EventInterface }

func (s *eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.events.CreateWithEventNamespace(event)
}

func (s *eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.events.UpdateWithEventNamespace(event)
}

func (s *eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.events.PatchWithEventNamespace(event, data)
}
