// Command backends stands in for kubelets while the conformance suite of Gateway API runs: Fairway runs no pods, so every
// replica of a Deployment becomes a process of the suite's own echo server, and Services get EndpointSlices that lead there.
//
// It also installs the definitions of the Go module, which the suite reads the version of Gateway API from. Fairway keeps them
// and serves the kinds itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	prefix = "gateway-conformance-"
	// Ports of the echo server as its image has them.
	httpPort, h2cPort, httpsPort = 3000, 3001, 8443
	interval                     = 200 * time.Millisecond
)

// replica is a process, and where it listens.
type replica struct {
	process *exec.Cmd
	ports   map[int]int32
}

type keeper struct {
	client   *kubernetes.Clientset
	echo     string
	address  string
	scratch  string
	nextPort int
	// By namespace/deployment.
	replicas map[string][]replica
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach Fairway")
	echo := flag.String("echo", "", "the echo server of the suite")
	address := flag.String("address", "", "an address of this host that is not of the loopback: endpoints must not have one")
	crds := flag.String("crds", "", "directory of the definitions of Gateway API")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatalf("reading %s: %v", *kubeconfig, err)
	}
	config.QPS, config.Burst = -1, -1
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := install(ctx, config, *crds); err != nil {
		log.Fatal(err)
	}
	scratch, err := os.MkdirTemp("", "gateway-backends-")
	if err != nil {
		log.Fatal(err)
	}
	k := &keeper{
		client: kubernetes.NewForConfigOrDie(config), echo: *echo, address: *address, scratch: scratch,
		nextPort: 20000, replicas: map[string][]replica{},
	}
	fmt.Println("ready")
	for ctx.Err() == nil {
		if err := k.pass(ctx); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	for _, all := range k.replicas {
		for _, one := range all {
			_ = one.process.Process.Kill()
		}
	}
	_ = os.RemoveAll(scratch)
}

// install creates the definitions. Fairway serves the kinds whether or not they are there.
func install(ctx context.Context, config *rest.Config, directory string) error {
	if directory == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(directory, "gateway.networking.k8s.io_*.yaml"))
	if err != nil {
		return err
	}
	client := kubernetes.NewForConfigOrDie(config).RESTClient()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		err = client.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
			SetHeader("Content-Type", "application/yaml").Body(text).Do(ctx).Error()
		if err != nil && !errors.IsAlreadyExists(err) {
			return fmt.Errorf("installing %s: %w", file, err)
		}
	}
	return nil
}

// pass looks at every Deployment and Service of the suite once.
func (k *keeper) pass(ctx context.Context) error {
	namespaces, err := k.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, namespace := range namespaces.Items {
		if !strings.HasPrefix(namespace.Name, prefix) || namespace.DeletionTimestamp != nil {
			continue
		}
		deployments, err := k.client.AppsV1().Deployments(namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		services, err := k.client.CoreV1().Services(namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range deployments.Items {
			if err := k.run(ctx, &deployments.Items[i], services.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *keeper) run(ctx context.Context, deployment *appsv1.Deployment, services []corev1.Service) error {
	container := deployment.Spec.Template.Spec.Containers[0]
	// The suite also has a name server, which is another program.
	if !strings.Contains(container.Image, "/echo-basic:") {
		return nil
	}
	key := deployment.Namespace + "/" + deployment.Name
	wanted := 1
	if deployment.Spec.Replicas != nil {
		wanted = int(*deployment.Spec.Replicas)
	}
	for len(k.replicas[key]) < wanted {
		one, err := k.start(ctx, deployment, len(k.replicas[key]))
		if err != nil {
			// A Secret that is mounted may come later.
			return fmt.Errorf("starting %s: %w", key, err)
		}
		k.replicas[key] = append(k.replicas[key], *one)
	}
	for _, service := range services {
		selector := service.Spec.Selector
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
			continue
		}
		for i, one := range k.replicas[key] {
			if err := k.lead(ctx, &service, fmt.Sprintf("%s-%d", deployment.Name, i), one); err != nil {
				return err
			}
		}
	}
	return nil
}

// start runs one replica.
func (k *keeper) start(ctx context.Context, deployment *appsv1.Deployment, number int) (*replica, error) {
	spec := deployment.Spec.Template.Spec
	mounted, err := k.mount(ctx, deployment, number)
	if err != nil {
		return nil, err
	}
	ports := map[int]int32{}
	for _, port := range []int{httpPort, h2cPort, httpsPort} {
		ports[port] = int32(k.nextPort)
		k.nextPort++
		// A test writes slices of its own with the addresses of this one's pods, and the image's ports.
		if deployment.Name == "infra-backend-v1" && number == 0 {
			ports[port] = int32(port)
		}
	}
	// Tests tell a pod's Deployment by its name: two parts follow it.
	name := fmt.Sprintf("%s-replica-%d", deployment.Name, number)
	environment := []string{
		"POD_NAME=" + name, "NAMESPACE=" + deployment.Namespace,
		"HTTP_PORT=" + strconv.Itoa(int(ports[httpPort])), "H2C_PORT=" + strconv.Itoa(int(ports[h2cPort])),
		"HTTPS_PORT=" + strconv.Itoa(int(ports[httpsPort])),
	}
	for _, variable := range spec.Containers[0].Env {
		if variable.ValueFrom == nil {
			value := variable.Value
			for path, directory := range mounted {
				value = strings.ReplaceAll(value, path, directory)
			}
			environment = append(environment, variable.Name+"="+value)
		}
	}
	process := exec.Command(k.echo)
	process.Env = environment
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return nil, err
	}
	return &replica{process, ports}, k.report(ctx, deployment, name)
}

// report says of a replica what a kubelet would: tests look pods up by their labels and take their addresses.
func (k *keeper) report(ctx context.Context, deployment *appsv1.Deployment, name string) error {
	pods := k.client.CoreV1().Pods(deployment.Namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	pod.Spec.NodeName = "backends"
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = k.address
	pod.Status.PodIPs = []corev1.PodIP{{IP: k.address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// mount writes the Secrets that a Deployment mounts; it returns directories by the paths that they stand for.
func (k *keeper) mount(ctx context.Context, deployment *appsv1.Deployment, number int) (map[string]string, error) {
	spec := deployment.Spec.Template.Spec
	mounted := map[string]string{}
	for _, volume := range spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		secret, err := k.client.CoreV1().Secrets(deployment.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		directory := filepath.Join(k.scratch, deployment.Namespace, deployment.Name, strconv.Itoa(number), volume.Name)
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return nil, err
		}
		for _, item := range volume.Secret.Items {
			if err := os.WriteFile(filepath.Join(directory, item.Path), secret.Data[item.Key], 0o600); err != nil {
				return nil, err
			}
		}
		for _, mount := range spec.Containers[0].VolumeMounts {
			if mount.Name == volume.Name {
				mounted[mount.MountPath] = directory
			}
		}
	}
	return mounted, nil
}

// lead makes the slice of one replica of a Service: replicas have different ports.
func (k *keeper) lead(ctx context.Context, service *corev1.Service, pod string, one replica) error {
	name := service.Name + "-" + pod
	ready := true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: service.Namespace,
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "backends.fairway.dev",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{k.address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
	}
	for _, port := range service.Spec.Ports {
		number, known := one.ports[port.TargetPort.IntValue()]
		if !known {
			continue
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
			Name: &port.Name, Port: &number, Protocol: &port.Protocol, AppProtocol: port.AppProtocol,
		})
	}
	_, err := k.client.DiscoveryV1().EndpointSlices(service.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
