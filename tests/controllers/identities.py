"""Who the programs are: a client certificate or a service account, with upstream's rights and no others."""

import json
import subprocess


class Identities:
    """Makes kubeconfigs."""

    def __init__(self, fairway, directory):
        self.fairway = fairway
        self.directory = directory

    def certificate(self, user, *groups):
        """A kubeconfig for a user with a certificate from Fairway's own authority."""
        name = user.replace(":", "-")
        key, request, certificate, extensions = (
            self.directory / f"{name}.{ending}" for ending in ("key", "csr", "crt", "ext")
        )
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        extensions.write_text("extendedKeyUsage=clientAuth\n")
        ca, ca_key = self.fairway.data / "pki" / "ca.crt", self.fairway.data / "pki" / "ca.key"
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", key, "-out", request, "-subj", subject)
        openssl("x509", "-req", "-in", request, "-days", "1", "-extfile", extensions, "-out", certificate,
                "-CA", ca, "-CAkey", ca_key, "-CAserial", self.directory / f"{name}.srl", "-CAcreateserial")
        return self.write(name, {"client-certificate": str(certificate), "client-key": str(key)})

    def account(self, namespace, name):
        """A kubeconfig for a service account that exists."""
        token = self.fairway.kubectl("create", "token", name, "-n", namespace, "--duration", "2h").strip()
        return self.write(f"{namespace}-{name}", {"token": token})

    def write(self, name, user):
        path = self.directory / f"{name}.kubeconfig"
        cluster = {"server": self.fairway.server, "certificate-authority": str(self.fairway.data / "pki" / "ca.crt")}
        path.touch(mode=0o600)
        path.write_text(json.dumps({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fairway", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "fairway", "user": name}}],
            "current-context": name,
        }))
        return path


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
