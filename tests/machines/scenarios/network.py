"""Machines among themselves and with the world: names, Services, policies, tenants, the way out, more cards."""

import contextlib
import http.server
import json
import threading

from guest import http as ask
from manifests import machine, secret, service, user_data
from scenario import scenario
from scenarios.joining import NAME, node
from scenarios.life import condition, ready, status, web
from world import Skipped, check, eventually


# What a shell says of a program that it cannot run, or does not find: such an answer says nothing of the network.
NOT_RUN = (126, 127)


def asked(bench, ssh, command, host="127.0.0.1"):
    """What a guest's command printed, and its exit code; Failed if it was not run to its end, which is no answer of the network."""
    done = bench.key.try_ssh(ssh, f"{command}; code=$?; echo; echo =ended=$code", host=host, timeout=40)
    said, mark, code = done.stdout.rpartition("\n=ended=")
    check(done.returncode == 0 and mark, f"the guest could not be asked: ssh ended with {done.returncode}: {done.stderr}{done.stdout}")
    check(int(code) not in NOT_RUN, f"the guest cannot run {command!r}: {code}: {done.stderr}{said}")
    return said, int(code)


def reach(bench, ssh, address, port=8080, host="127.0.0.1"):
    """What a guest is told by a web server; empty if it hears nothing."""
    return asked(bench, ssh, f"busybox timeout 8 busybox wget -q -O - http://{address}:{port}/", host)[0].strip()


def connects(bench, ssh, address, port, host="127.0.0.1"):
    """Whether a guest gets a TCP connection, whatever is spoken over it."""
    return asked(bench, ssh, f"busybox timeout 8 busybox nc -w 6 {address} {port} -e busybox true </dev/null", host)[1] == 0


def lookup(bench, ssh, name):
    """What a guest's resolver says of a name."""
    return asked(bench, ssh, f"busybox nslookup {name} 2>&1")[0]


def balancer(name, namespace, app):
    """A Service with an address of its own, and other ports than the machine's."""
    made = service(name, namespace, {"app": app}, kind="LoadBalancer")
    made["spec"]["ports"] = [{"name": "ssh", "port": 2022, "targetPort": 22}, {"name": "http", "port": 2080, "targetPort": 8080}]
    return made


@contextlib.contextmanager
def pool(place, namespace, addresses):
    """An operator's IPAddressPool, of MetalLB's kind, for as long as it is needed."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ipaddresspools.metallb.io"},
        "spec": {"group": "metallb.io", "scope": "Namespaced", "names": {"plural": "ipaddresspools", "kind": "IPAddressPool"}, "versions": [
            {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}]}}
    place.apply(definition)
    try:
        place.kubectl("wait", "crd/ipaddresspools.metallb.io", "--for=condition=Established", "--timeout=30s")
        place.apply({"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": {"name": "main", "namespace": namespace},
                     "spec": {"addresses": [addresses]}})
        yield
    finally:
        place.run("kubectl", "delete", "crd", "ipaddresspools.metallb.io", "--timeout=30s")


@contextlib.contextmanager
def server(address, port=0):
    """A web server of this host; its port."""
    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from the host")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer((address, port), Hello) as it:
        thread = threading.Thread(target=it.serve_forever, daemon=True)
        thread.start()
        try:
            yield it.server_address[1]
        finally:
            it.shutdown()
            thread.join()


@scenario()
def doors(bench):
    """One machine behind every kind of Service, its names, and what it reaches of the host: what the operator allows, and nothing else."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    headless = service("lan", namespace, {"app": "one"}, kind="ClusterIP", http=8080)
    headless["spec"]["clusterIP"] = "None"
    place.apply(balancer("one-lb", namespace, "one"), headless)
    one, port = web(bench, "one", instance={"hostname": "first", "subdomain": "lan"})
    ready(bench, "one")
    key.login(one)
    check("hello from one" in eventually("HTTP through the node port", lambda: ask(port)), "HTTP through the node port")

    told = eventually("an address of the load balancer",
                      lambda: place.get("service", "one-lb", "-n", namespace).get("status", {}).get("loadBalancer", {}).get("ingress"))
    at = told[0]["ip"]
    check("hello from one" in eventually("HTTP through the load balancer", lambda: ask(2080, host=at)), "HTTP through the load balancer")
    check(key.ssh(2022, "hostname", host=at) == "one", "SSH through the load balancer")

    with pool(place, namespace, "127.77.0.7-127.77.0.8"):
        place.apply(balancer("one-pooled", namespace, "one"))
        ingress = lambda: place.get("service", "one-pooled", "-n", namespace).get("status", {}).get("loadBalancer", {}).get("ingress")
        told = eventually("an address out of the pool", ingress)
        check(told[0]["ip"] in ("127.77.0.7", "127.77.0.8"), f"an address out of the pool: {told}")
        check("hello from one" in eventually("HTTP through it", lambda: ask(2080, host=told[0]["ip"])), "HTTP through an address out of the pool")
        place.kubectl("delete", "service", "one-pooled", "-n", namespace)

    own = status(bench, "vmi", "one")["interfaces"][0]["ipAddress"]
    cluster_ip = place.get("service", "one", "-n", namespace)["spec"]["clusterIP"]
    names = {f"first.lan.{namespace}": own, f"lan.{namespace}": own, f"one.{namespace}": cluster_ip}
    for name, address in names.items():
        check(address in lookup(bench, one, f"{name}.svc.cluster.local"), f"{name} is {address}")
    check("hello from one" in reach(bench, one, "one"), "short names are looked for in the machine's own namespace")
    check(cluster_ip not in lookup(bench, one, "one.elsewhere.svc.cluster.local"), "a name of another namespace is another name")
    check("hello from one" in reach(bench, one, cluster_ip), "a machine reaches itself through its Service")
    said = key.ssh(one, f"busybox timeout 5 busybox nc {cluster_ip} 22 </dev/null | busybox head -c 4", timeout=40)
    check(said == "SSH-", f"SSH through the ClusterIP: {said!r}")

    world = bench.world
    check(connects(bench, one, cluster_ip, 22), "a guest can tell which ports take connections")
    with server("127.0.0.1") as loopback:
        check("hello from the host" in ask(loopback), "a server on the host's loopback answers the host")
        check(not connects(bench, one, "10.88.0.1", world.port), "the API is not at the gateway")
        check(not connects(bench, one, "10.88.0.1", loopback), "the host's loopback is not at the gateway")
    if not world.allowed:
        raise Skipped("everything but the way out held; this host has no address of its own", cannot="address")
    address, allowed = world.allowed
    with server(address, allowed), server(address) as other:
        check("hello from the host" in ask(other, host=address), "the host's own server answers")
        check(not reach(bench, one, address, other), "a machine does not reach its host")
        check("hello from the host" in reach(bench, one, address, allowed), "it reaches what the operator allows")
        place.apply({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "in", "namespace": namespace},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"podSelector": {}}]}]},
        })
        eventually("unless a policy forbids it", lambda: not reach(bench, one, address, allowed))


@scenario()
def cards(bench):
    """Two machines with cards on two VLANs of a bridge: on the same one they meet, on different ones they do not."""
    place, namespace, key = bench.place, bench.namespace, bench.key

    def definition(name, vlan):
        config = json.dumps({"cniVersion": "0.3.1", "type": "bridge", "bridge": "br1", "vlan": vlan})
        return {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": name, "namespace": namespace}, "spec": {"config": config}}

    place.apply(definition("seven", 7), definition("eight", 8), definition("nine", 9))
    ports = {}
    for number, (name, other) in enumerate((("one", "eight"), ("two", "nine")), 1):
        seed = user_data(name) + "".join(
            f"- ip addr add 192.168.{lan}.{number}/24 dev eth{card}\n- ip link set eth{card} up\n" for card, lan in ((1, 7), (2, 8)))
        made = machine(name, namespace, secret=f"{name}-seed", keys=f"{name}-ssh")
        template = made["spec"]["template"]["spec"]
        for card in ("seven", other):
            template["domain"]["devices"]["interfaces"].append({"name": card, "bridge": {}})
            template["networks"].append({"name": card, "multus": {"networkName": card}})
        place.apply(secret(f"{name}-seed", namespace, userdata=seed), secret(f"{name}-ssh", namespace, key=key.public),
                    service(name, namespace, {"app": name}, ssh=22), made)
        found = place.get("service", name, "-n", namespace)
        ports[name] = found["spec"]["ports"][0]["nodePort"]
    for name, port in ports.items():
        ready(bench, name)
        key.login(port)
    eventually("the other answers on the VLAN that both are on", lambda: "hello from two" in reach(bench, ports["one"], "192.168.7.2"))
    check(not reach(bench, ports["one"], "192.168.8.2"), "and not where they are on different ones")
    cards = {it["name"]: it for it in status(bench, "vmi", "one")["interfaces"]}
    check(set(cards) >= {"default", "seven", "eight"}, f"the instance tells of every card: {cards}")


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
    check("hello from two" in eventually("the host", lambda: ask(two_http)), "whom the policy allows still comes in")
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
    check("hello from web" in eventually("HTTP", lambda: ask(port)), "a machine of a workspace is served through its Service")
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
        check(own_ip in lookup(bench, ssh, name), "a name means one's own")
        other.apply(service("only-theirs", here, {"app": "web"}, kind="ClusterIP", http=8080))
        only = f"only-theirs.{here}.svc.cluster.local"
        their_ip = other.get("service", "only-theirs", "-n", here)["spec"]["clusterIP"]
        eventually("they find a name of theirs", lambda: their_ip in lookup(theirs, their_ssh, only))
        check(their_ip not in lookup(bench, ssh, only), "which means nothing here")
    finally:
        other.free(here)


@scenario(workspace="acme/dev")
def hosts(bench):
    """Machines of two hosts are on one network: addresses, names and Services lead from one to the other, and policies hold."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    with node(bench):
        far, far_http = web(bench, "far", instance={"nodeSelector": {"kubernetes.io/hostname": NAME}})
        near, _ = web(bench, "near")
        for name, port in (("far", far), ("near", near)):
            ready(bench, name)
            key.login(port)
        check(status(bench, "vmi", "far")["nodeName"] == NAME != status(bench, "vmi", "near")["nodeName"], "they are on two hosts")
        check("hello from far" in eventually("a node port of this host", lambda: ask(far_http)), "leads to the other")
        address = status(bench, "vmi", "far")["interfaces"][0]["ipAddress"]
        own = status(bench, "vmi", "near")["interfaces"][0]["ipAddress"]
        eventually("the other is reached", lambda: "hello from far" in reach(bench, near, address))
        check("hello from far" in reach(bench, near, f"far.{namespace}.svc.cluster.local"), "by its Service's name, too")
        check("hello from near" in reach(bench, far, own), "and the other way round")
        place.apply({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "none", "namespace": namespace},
            "spec": {"podSelector": {"matchLabels": {"app": "far"}}, "policyTypes": ["Ingress"], "ingress": [
                {"from": [{"ipBlock": {"cidr": "127.0.0.1/32"}}]}]},
        })
        eventually("a policy keeps it out", lambda: not reach(bench, near, address))
        place.kubectl("delete", "vm", "far", "near", "-n", namespace, "--timeout=120s")


@scenario()
def networks_of_other_types(bench):
    """A definition that no machine can be connected to is accepted; the machine runs, and says so by a condition until the definition is a bridge."""
    place, namespace = bench.place, bench.namespace

    def definition(**config):
        return {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": "lan", "namespace": namespace}, "spec": {"config": json.dumps({"cniVersion": "0.3.1", **config})}}

    place.apply(definition(type="macvlan", master="eth7"))
    made = machine("web", namespace, disk=None, instance={"terminationGracePeriodSeconds": 0})
    spec = made["spec"]["template"]["spec"]
    spec["networks"].append({"name": "lan", "multus": {"networkName": "lan"}})
    spec["domain"]["devices"]["interfaces"].append({"name": "lan", "bridge": {}})
    place.apply(made)
    place.wait("vm/web", "jsonpath={.status.printableStatus}=Running", namespace)
    told = lambda kind: condition((place.get(kind, "web", "-n", namespace) or {}).get("status", {}), "NetworksConnected")
    for kind in ("vmi", "vm"):
        found = eventually(f"the {kind} says so", lambda: told(kind))
        check((found["status"], found["reason"]) == ("False", "NetworkNotServed"), f"{kind}: {found}")
        check("card lan" in found["message"] and "macvlan" in found["message"], f"it names card and type: {found}")
    place.apply(definition(type="bridge", bridge="br1"))
    for kind in ("vmi", "vm"):
        eventually(f"the {kind} has nothing more to say", lambda: not told(kind))
