"""git as a person has it, with a repository that Fairway hosts."""

import subprocess

from world import servers


def git(place, tree, *words):
    """git in a working tree, with the credentials and the authority of a place; what became of it."""
    trust = {"GIT_SSL_CAINFO": str(place.world.data / "pki" / "ca.crt"), "GIT_AUTHOR_NAME": "Demo",
             "GIT_AUTHOR_EMAIL": "demo@example.com", "GIT_COMMITTER_NAME": "Demo", "GIT_COMMITTER_EMAIL": "demo@example.com"}
    environment = {**servers.environment(place.kubeconfig, place.world.scratch, place.world.binary), **trust}
    return subprocess.run(["git", "-c", "http.sslCAInfo=" + trust["GIT_SSL_CAINFO"], *words], cwd=tree, env=environment,
                          capture_output=True, text=True, timeout=300)
