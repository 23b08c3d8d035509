//! A domain completes and judges objects of its kinds: virtual machines, as KubeVirt's clients meet them.

use std::path::Path;

use fairway_api::fairway::{IMPACT_ANNOTATION as IMPACT, IMPACT_REASON_ANNOTATION};
use serde_json::{Value, json};

use crate::harness::{DEFINITIONS, Server, names, version};
use crate::workspaces::workspace;

const A: &str = "aaaaaaaaaaaaaaaa";
const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines";
const INSTANCES: &str = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances";
const KUBEVIRTS: &str = "/apis/kubevirt.io/v1/namespaces/default/kubevirts";
const VOLUMES: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes";
const ENGINE: &str = "system:serviceaccount:kube-system:fairway-machines-engine";
const NODE: &str = "system:serviceaccount:kube-system:fairway-machines-node";
const WIRING: &str = "system:serviceaccount:kube-system:fairway-machines-wiring";

fn at(path: &str) -> String {
    format!("/clusters/{A}{path}")
}

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
        "spec": {
            "runStrategy": "Always",
            "template": {"spec": {
                "domain": {"cpu": {"cores": 1}, "memory": {"guest": "1Gi"},
                           "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
                "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
            }},
        },
    })
}

fn instance(name: &str) -> Value {
    let spec = machine(name)["spec"]["template"]["spec"].clone();
    json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_machine_is_completed_and_its_author_owns_what_he_wrote() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut vm = machine("web");
    vm["spec"]["template"]["spec"]["schedulerName"] = json!("theirs");
    let path = format!("{MACHINES}/web");
    let apply = format!("{path}?fieldManager=author");
    let reply = admin.patch("apply", &apply, &vm).await;
    let made = reply.expect(201);
    assert_eq!(
        reply.warnings(),
        [
            "299 - \"spec.template.spec.schedulerName: there is no scheduler \\\"theirs\\\"; the built-in one places the machine\""
        ]
    );
    let spec = &made["spec"]["template"]["spec"];
    assert_eq!(spec["architecture"], "amd64");
    assert_eq!(spec["domain"]["machine"]["type"], "q35");
    let fields = |object: &Value| object["metadata"]["managedFields"].to_string();
    assert!(
        !fields(&made).contains("f:architecture"),
        "nobody wrote it: {}",
        fields(&made)
    );
    assert!(fields(&made).contains("f:runStrategy"));
    // The same again changes nothing, though the object has more than was applied.
    let again = admin.patch("apply", &apply, &vm).await.expect(200);
    assert_eq!(version(&again), version(&made));
    // Who writes what was filled in owns it, and conflicts with nobody.
    let mut other =
        json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": {"template": {"spec": {}}}});
    other["spec"]["template"]["spec"] = json!({"architecture": "amd64", "domain": {"devices": {}}});
    let shared = admin
        .patch("apply", &format!("{path}?fieldManager=other"), &other)
        .await
        .expect(200);
    assert!(fields(&shared).contains("f:architecture"));
    // A field that was filled in and is taken away is filled in again.
    let remove = json!({"spec": {"template": {"spec": {"architecture": null}}}});
    let kept = admin.patch("merge", &path, &remove).await.expect(200);
    assert_eq!(kept["spec"]["template"]["spec"]["architecture"], "amd64");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(kept["metadata"]["generation"], 1, "nothing has changed");
}

#[tokio::test]
async fn a_wrong_machine_is_refused_as_a_webhook_refuses_it() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut vm = machine("web");
    vm["spec"].as_object_mut().unwrap().shift_remove("runStrategy");
    vm["spec"]["template"]["spec"]["volumes"] = json!([]);
    let status = admin.post(MACHINES, &vm).await.refused(
        422,
        "Invalid",
        "admission webhook \"virtualmachine-validator.kubevirt.io\" denied the request: \
         spec.template.spec.domain.devices.disks[0].Name 'root' not found., RunStrategy must be specified",
    );
    assert_eq!(
        status["details"],
        json!({"causes": [
            {"reason": "FieldValueInvalid", "field": "spec.template.spec.domain.devices.disks[0].name",
             "message": "spec.template.spec.domain.devices.disks[0].Name 'root' not found."},
            {"reason": "FieldValueInvalid", "field": "spec.running", "message": "RunStrategy must be specified"},
        ]}),
        "no object is named, so clients list what is wrong"
    );
    admin.get(&format!("{MACHINES}/web")).await.expect(404);
    // What the schema refuses never comes to the domain.
    vm["spec"]["template"] = json!({"spec": {"domain": {"cpu": {"cores": "many"}, "devices": {}}}});
    admin
        .post(MACHINES, &vm)
        .await
        .refused(422, "Invalid", "VirtualMachine.kubevirt.io \"web\" is invalid");
    let disk = json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "d"},
                      "spec": {"source": {"blank": {}}}});
    let refused = admin.post(VOLUMES, &disk).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.json()["message"],
        "admission webhook \"datavolume-validate.cdi.kubevirt.io\" denied the request:  Missing Data volume PVC"
    );
}

#[tokio::test]
async fn a_dry_run_is_told_what_a_change_does() {
    let server = Server::start().await;
    let admin = server.admin();
    let engine = server.part(ENGINE);
    let (path, dry) = (format!("{MACHINES}/web"), "dryRun=All");
    let asked = admin
        .post(&format!("{MACHINES}?{dry}"), &machine("web"))
        .await
        .expect(201);
    assert_eq!(asked["metadata"]["annotations"][IMPACT], "none");
    admin.get(&path).await.expect(404);
    let made = admin.post(MACHINES, &machine("web")).await.expect(201);
    assert!(
        made["metadata"].get("annotations").is_none(),
        "only dry runs are told"
    );
    engine.post(INSTANCES, &instance("web")).await.expect(201);
    let cores = json!({"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}});
    let told = admin
        .patch("merge", &format!("{path}?{dry}"), &cores)
        .await
        .expect(200);
    assert_eq!(told["metadata"]["annotations"][IMPACT], "restart");
    assert_eq!(
        told["metadata"]["annotations"][IMPACT_REASON_ANNOTATION],
        "spec.template.spec.domain.cpu.cores takes effect at the next start"
    );
    let memory = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
                        "spec": {"template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "2Gi"}}}}}});
    let told = admin
        .patch(
            "apply",
            &format!("{path}?{dry}&fieldManager=a&force=true"),
            &memory,
        )
        .await
        .expect(200);
    assert_eq!(told["metadata"]["annotations"][IMPACT], "live change");
    let told = admin.delete(&format!("{path}?{dry}")).await.expect(200);
    assert_eq!(told["kind"], "VirtualMachine");
    assert_eq!(told["metadata"]["annotations"][IMPACT], "re-creation");
    let stored = admin.get(&path).await.expect(200);
    assert_eq!(version(&stored), version(&made), "nothing was done");
    // Where no domain knows, nothing is said.
    let config = json!({"metadata": {"name": "c"}});
    let map = admin
        .post(&format!("/api/v1/namespaces/default/configmaps?{dry}"), &config)
        .await
        .expect(201);
    assert!(map["metadata"].get("annotations").is_none());
}

#[tokio::test]
async fn instances_belong_to_the_control_plane() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    let (admin, engine) = (server.admin(), server.part(ENGINE));
    for prefix in [String::new(), format!("/clusters/{A}")] {
        let path = format!("{prefix}{INSTANCES}");
        let mut asked = instance("web");
        asked["status"] = json!({"nodeName": "mine"});
        asked["metadata"]["annotations"] = json!({"fairway.dev/address": "10.88.0.9"});
        let made = admin.post(&path, &asked).await.expect(201);
        assert_eq!(made["status"]["phase"], "Pending");
        assert!(made["status"].get("nodeName").is_none());
        assert!(
            made["metadata"]["annotations"]
                .get("fairway.dev/address")
                .is_none()
        );
        assert_eq!(
            made["metadata"]["finalizers"],
            json!(["foregroundDeleteVirtualMachine"])
        );
        let one = format!("{path}/web");
        let placed = json!({"status": {"nodeName": "n1", "phase": "Scheduled"},
                            "metadata": {"labels": {"kubevirt.io/nodeName": "n1"}}});
        let same = admin
            .patch("merge", &one, &json!({"status": placed["status"]}))
            .await
            .expect(200);
        assert!(
            same["status"].get("nodeName").is_none(),
            "a person does not place it"
        );
        admin
            .patch("merge", &one, &placed)
            .await
            .refused(422, "Invalid", "reserved kubevirt.io/ labels");
        let placed = engine.patch("merge", &one, &placed).await.expect(200);
        assert_eq!(placed["status"]["nodeName"], "n1");
        assert_eq!(
            placed["metadata"]["generation"], 2,
            "as upstream, which has no subresource for it"
        );
        let node = server.part(NODE);
        let running = json!({"status": {"phase": "Running"}});
        assert_eq!(
            node.patch("merge", &one, &running).await.expect(200)["status"]["phase"],
            "Running"
        );
        let address = json!({"metadata": {"annotations": {"fairway.dev/address": "10.88.0.2"}}});
        let written = |object: Value| object["metadata"]["annotations"]["fairway.dev/address"].clone();
        assert_eq!(
            written(engine.patch("merge", &one, &address).await.expect(200)),
            Value::Null
        );
        let pretender = admin.with("Impersonate-User", WIRING);
        let pretended = written(pretender.patch("merge", &one, &address).await.expect(200));
        assert_eq!(
            pretended.is_null(),
            !prefix.is_empty(),
            "who rules a workspace is not the platform"
        );
        let wiring = server.part(WIRING);
        assert_eq!(
            written(wiring.patch("merge", &one, &address).await.expect(200)),
            "10.88.0.2"
        );
        let spec = json!({"spec": {"domain": {"memory": {"guest": "2Gi"}}}});
        admin
            .patch("merge", &one, &spec)
            .await
            .refused(422, "Invalid", "update of VMI object is restricted");
        engine.patch("merge", &one, &spec).await.expect(200);
    }
}

#[tokio::test]
async fn a_workspace_has_settings_of_its_own_within_the_platforms() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    let admin = server.admin();
    let kubevirt = |configuration: Value| {
        json!({"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
               "spec": {"configuration": configuration}})
    };
    let board = |made: &Value| made["spec"]["template"]["spec"]["domain"]["machine"]["type"].clone();
    let platform = kubevirt(json!({"machineType": "pc-q35-7.2"}));
    admin.post(KUBEVIRTS, &platform).await.expect(201);
    admin
        .post(KUBEVIRTS, &kubevirt(json!({})))
        .await
        .refused(400, "", "Kubevirt is already created");
    let made = admin.post(&at(MACHINES), &machine("one")).await.expect(201);
    assert_eq!(board(&made), "pc-q35-7.2");
    let own = kubevirt(
        json!({"machineType": "pc-q35-6.2", "developerConfiguration": {"featureGates": ["HostDisk"]}}),
    );
    admin.post(&at(KUBEVIRTS), &own).await.expect(201);
    let made = admin.post(&at(MACHINES), &machine("two")).await.expect(201);
    assert_eq!(board(&made), "pc-q35-6.2");
    let mut vm = machine("three");
    vm["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "root", "hostDisk": {"path": "/etc/shadow", "type": "Disk"}}]);
    admin
        .post(&at(MACHINES), &vm)
        .await
        .refused(422, "Invalid", "HostDisk feature gate is not enabled");
    let made = admin.post(MACHINES, &machine("four")).await.expect(201);
    assert_eq!(board(&made), "pc-q35-7.2");
}

#[tokio::test]
async fn disks_are_copied_from_where_their_author_may_read() {
    let server = Server::start().await;
    let admin = server.admin();
    server.namespace("images").await;
    let copy = json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "copy"},
                      "spec": {"source": {"pvc": {"name": "gold", "namespace": "images"}}, "storage": {}}});
    let grant = |namespace: &str, role: &str| {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
        let binding = json!({"metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}]});
        let admin = admin.clone();
        async move { admin.post(&path, &binding).await.expect(201) }
    };
    grant("default", "edit").await;
    let ann = server.user("ann", &["system:authenticated"]);
    let refused = ann.post(VOLUMES, &copy).await;
    assert_eq!(refused.code, 422);
    assert!(
        refused
            .text()
            .contains("User ann has insufficient permissions in clone source namespace images"),
        "{}",
        refused.text()
    );
    grant("images", "view").await;
    ann.post(VOLUMES, &copy).await.expect(201);
}

#[tokio::test]
async fn policies_see_what_the_domain_filled_in() {
    let server = Server::start().await;
    let admin = server.admin();
    let policy = json!({"metadata": {"name": "boards"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": ["kubevirt.io"], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["virtualmachines"]}]},
        "validations": [{"expression": "object.spec.template.spec.domain.machine.type != 'q35'",
                         "message": "no boards without a version"}]}});
    let group = "/apis/admissionregistration.k8s.io/v1";
    admin
        .post(&format!("{group}/validatingadmissionpolicies"), &policy)
        .await
        .expect(201);
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "boards", "validationActions": ["Deny"]}});
    admin
        .post(&format!("{group}/validatingadmissionpolicybindings"), &binding)
        .await
        .expect(201);
    admin
        .post(MACHINES, &machine("web"))
        .await
        .refused(422, "Invalid", "no boards without a version");
}

#[tokio::test]
async fn a_workspace_that_serves_the_kind_itself_is_left_alone() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    let admin = server.admin();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "virtualmachines.kubevirt.io", "annotations": {"fairway.dev/served-by": "definition"}},
        "spec": {"group": "kubevirt.io", "scope": "Namespaced",
            "names": {"plural": "virtualmachines", "singular": "virtualmachine", "kind": "VirtualMachine"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    admin.post(&at(DEFINITIONS), &crd).await.expect(201);
    let bare =
        json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "bare"}});
    admin.post(&at(MACHINES), &bare).await.expect(201);
    admin
        .post(MACHINES, &bare)
        .await
        .refused(422, "Invalid", "spec: Required value");
    assert_eq!(names(&admin.get(&at(MACHINES)).await.expect(200)), ["bare"]);
}

/// What is said to each manifest about machines of the conformance data: the code, and words of the message or the
/// warnings.
const SEEDS: [(&str, u16, &[&str]); 5] = [
    (
        "001/10-hyperconverged-kubevirt-hyperconverged.yaml",
        201,
        &[
            "spec.featureGates: no effect",
            "spec.configuration: HyperConverged has no such field",
        ],
    ),
    (
        "001/11-networkattachmentdefinition-prod-management-network.yaml",
        201,
        &["networks of type macvlan are not available"],
    ),
    (
        "001/12-networkattachmentdefinition-staging-management-network.yaml",
        201,
        &["networks of type macvlan are not available"],
    ),
    (
        "001/20-virtualmachine-scalable-vm-template.yaml",
        422,
        &["RunStrategy must be specified"],
    ),
    (
        "004/01-virtualmachine-dev-k8s-cluster.yaml",
        201,
        &["spec.running is deprecated, please use spec.runStrategy instead."],
    ),
];

#[tokio::test]
async fn manifests_of_the_conformance_data() {
    let Some(folder) = std::env::var_os("FAIRWAY_CONFORMANCE") else {
        println!("SKIPPED: FAIRWAY_CONFORMANCE does not name a folder with manifests");
        return;
    };
    let folder = Path::new(&folder).join("seeds");
    let server = Server::start().await;
    let admin = server.admin();
    for (file, code, words) in SEEDS {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let limits = fairway_text_yaml::Limits::default();
        let mut object = fairway_text_yaml::from_str(&text, limits).unwrap();
        let namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
        let path = path_of(&object, &namespace);
        if admin.get(&format!("/api/v1/namespaces/{namespace}")).await.code == 404 {
            server.namespace(&namespace).await;
        }
        let reply = admin.post(&path, &object).await;
        let said = format!("{} {}", reply.text(), reply.warnings().join("\n"));
        assert_eq!(reply.code, code, "{file}: {said}");
        for word in words {
            assert!(said.contains(word), "{file}: {word:?} is not said: {said}");
        }
        if code == 422 {
            // With what its reason asks for it is right.
            object["spec"]["runStrategy"] = json!("Halted");
            let reply = admin.post(&path, &object).await;
            reply.expect(201);
            assert_eq!(reply.warnings(), [""; 0], "{file}");
        }
    }
}

fn path_of(object: &Value, namespace: &str) -> String {
    let plural = match object["kind"].as_str().unwrap() {
        "NetworkAttachmentDefinition" => "network-attachment-definitions".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    let version = object["apiVersion"].as_str().unwrap();
    format!("/apis/{version}/namespaces/{namespace}/{plural}")
}
