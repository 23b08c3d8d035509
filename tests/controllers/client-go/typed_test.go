package clientgo

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

func deployment(name string) *appsv1.Deployment {
	replicas := int32(2)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "main",
					Image: "example.com/main:1",
					Env:   []corev1.EnvVar{{Name: "A", Value: "ä"}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
					},
				}}},
			},
		},
	}
}

// Every verb of a typed client, in JSON and in protobuf; both must see the same object.
func TestTypedClients(t *testing.T) {
	for name, config := range map[string]*rest.Config{"json": config(t), "protobuf": protobuf(t)} {
		t.Run(name, func(t *testing.T) {
			ctx, client := context.Background(), clients(t, config)
			in := client.AppsV1().Deployments(namespace(t, client))
			made, err := in.Create(ctx, deployment("crane"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if made.Spec.RevisionHistoryLimit == nil || *made.Spec.RevisionHistoryLimit != 10 {
				t.Errorf("defaults are missing: %v", made.Spec)
			}
			if got := made.Spec.Template.Spec.Containers[0].Env[0].Value; got != "ä" {
				t.Errorf("a value changed on its way: %q", got)
			}
			made.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
			updated, err := in.Update(ctx, made, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if updated.Generation != 2 {
				t.Errorf("generation %d after a change of the spec", updated.Generation)
			}
			if _, err := in.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("an update of an old version: %v", err)
			}
			updated.Status.ObservedGeneration = 2
			if _, err := in.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/main:3"}]}}}}`)
			patched, err := in.Patch(ctx, "crane", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			containers := patched.Spec.Template.Spec.Containers
			if len(containers) != 1 || containers[0].Image != "example.com/main:3" || len(containers[0].Env) != 1 {
				t.Errorf("a strategic merge gave %v", containers)
			}
			if _, err := in.UpdateScale(ctx, "crane",
				&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "crane", Namespace: made.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}},
				metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			found, err := in.Get(ctx, "crane", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if *found.Spec.Replicas != 5 || found.Status.ObservedGeneration != 2 {
				t.Errorf("replicas %d, observed %d", *found.Spec.Replicas, found.Status.ObservedGeneration)
			}
			list, err := in.List(ctx, metav1.ListOptions{LabelSelector: "app!=other", FieldSelector: "metadata.name=crane"})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || !equality.Semantic.DeepEqual(list.Items[0].Spec, found.Spec) {
				t.Errorf("a list shows %d objects, or another one than get", len(list.Items))
			}
			if err := in.Delete(ctx, "crane", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Get(ctx, "crane", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("after its deletion: %v", err)
			}
			bad := deployment("Not A Name")
			_, err = in.Create(ctx, bad, metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("a bad name: %v", err)
			}
		})
	}
}

func TestApplyConfigurations(t *testing.T) {
	ctx, client := context.Background(), clients(t, config(t))
	in := client.AppsV1().Deployments(namespace(t, client))
	labels := map[string]string{"app": "crane"}
	desired := func(image string) *appsapply.DeploymentApplyConfiguration {
		container := coreapply.Container().WithName("main").WithImage(image)
		return appsapply.Deployment("crane", "").WithSpec(appsapply.DeploymentSpec().
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).
				WithSpec(coreapply.PodSpec().WithContainers(container))))
	}
	if _, err := in.Apply(ctx, desired("example.com/a:1"), metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Apply(ctx, desired("example.com/b:1"), metav1.ApplyOptions{FieldManager: "second"}); !apierrors.IsConflict(err) {
		t.Errorf("a second manager's value: %v", err)
	}
	if _, err := in.Apply(ctx, desired("example.com/b:1"), metav1.ApplyOptions{FieldManager: "second", Force: true}); err != nil {
		t.Fatal(err)
	}
	found, err := in.Get(ctx, "crane", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	extracted, err := appsapply.ExtractDeployment(found, "second")
	if err != nil {
		t.Fatal(err)
	}
	if got := *extracted.Spec.Template.Spec.Containers[0].Image; got != "example.com/b:1" {
		t.Errorf("the second manager owns %q", got)
	}
}

func TestConflictsAreRetried(t *testing.T) {
	ctx, client := context.Background(), clients(t, protobuf(t))
	in := client.CoreV1().ConfigMaps(namespace(t, client))
	if _, err := in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "log"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const writers = 8
	errs := make(chan error, writers)
	for writer := range writers {
		go func() {
			backoff := retry.DefaultBackoff
			backoff.Steps = 50
			errs <- retry.RetryOnConflict(backoff, func() error {
				found, err := in.Get(ctx, "log", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if found.Data == nil {
					found.Data = map[string]string{}
				}
				found.Data[fmt.Sprint(writer)] = "was here"
				_, err = in.Update(ctx, found, metav1.UpdateOptions{})
				return err
			})
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	found, err := in.Get(ctx, "log", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Data) != writers {
		t.Errorf("updates were lost: %v", found.Data)
	}
}

func TestPagesAreConsistent(t *testing.T) {
	ctx, client := context.Background(), clients(t, protobuf(t))
	in := client.CoreV1().ConfigMaps(namespace(t, client))
	for i := range 25 {
		if _, err := in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", i)}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pages := 0
	pager := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		if pages == 2 {
			// A later page shows the state of the first.
			if err := in.Delete(ctx, "page-24", metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
		}
		return in.List(ctx, options)
	})
	pager.PageSize, pager.PageBufferSize = 10, 0
	seen := 0
	err := pager.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if object.(*corev1.ConfigMap).Name != "kube-root-ca.crt" {
			seen++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != 25 || pages != 3 {
		t.Errorf("%d objects on %d pages", seen, pages)
	}
}

func TestDiscoveryAndMapping(t *testing.T) {
	own, requests := recording(config(t))
	client, err := discovery.NewDiscoveryClientForConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	if asked := requests.count("GET"); asked > 2 {
		t.Errorf("discovery is not aggregated: it took %d requests", asked)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for name, want := range map[string]string{"deploy": "", "deployments": "apps/v1, Resource=deployments"} {
		expanded, err := restmapper.NewShortcutExpander(mapper, client, nil).ResourceFor(
			corev1.SchemeGroupVersion.WithResource(name).GroupResource().WithVersion(""))
		if err != nil {
			t.Fatal(err)
		}
		if want != "" && expanded.String() != want {
			t.Errorf("%s is %s", name, expanded)
		}
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Major != "1" || version.Minor != "36" {
		t.Errorf("version %v", version)
	}
	if _, err := client.OpenAPISchema(); err != nil {
		t.Errorf("OpenAPI v2 in protobuf: %v", err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil || paths["apis/apps/v1"] == nil {
		t.Errorf("OpenAPI v3: %v", err)
	}
}

func TestEventsAreRecorded(t *testing.T) {
	ctx, client := context.Background(), clients(t, protobuf(t))
	place := namespace(t, client)
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&eventSink{client.CoreV1().Events(place)})
	defer broadcaster.Shutdown()
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "log", Namespace: place}
	events := broadcaster.NewRecorder(scheme(t), corev1.EventSource{Component: "test"})
	for range 3 {
		events.Event(about, corev1.EventTypeNormal, "Moored", "the ship is fast")
	}
	eventually(t, "three happenings are one event that counts", func() (bool, string) {
		list, err := client.CoreV1().Events(place).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=log,reason=Moored"})
		if err != nil {
			return false, err.Error()
		}
		return len(list.Items) == 1 && list.Items[0].Count == 3, fmt.Sprint(list.Items)
	})
}

// A service account may do what its role says, and learns why it may not do more.
func TestServiceAccountTokens(t *testing.T) {
	ctx, admin := context.Background(), clients(t, config(t))
	place := namespace(t, admin)
	if _, err := admin.CoreV1().ServiceAccounts(place).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "pilot"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "pilot"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	if _, err := admin.RbacV1().Roles(place).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pilot"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "pilot"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "pilot", Namespace: place}}}
	if _, err := admin.RbacV1().RoleBindings(place).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := admin.CoreV1().ServiceAccounts(place).CreateToken(ctx, "pilot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := rest.AnonymousClientConfig(config(t))
	own.BearerToken = token.Status.Token
	pilot := clients(t, own)
	if _, err := pilot.CoreV1().ConfigMaps(place).List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("what the role grants: %v", err)
	}
	if _, err := pilot.CoreV1().Secrets(place).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what it does not grant: %v", err)
	}
	if err := admin.CoreV1().ServiceAccounts(place).Delete(ctx, "pilot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token dies with its account", func() (bool, string) {
		_, err := pilot.CoreV1().ConfigMaps(place).List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), fmt.Sprint(err)
	})
}
