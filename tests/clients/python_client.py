"""The Python client (PyPI `kubernetes`) against the server of $KUBECONFIG: typed, dynamic and custom objects, paging,
watching, patching, applying, errors, leader election. Run by run.py, against Fairway and against kube-apiserver alike.
"""

import datetime
import os
import pathlib
import threading
import time
import unittest

import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

NAMESPACE = "python"
FILES = pathlib.Path(__file__).resolve().parent / "files"


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"made-by": "python"}), data=data)


class PythonClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config.load_kube_config()
        cls.core = client.CoreV1Api()
        cls.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))

    @classmethod
    def tearDownClass(cls):
        cls.core.delete_namespace(NAMESPACE)

    def refused(self, code, reason, call, *arguments, **options):
        """The call must be answered with this code and reason; returns the Status."""
        with self.assertRaises(ApiException) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.status, code)
        status = yaml.safe_load(caught.exception.body)
        self.assertEqual((status["kind"], status["reason"]), ("Status", reason))
        return status

    def test_version_and_discovery(self):
        version = client.VersionApi().get_code()
        self.assertEqual((version.major, version.minor), ("1", "36"))
        groups = {group.name for group in client.ApisApi().get_api_versions().groups}
        self.assertLessEqual({"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io"}, groups)

    def test_create_read_replace_delete(self):
        created = self.core.create_namespaced_config_map(NAMESPACE, config_map("plain", colour="blue"))
        self.assertTrue(created.metadata.uid)
        self.assertIsInstance(created.metadata.creation_timestamp, datetime.datetime)

        created.data["colour"] = "red"
        replaced = self.core.replace_namespaced_config_map("plain", NAMESPACE, created)
        self.assertNotEqual(replaced.metadata.resource_version, created.metadata.resource_version)
        status = self.refused(
            409, "Conflict", self.core.replace_namespaced_config_map, "plain", NAMESPACE, created
        )
        self.assertEqual(status["details"]["name"], "plain")

        self.core.delete_namespaced_config_map("plain", NAMESPACE)
        self.refused(404, "NotFound", self.core.read_namespaced_config_map, "plain", NAMESPACE)

    def test_errors_carry_reasons(self):
        self.core.create_namespaced_config_map(NAMESPACE, config_map("twice"))
        self.refused(
            409, "AlreadyExists", self.core.create_namespaced_config_map, NAMESPACE, config_map("twice")
        )
        status = self.refused(
            422, "Invalid", self.core.create_namespaced_config_map, NAMESPACE, config_map("Not_Good")
        )
        self.assertEqual(status["details"]["causes"][0]["field"], "metadata.name")
        self.refused(
            404, "NotFound", self.core.create_namespaced_config_map, "no-such-namespace", config_map("lost")
        )

    def test_paging_sees_one_snapshot(self):
        for number in range(7):
            self.core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number}"))
        names, token = [], None
        while True:
            page = self.core.list_namespaced_config_map(
                NAMESPACE, label_selector="made-by=python", limit=3, _continue=token
            )
            names += [item.metadata.name for item in page.items]
            token = page.metadata._continue
            if len(names) == 3:
                self.core.create_namespaced_config_map(NAMESPACE, config_map("page-late"))
            if not token:
                break
        self.assertEqual([name for name in names if name.startswith("page-")], [f"page-{n}" for n in range(7)])

    def test_patches(self):
        self.core.create_namespaced_service(
            NAMESPACE,
            client.V1Service(
                metadata=client.V1ObjectMeta(name="web"),
                spec=client.V1ServiceSpec(ports=[client.V1ServicePort(name="http", port=80)]),
            ),
        )
        ports = [{"name": "https", "port": 443}]
        patched = self.core.patch_namespaced_service("web", NAMESPACE, {"spec": {"ports": ports}})
        self.assertEqual(sorted(port.port for port in patched.spec.ports), [80, 443])
        patched = self.core.patch_namespaced_service(
            "web", NAMESPACE, {"spec": {"ports": ports}}, _content_type="application/merge-patch+json"
        )
        self.assertEqual([port.port for port in patched.spec.ports], [443])
        patched = self.core.patch_namespaced_service(
            "web", NAMESPACE, [{"op": "replace", "path": "/spec/ports/0/port", "value": 8443}]
        )
        self.assertEqual(patched.spec.ports[0].port, 8443)
        self.assertTrue(patched.spec.cluster_ip)

    def test_watch_sees_changes_in_order(self):
        listed = self.core.list_namespaced_config_map(NAMESPACE)
        seen = []

        def change():
            self.core.create_namespaced_config_map(NAMESPACE, config_map("watched", n="1"))
            self.core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"n": "2"}})
            self.core.delete_namespaced_config_map("watched", NAMESPACE)

        changing = threading.Timer(0.2, change)
        changing.start()
        for event in watch.Watch().stream(
            self.core.list_namespaced_config_map,
            NAMESPACE,
            field_selector="metadata.name=watched",
            resource_version=listed.metadata.resource_version,
            timeout_seconds=20,
        ):
            seen.append((event["type"], event["object"].data["n"]))
            if event["type"] == "DELETED":
                break
        changing.join()
        self.assertEqual(seen, [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")])

    def test_server_side_apply_with_the_dynamic_client(self):
        resources = dynamic.DynamicClient(client.ApiClient()).resources
        config_maps = resources.get(api_version="v1", kind="ConfigMap")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}

        def apply(manager, value, **options):
            return config_maps.server_side_apply(
                body=dict(body, data={"a": value}), namespace=NAMESPACE, field_manager=manager, **options
            )

        self.assertEqual(apply("alice", "1").data.a, "1")
        with self.assertRaises(dynamic.exceptions.ConflictError):
            apply("bob", "2")
        self.assertEqual(apply("bob", "2", force_conflicts=True).data.a, "2")
        fields = config_maps.get("applied", NAMESPACE).metadata.managedFields
        managers = {entry.manager: entry.operation for entry in fields}
        self.assertEqual(managers, {"bob": "Apply"})

    def test_custom_resources(self):
        definitions = client.ApiextensionsV1Api()
        text = (FILES / "widgets-crd.yaml").read_text()
        for old, new in [("widget", "gadget"), ("Widget", "Gadget"), ("[wd]", "[gd]")]:
            text = text.replace(old, new)
        definition = yaml.safe_load(text)
        definitions.create_custom_resource_definition(definition)
        name = definition["metadata"]["name"]
        try:
            self.until_established(definitions, name)
            custom = client.CustomObjectsApi()
            where = ("shop.example.com", "v1", NAMESPACE, "gadgets")
            body = {
                "apiVersion": "shop.example.com/v1",
                "kind": "Gadget",
                "metadata": {"name": "lamp"},
                "spec": {"colour": "blue"},
            }
            created = self.until_served(lambda: custom.create_namespaced_custom_object(*where, body))
            self.assertEqual(created["spec"]["replicas"], 1)
            self.assertEqual(custom.get_namespaced_custom_object_scale(*where, "lamp")["spec"]["replicas"], 1)
            custom.patch_namespaced_custom_object_status(*where, "lamp", {"status": {"phase": "lit"}})
            self.assertEqual(len(custom.list_namespaced_custom_object(*where)["items"]), 1)
            body["spec"]["colour"] = "pink"
            body["metadata"]["name"] = "pink"
            status = self.refused(422, "Invalid", custom.create_namespaced_custom_object, *where, body)
            self.assertEqual(status["details"]["causes"][0]["field"], "spec.colour")
            custom.delete_namespaced_custom_object(*where, "lamp")
        finally:
            definitions.delete_custom_resource_definition(name)

    def until_established(self, definitions, name):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            conditions = definitions.read_custom_resource_definition(name).status.conditions or []
            if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
                return
            time.sleep(0.05)
        self.fail(f"{name} was never established")

    def until_served(self, call):
        """A kind may be established a moment before every path answers."""
        deadline = time.monotonic() + 20
        while True:
            try:
                return call()
            except ApiException as error:
                if error.status != 404 or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def test_objects_from_a_file(self):
        made = utils.create_from_yaml(client.ApiClient(), str(FILES / "settings.yaml"), namespace=NAMESPACE)
        self.assertEqual(made[0][0].data["size"], "10")

    def test_token_and_access_reviews(self):
        self.core.create_namespaced_service_account(
            NAMESPACE, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot"))
        )
        spec = client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)
        request = client.AuthenticationV1TokenRequest(spec=spec)
        token = self.core.create_namespaced_service_account_token("robot", NAMESPACE, request).status.token
        review = client.AuthenticationV1Api().create_token_review(
            client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
        )
        self.assertEqual(review.status.user.username, f"system:serviceaccount:{NAMESPACE}:robot")

        own = client.Configuration.get_default_copy()
        own.api_key = {"authorization": f"Bearer {token}"}
        own.cert_file = own.key_file = None
        as_robot = client.CoreV1Api(client.ApiClient(own))
        status = self.refused(403, "Forbidden", as_robot.list_namespaced_secret, NAMESPACE)
        self.assertIn(f'User "system:serviceaccount:{NAMESPACE}:robot" cannot list', status["message"])

        access = client.AuthorizationV1Api().create_subject_access_review(
            client.V1SubjectAccessReview(
                spec=client.V1SubjectAccessReviewSpec(
                    user="somebody", resource_attributes=client.V1ResourceAttributes(verb="get", resource="nodes")
                )
            )
        )
        self.assertFalse(access.status.allowed)

    @unittest.skipIf(os.environ.get("IN_WORKSPACE"), "nobody gets into a workspace without a name")
    def test_anonymous_requests_reach_health_and_version_only(self):
        own = client.Configuration.get_default_copy()
        own.cert_file = own.key_file = None
        own.api_key = {}
        anonymous = client.ApiClient(own)
        self.assertEqual(client.VersionApi(anonymous).get_code().minor, "36")
        for path, code in [("/livez", 200), ("/readyz", 200), ("/healthz", 200), ("/apis", 403), ("/metrics", 403)]:
            try:
                answer = anonymous.call_api(path, "GET", _preload_content=False)
                self.assertEqual(answer.status, code, path)
            except ApiException as error:
                self.assertEqual(error.status, code, path)
        status = self.refused(403, "Forbidden", client.CoreV1Api(anonymous).list_namespace)
        self.assertIn('User "system:anonymous" cannot list resource "namespaces"', status["message"])

    def test_delete_collection(self):
        for number in range(3):
            body = config_map(f"gone-{number}")
            body.metadata.labels["gone"] = "yes"
            self.core.create_namespaced_config_map(NAMESPACE, body)
        self.core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="gone=yes")
        self.assertEqual(self.core.list_namespaced_config_map(NAMESPACE, label_selector="gone=yes").items, [])

    def test_leader_election(self):
        led = threading.Event()
        election = electionconfig.Config(
            ConfigMapLock("election", NAMESPACE, "first"),
            lease_duration=4,
            renew_deadline=3,
            retry_period=1,
            onstarted_leading=led.set,
            onstopped_leading=lambda: None,
        )
        # The library's loop has no end; it dies with this process.
        threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True).start()
        self.assertTrue(led.wait(20), "nobody was elected")
        lock = self.core.read_namespaced_config_map("election", NAMESPACE)
        self.assertIn('"holderIdentity": "first"', lock.metadata.annotations["control-plane.alpha.kubernetes.io/leader"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
