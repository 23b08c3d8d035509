package clientgo

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "manager.example.com/anchor"

var buoyKind = schema.GroupVersionKind{Group: "manager.example.com", Version: "v1", Kind: "Buoy"}

func newBuoy(place, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(buoyKind)
	made.SetNamespace(place)
	made.SetName(name)
	return made
}

// reconciler gives each Buoy a ConfigMap that it owns and a status, and holds its deletion until that is gone.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	buoy := newBuoy("", "")
	if err := r.Get(ctx, request.NamespacedName, buoy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	if !buoy.GetDeletionTimestamp().IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, owned)); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(buoy, finalizer) {
			return ctrl.Result{}, r.Update(ctx, buoy)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(buoy, finalizer) {
		return ctrl.Result{}, r.Update(ctx, buoy)
	}
	depth, _, _ := unstructured.NestedInt64(buoy.Object, "spec", "depth")
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"depth": fmt.Sprint(depth)}
		return controllerutil.SetControllerReference(buoy, owned, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	if err := unstructured.SetNestedField(buoy.Object, buoy.GetGeneration(), "status", "observedGeneration"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, buoy)
}

// A manager as operators have it: leader election, caches with an index, a controller that owns objects, a finalizer.
func TestControllerRuntimeManager(t *testing.T) {
	ctrl.SetLogger(zap.New())
	buoys(t, buoyKind.Group)
	admin := clients(t, config(t))
	place := namespace(t, admin)
	manager, err := ctrl.NewManager(config(t), ctrl.Options{
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "buoys",
		LeaderElectionNamespace:       place,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{place: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "depth", func(object client.Object) []string {
		return []string{object.(*corev1.ConfigMap).Data["depth"]}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).For(newBuoy("", "")).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	direct, err := client.New(config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: place, Name: "red"}
	red := newBuoy(place, "red")
	red.Object["spec"] = map[string]any{"depth": int64(7)}
	if err := direct.Create(ctx, red); err != nil {
		t.Fatal(err)
	}
	depth := func(want string) {
		t.Helper()
		eventually(t, "the owned ConfigMap says depth "+want, func() (bool, string) {
			found := &corev1.ConfigMap{}
			err := direct.Get(ctx, key, found)
			return err == nil && found.Data["depth"] == want && metav1.GetControllerOf(found) != nil, fmt.Sprint(err, found.Data)
		})
	}
	depth("7")
	patch := client.MergeFrom(red.DeepCopy())
	red.Object["spec"] = map[string]any{"depth": int64(8)}
	if err := direct.Patch(ctx, red, patch); err != nil {
		t.Fatal(err)
	}
	depth("8")
	if err := direct.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "red"}}); err != nil {
		t.Fatal(err)
	}
	depth("8")
	eventually(t, "the status has the generation", func() (bool, string) {
		found := newBuoy("", "")
		if err := direct.Get(ctx, key, found); err != nil {
			return false, err.Error()
		}
		observed, _, _ := unstructured.NestedInt64(found.Object, "status", "observedGeneration")
		return observed == found.GetGeneration(), fmt.Sprint(found.Object)
	})
	eventually(t, "the cache's index finds it", func() (bool, string) {
		list := &corev1.ConfigMapList{}
		err := manager.GetClient().List(ctx, list, client.InNamespace(place), client.MatchingFields{"depth": "8"})
		return err == nil && len(list.Items) == 1, fmt.Sprint(err, len(list.Items))
	})
	if err := direct.Delete(ctx, red); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes when its finalizer is gone", func() (bool, string) {
		err := direct.Get(ctx, key, newBuoy("", ""))
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	lease, err := admin.CoordinationV1().Leases(place).Get(ctx, "buoys", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("the manager leads without a Lease: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
}
