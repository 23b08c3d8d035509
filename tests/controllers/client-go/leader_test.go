package clientgo

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Of two candidates one leads; when it stops without a word the other waits for the Lease to end, when it gives the Lease
// back the other follows at once.
func TestLeaderElection(t *testing.T) {
	for name, release := range map[string]bool{"given back": true, "left to end": false} {
		t.Run(name, func(t *testing.T) {
			client := clients(t, protobuf(t))
			place := namespace(t, client)
			const lasts = 3 * time.Second
			leading := make(chan string, 2)
			candidate := func(ctx context.Context, identity string) {
				lock := &resourcelock.LeaseLock{
					LeaseMeta:  metav1.ObjectMeta{Name: "pilot", Namespace: place},
					Client:     client.CoordinationV1(),
					LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
				}
				leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
					Lock: lock, LeaseDuration: lasts, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
					ReleaseOnCancel: release,
					Callbacks: leaderelection.LeaderCallbacks{
						OnStartedLeading: func(context.Context) { leading <- identity },
						OnStoppedLeading: func() {},
					},
				})
			}
			leader := func() string {
				select {
				case identity := <-leading:
					return identity
				case <-time.After(patience):
					t.Fatal("nobody leads")
					return ""
				}
			}
			first, stopFirst := context.WithCancel(context.Background())
			go candidate(first, "first")
			if got := leader(); got != "first" {
				t.Fatalf("%s leads", got)
			}
			second, stopSecond := context.WithCancel(context.Background())
			defer stopSecond()
			go candidate(second, "second")
			select {
			case got := <-leading:
				t.Fatalf("%s leads too", got)
			case <-time.After(lasts + time.Second):
			}
			stopFirst()
			stopped := time.Now()
			if got := leader(); got != "second" {
				t.Fatalf("%s leads", got)
			}
			if waited := time.Since(stopped); release && waited > 2*time.Second || !release && waited < time.Second {
				t.Errorf("the second leads after %v", waited)
			}
			lease, err := client.CoordinationV1().Leases(place).Get(context.Background(), "pilot", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions < 1 {
				t.Errorf("the Lease says %v", lease.Spec)
			}
		})
	}
}
