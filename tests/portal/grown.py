"""Applications as they are after months of work: with objects, a history, the last operation and conditions, some twelve kilobytes each.

A thousand empty ones would measure nothing: of what a list of Applications weighs, nearly everything is status.
"""

import datetime
import hashlib

URL = "https://git.example.invalid/many.git"
SYNCS = 10

# Fifteen objects, as a service with a database has them: kind, group and version, what its name ends with, whether it has health of its own.
PARTS = [
    ("Namespace", "", "v1", None, False),
    ("ServiceAccount", "", "v1", "", False),
    ("ConfigMap", "", "v1", "-settings", False),
    ("ConfigMap", "", "v1", "-dashboards", False),
    ("Secret", "", "v1", "-credentials", False),
    ("PersistentVolumeClaim", "", "v1", "-data", True),
    ("Service", "", "v1", "", True),
    ("Service", "", "v1", "-database", True),
    ("Deployment", "apps", "v1", "", True),
    ("StatefulSet", "apps", "v1", "-database", True),
    ("HorizontalPodAutoscaler", "autoscaling", "v2", "", True),
    ("PodDisruptionBudget", "policy", "v1", "", True),
    ("NetworkPolicy", "networking.k8s.io", "v1", "", False),
    ("Ingress", "networking.k8s.io", "v1", "", True),
    ("Job", "batch", "v1", "-migrate", True),
]
HOOK = "Job"

BEGAN = datetime.datetime(2026, 1, 1, 8, 0, tzinfo=datetime.timezone.utc)


def at(number, step, seconds=0):
    moment = BEGAN + datetime.timedelta(days=step * 9, minutes=number % 600, seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def revision(number, step):
    return hashlib.sha1(f"{number} {step}".encode()).hexdigest()


def applications(count):
    return [application(number) for number in range(count)]


def application(number):
    name, place = f"many-{number:04}", f"n{number % 20}"
    source = {"repoURL": URL, "path": f"services/{name}/overlays/production", "targetRevision": "main"}
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": name, "namespace": "openshift-gitops",
            "labels": {"team": f"t{number % 10}", "app.kubernetes.io/part-of": f"product-{number % 25}", "environment": "production"},
            # Nobody is to fetch a thousand times from nowhere while a browser is measured.
            "annotations": {"argocd.argoproj.io/skip-reconcile": "true", "notifications.argoproj.io/subscribe.on-sync-failed.email": f"t{number % 10}@example.com"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": place},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"], "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}}},
        },
        "status": status(number, name, place, source),
    }


def status(number, name, place, source):
    degraded, drifted = number % 40 == 7, number % 25 == 3
    last = at(number, SYNCS, 40)
    resources = [resource(part, name, place, degraded, drifted) for part in PARTS]
    found = {
        "health": {"status": "Degraded" if degraded else "Healthy", "lastTransitionTime": last},
        "sync": {"status": "OutOfSync" if drifted else "Synced", "revision": revision(number, SYNCS),
                 "comparedTo": {"source": source, "destination": {"name": "in-cluster", "namespace": place}}},
        "resources": [it for it in resources if it["kind"] != HOOK],
        "history": [entry(number, step, source) for step in range(1, SYNCS + 1)],
        "operationState": operation(number, name, place, source),
        "summary": {"images": [f"registry.example.com/product-{number % 25}/{name}:2.{SYNCS}.{number % 7}", "registry.example.com/base/postgres:17.4"],
                    "externalURLs": [f"https://{name}.apps.example.com/"]},
        "reconciledAt": last, "sourceType": "Kustomize", "controllerNamespace": "openshift-gitops", "resourceHealthSource": "appTree",
    }
    if drifted:
        found["conditions"] = [
            {"type": "SharedResourceWarning", "lastTransitionTime": last, "message": f"ConfigMap/{name}-dashboards is part of applications openshift-gitops/{name} and openshift-gitops/dashboards"},
            {"type": "OrphanedResourceWarning", "lastTransitionTime": last, "message": "Application has 3 orphaned resources"},
        ]
    return found


def resource(part, name, place, degraded, drifted):
    kind, group, version, suffix, healthy = part
    made = {"kind": kind, "version": version, "name": place if suffix is None else name + suffix, "status": "Synced"}
    if group:
        made["group"] = group
    if suffix is not None:
        made["namespace"] = place
    if healthy:
        made["health"] = {"status": "Healthy"}
    if degraded and kind == "Deployment":
        made["health"] = {"status": "Degraded", "message": f"Deployment \"{name}\" exceeded its progress deadline"}
    if drifted and suffix == "-settings":
        made["status"] = "OutOfSync"
    return made


def entry(number, step, source):
    who = {"automated": True} if step % 3 else {"username": f"person-{number % 10}@example.com"}
    return {"id": step, "revision": revision(number, step), "source": source, "initiatedBy": who, "deployStartedAt": at(number, step), "deployedAt": at(number, step, 30)}


def operation(number, name, place, source):
    """The last sync, with what became of each object."""
    results = []
    for kind, group, version, suffix, _ in PARTS:
        own = place if suffix is None else name + suffix
        result = {"group": group, "kind": kind, "version": version, "namespace": place, "name": own, "syncPhase": "Sync"}
        if kind == HOOK:
            result |= {"syncPhase": "PreSync", "hookType": "PreSync", "hookPhase": "Succeeded", "message": f"job {own} completed"}
        else:
            result |= {"status": "Synced", "hookPhase": "Running", "message": f"{kind.lower()}{'.' + group if group else ''}/{own} serverside-applied"}
        results.append(result)
    return {
        "phase": "Succeeded", "message": "successfully synced (all tasks run)", "startedAt": at(number, SYNCS), "finishedAt": at(number, SYNCS, 30),
        "operation": {"initiatedBy": {"automated": True}, "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}},
                      "sync": {"revision": revision(number, SYNCS), "prune": True, "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]}},
        "syncResult": {"revision": revision(number, SYNCS), "source": source, "resources": results},
    }
