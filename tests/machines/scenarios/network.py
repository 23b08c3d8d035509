"""Machines among themselves: names, Services, policies, tenants."""

from guest import http
from scenario import scenario
from scenarios.life import ready, web
from world import check, eventually


def reach(bench, ssh, address, port=8080):
    """What a guest is told by a web server; empty if it hears nothing."""
    return bench.key.try_ssh(ssh, f"busybox timeout 8 busybox wget -q -O - http://{address}:{port}/", timeout=40).stdout


@scenario()
def policy(bench):
    """Two machines: DNS names and ClusterIPs lead to each other until a NetworkPolicy forbids it, and again when it is gone."""
    place, namespace = bench.place, bench.namespace
    one, _ = web(bench, "one")
    two, two_http = web(bench, "two")
    for name, port in (("one", one), ("two", two)):
        ready(bench, name)
        bench.key.login(port)
    name = f"two.{namespace}.svc.cluster.local"
    eventually("the other is found by its Service's name", lambda: "hello from two" in reach(bench, one, name))
    address = place.get("vmi", "two", "-n", namespace)["status"]["interfaces"][0]["ipAddress"]
    check("hello from two" in reach(bench, one, address), "and by its address")
    cluster_ip = place.get("service", "two", "-n", namespace)["spec"]["clusterIP"]
    check("hello from two" in reach(bench, one, cluster_ip), "and by its Service's address")

    place.apply({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "none", "namespace": namespace},
        "spec": {"podSelector": {"matchLabels": {"app": "two"}}, "policyTypes": ["Ingress"], "ingress": [
            {"from": [{"ipBlock": {"cidr": "127.0.0.1/32"}}]}]},
    })
    eventually("a policy keeps it out", lambda: not reach(bench, one, address))
    check(not reach(bench, one, cluster_ip), "also through the Service")
    check("hello from two" in eventually("the host", lambda: http(two_http)), "whom the policy allows still comes in")
    place.kubectl("delete", "networkpolicy", "none", "-n", namespace)
    eventually("without the policy it comes in again", lambda: "hello from two" in reach(bench, one, address))


@scenario(workspace="acme/dev")
def tenants(bench):
    """The same names in two workspaces: each finds its own, and neither reaches the other."""
    other = bench.world.root()
    here = bench.namespace
    ssh, port = web(bench)
    ready(bench)
    bench.key.login(ssh)
    check("hello from web" in eventually("HTTP", lambda: http(port)), "a machine of a workspace is served through its Service")
    theirs = type(bench)(bench.world, other, here, bench.key)
    other.namespace(here)
    try:
        their_ssh, _ = web(theirs, seed=None)
        ready(theirs)
        bench.key.login(their_ssh)
        address = other.get("vmi", "web", "-n", here)["status"]["interfaces"][0]["ipAddress"]
        own = bench.place.get("vmi", "web", "-n", here)["status"]["interfaces"][0]["ipAddress"]
        check(address != own, "addresses are unique over workspaces")
        check("hello" in reach(theirs, their_ssh, address), "it reaches itself")
        check(not reach(bench, ssh, address), "but not the other workspace's machine")
        theirs_ip = other.get("service", "web", "-n", here)["spec"]["clusterIP"]
        check(not reach(bench, ssh, theirs_ip), "nor its Service")
        name = f"web.{here}.svc.cluster.local"
        own_ip = bench.place.get("service", "web", "-n", here)["spec"]["clusterIP"]
        check(own_ip in bench.key.ssh(ssh, f"busybox nslookup {name} 2>/dev/null || true"), "a name means one's own")
        done = bench.key.try_ssh(ssh, f"busybox timeout 8 busybox wget -q -O - https://10.88.0.1:{bench.world.port}/ 2>&1")
        check(done.returncode != 0, "the host's API is not reached from a guest")
    finally:
        other.free(here)
