"""A door in front of Fairway through which the argocd command goes in core mode.

The command insists on a port-forward to a pod of Argo CD's repo-server before it does anything, although listing and
showing never use it. No pod runs here, so the door itself answers that one request as an API server with such a pod would,
and hands everything else on, as the administrator.
"""

import base64
import contextlib
import json
import pathlib
import socket
import ssl
import subprocess
import threading

FORWARD = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
           b"X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n")


def credentials(fairway, directory):
    """The address of Fairway, and a context with the administrator's certificate."""
    config = json.loads(subprocess.run(["kubectl", "config", "view", "--raw", "-o", "json"], capture_output=True, text=True,
                                       check=True, env=fairway.environment()).stdout)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    files = {}
    for name, data in (("ca", cluster["certificate-authority-data"]), ("cert", user["client-certificate-data"]),
                       ("key", user["client-key-data"])):
        files[name] = directory / f"door-{name}.pem"
        files[name].write_bytes(base64.b64decode(data))
    context = ssl.create_default_context(cafile=str(files["ca"]))
    context.load_cert_chain(str(files["cert"]), str(files["key"]))
    host, _, port = cluster["server"].removeprefix("https://").partition("/")[0].rpartition(":")
    return (host, int(port)), context


def pump(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def serve(client, address, context):
    with client:
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return
            head += data
        if b"/portforward" in head.split(b"\r\n", 1)[0]:
            client.sendall(FORWARD)
            while client.recv(65536):
                pass
            return
        with context.wrap_socket(socket.create_connection(address), server_hostname=address[0]) as server:
            server.sendall(head)
            back = threading.Thread(target=pump, args=(server, client), daemon=True)
            back.start()
            pump(client, server)
            back.join()


@contextlib.contextmanager
def opened(fairway, directory, namespace):
    """The path of a kubeconfig that leads through the door."""
    address, context = credentials(fairway, pathlib.Path(directory))
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client, address, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    kubeconfig = pathlib.Path(directory) / "door.kubeconfig"
    kubeconfig.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "door",
        "clusters": [{"name": "door", "cluster": {"server": f"http://127.0.0.1:{listener.getsockname()[1]}"}}],
        "users": [{"name": "door", "user": {}}],
        "contexts": [{"name": "door", "context": {"cluster": "door", "user": "door", "namespace": namespace}}],
    }))
    try:
        yield kubeconfig
    finally:
        listener.close()
