//! Where instances are placed, as tables: a world, a wish, and the node or the reasons.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_machines_plan::machine::CpuModel;
use fairway_text_yaml as yaml;
use serde_json::{Value, json};

use super::*;
use crate::schedule::node::tests::node;

fn read(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

/// Nodes by a line each: `n1 cpu=2 memory=4Gi zone=a taint=gpu:NoSchedule cordoned`.
fn nodes(lines: &str) -> Vec<Arc<Node>> {
    let lines = lines.split(';').map(str::trim).filter(|it| !it.is_empty());
    let parsed = lines.map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let mut object = json!({
            "metadata": {"name": name, "labels": {
                "kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
            }},
            "spec": {"taints": []},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        for word in words {
            match word.split_once('=') {
                None if word == "cordoned" => object["spec"]["unschedulable"] = json!(true),
                None => object["status"]["conditions"][0]["status"] = json!(word),
                Some(("taint", taint)) => {
                    let (key, effect) = taint.split_once(':').unwrap();
                    let taints = object["spec"]["taints"].as_array_mut().unwrap();
                    taints.push(json!({"key": key, "effect": effect}));
                }
                Some(("own", amount)) => {
                    object["status"]["allocatable"]["fairway.dev/dedicated-cpus"] = json!(amount);
                }
                Some((name, amount)) if matches!(name, "cpu" | "memory") || name.starts_with("hugepages-") => {
                    object["status"]["allocatable"][name] = json!(amount);
                }
                Some((key, value)) => object["metadata"]["labels"][key] = json!(value),
            }
        }
        Arc::new(node(object))
    });
    parsed.collect()
}

/// Neighbours by a word each: `n1:app=web` or `n1:app=web/other-namespace`.
fn neighbours(words: &str) -> Vec<Neighbour> {
    let parsed = words.split_whitespace().map(|word| {
        let (node, rest) = word.split_once(':').unwrap();
        let (label, namespace) = rest.split_once('/').unwrap_or((rest, "vms"));
        let (key, value) = label.split_once('=').unwrap();
        Neighbour {
            namespace: namespace.to_owned(),
            labels: [(key.to_owned(), value.to_owned())].into(),
            node: node.to_owned(),
            ..Neighbour::default()
        }
    });
    parsed.collect()
}

/// An instance of 1 Gi without overhead.
fn needs(spec: &str) -> Needs {
    let mut vmi = json!({
        "metadata": {"namespace": "vms", "labels": {"app": "web"}},
        "spec": {"architecture": "amd64", "domain": {
            "resources": {"requests": {"memory": "1Gi", "cpu": "1"}, "overcommitGuestOverhead": true},
        }},
    });
    for (field, value) in read(spec).as_object().unwrap() {
        vmi["spec"][field] = value.clone();
    }
    Needs::of(&vmi, Vec::new()).unwrap()
}

fn placed(needs: &Needs, nodes: &[Arc<Node>], neighbours: &[Neighbour]) -> String {
    let used: BTreeMap<String, Amounts> = neighbours
        .iter()
        .map(|it| {
            (
                it.node.clone(),
                [("memory".into(), 1 << 30), ("cpu".into(), 1000)].into(),
            )
        })
        .collect();
    let namespaces = [(
        "prod".to_owned(),
        [("stage".to_owned(), "prod".to_owned())].into(),
    )]
    .into();
    let world = World {
        nodes,
        used: &used,
        neighbours,
        namespaces: &namespaces,
    };
    match place(needs, &world) {
        Placement::Node(name) => name,
        Placement::None(why) => why,
    }
}

fn check(cases: &[(&str, &str, &str, &str, &str)]) {
    for (name, lines, words, spec, expected) in cases {
        let found = placed(&needs(spec), &nodes(lines), &neighbours(words));
        assert_eq!(found, *expected, "{name}");
    }
}

#[test]
fn resources() {
    check(&[
        (
            "nothing there",
            "",
            "",
            "{}",
            "no nodes available to schedule pods",
        ),
        ("one that fits", "n1", "", "{}", "n1"),
        ("the emptiest", "n1; n2", "n1:app=db", "{}", "n2"),
        ("alike: the first by name", "n2; n1", "", "{}", "n1"),
        ("the larger", "n1; n2 memory=16Gi cpu=8", "", "{}", "n2"),
        (
            "too small",
            "n1 memory=512Mi; n2 cpu=500m; n3 cpu=100m memory=1Mi",
            "",
            "{}",
            "0/3 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.",
        ),
        (
            "full",
            "n1 memory=1Gi",
            "n1:app=db",
            "{}",
            "0/1 nodes are available: 1 Insufficient memory.",
        ),
        (
            "a device that nobody has",
            "n1; n2",
            "",
            "{domain: {devices: {gpus: [{name: g, deviceName: x/gpu}]}}}",
            "0/2 nodes are available: 2 Insufficient x/gpu.",
        ),
    ]);
}

#[test]
fn large_pages_are_had_where_nodes_have_them() {
    let spec = "{domain: {memory: {guest: 1Gi, hugepages: {pageSize: 2048Ki}}, \
                 resources: {requests: {memory: 1Gi, cpu: 1}, overcommitGuestOverhead: true}}}";
    let pinned = "{nodeSelector: {zone: a}, domain: {memory: {guest: 1Gi, hugepages: {pageSize: 2Mi}}, \
                   resources: {requests: {memory: 1Gi, cpu: 1}, overcommitGuestOverhead: true}}}";
    check(&[
        (
            "where they are",
            "n1 memory=64Gi; n2 hugepages-2Mi=1Gi memory=1Gi",
            "",
            spec,
            "n2",
        ),
        (
            "not at all: ordinary memory stands in",
            "n1; n2 hugepages-1Gi=8Gi",
            "",
            spec,
            "n1",
        ),
        (
            "which must be there",
            "n1 memory=512Mi",
            "",
            spec,
            "0/1 nodes are available: 1 Insufficient memory.",
        ),
        (
            "and which is counted",
            "n1 memory=1536Mi",
            "n1:app=db",
            spec,
            "0/1 nodes are available: 1 Insufficient memory.",
        ),
        (
            "too few on one node, and nothing else may use its memory for that",
            "n1 hugepages-2Mi=512Mi",
            "",
            spec,
            "0/1 nodes are available: 1 Insufficient hugepages-2Mi.",
        ),
        (
            "too few on one, none on another",
            "n1 hugepages-2Mi=512Mi; n2",
            "",
            spec,
            "n2",
        ),
        (
            "not where it may run",
            "n1 zone=a; n2 zone=b hugepages-2Mi=4Gi",
            "",
            pinned,
            "n1",
        ),
        (
            "not where anything may run",
            "n1; n2 hugepages-2Mi=4Gi cordoned",
            "",
            spec,
            "n1",
        ),
    ]);
    let nodes = nodes("n1 hugepages-2Mi=1Gi; n2");
    let used = [("n1".to_owned(), [("hugepages-2Mi".into(), 1 << 30)].into())].into();
    let world = World {
        nodes: &nodes,
        used: &used,
        neighbours: &[],
        namespaces: &BTreeMap::new(),
    };
    let full = "0/2 nodes are available: 2 Insufficient hugepages-2Mi.".to_owned();
    assert_eq!(
        place(&needs(spec), &world),
        Placement::None(full),
        "they are waited for"
    );
}

#[test]
fn processors_of_its_own_are_waited_for() {
    let two = "{domain: {cpu: {cores: 2, dedicatedCpuPlacement: true}}}";
    let isolated = "{domain: {cpu: {cores: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true}}}";
    let none = "0/1 nodes are available: 1 Insufficient fairway.dev/dedicated-cpus.";
    check(&[
        (
            "where there are enough",
            "n1 own=1 memory=64Gi; n2 own=2",
            "",
            two,
            "n2",
        ),
        ("one more for QEMU", "n1 own=2; n2 own=3", "", isolated, "n2"),
        ("no node gives any", "n1", "", two, none),
        ("nor so many", "n1 own=1", "", two, none),
        (
            "who shares does not care",
            "n1 own=0",
            "",
            "{domain: {cpu: {cores: 2}}}",
            "n1",
        ),
    ]);
    let nodes = nodes("n1 own=3");
    let used = [("n1".to_owned(), needs(two).amounts)].into();
    let world = World {
        nodes: &nodes,
        used: &used,
        neighbours: &[],
        namespaces: &BTreeMap::new(),
    };
    assert_eq!(
        place(&needs(two), &world),
        Placement::None(none.to_owned()),
        "another has them"
    );
}

#[test]
fn nodes_that_do_not_want_it() {
    let bears = "{tolerations: [{key: gpu, operator: Exists}]}";
    check(&[
        ("cordoned", "n1 cordoned; n2", "", "{}", "n2"),
        (
            "all of them",
            "n1 cordoned; n2 taint=gpu:NoSchedule; n3 False; n4 Unknown; n5 kubevirt.io/schedulable=false",
            "",
            "{}",
            "0/5 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint \
             {gpu: }, 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 1 node(s) had untolerated taint \
             {node.kubernetes.io/unreachable: }, 1 node(s) were unschedulable.",
        ),
        ("it bears the taint", "n1 taint=gpu:NoSchedule", "", bears, "n1"),
        (
            "it bears everything",
            "n1 cordoned taint=a:NoExecute",
            "",
            "{tolerations: [{operator: Exists}]}",
            "n1",
        ),
        (
            "better not",
            "n1 taint=a:PreferNoSchedule; n2 memory=2Gi",
            "",
            "{}",
            "n2",
        ),
        ("if it must be", "n1 taint=a:PreferNoSchedule", "", "{}", "n1"),
        (
            "another effect",
            "n1 taint=gpu:NoExecute",
            "",
            "{tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]}",
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: }.",
        ),
    ]);
}

#[test]
fn nodes_that_it_wants() {
    let required = "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
        {matchExpressions: [{key: zone, operator: In, values: [b]}]}, {matchFields: [{key: metadata.name, operator: In, values: [n3]}]},
    ]}}}}";
    let preferred = "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
        {weight: 10, preference: {matchExpressions: [{key: zone, operator: In, values: [b]}]}},
    ]}}}";
    check(&[
        (
            "by a label",
            "n1; n2 disk=ssd",
            "",
            "{nodeSelector: {disk: ssd}}",
            "n2",
        ),
        (
            "that nobody has",
            "n1; n2",
            "",
            "{nodeSelector: {disk: ssd}}",
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
        ),
        ("by a term", "n1 zone=a; n2 zone=b", "", required, "n2"),
        ("by name", "n1 zone=a; n3 zone=a", "", required, "n3"),
        (
            "rather there",
            "n1 zone=a; n2 zone=b memory=2Gi",
            "",
            preferred,
            "n2",
        ),
        (
            "but elsewhere, too",
            "n1 zone=a; n2 zone=b cordoned",
            "",
            preferred,
            "n1",
        ),
        (
            "another kind of processor",
            "n1 kubernetes.io/arch=arm64; n2",
            "",
            "{}",
            "n2",
        ),
    ]);
}

#[test]
fn neighbours_near_and_far() {
    let near = "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
        {labelSelector: {matchLabels: {app: db}}, topologyKey: zone}]}}}";
    let with_itself = "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
        {labelSelector: {matchLabels: {app: web}}, topologyKey: zone}]}}}";
    let far = "{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
        {labelSelector: {matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}]}}}";
    let rather_far = "{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
        {weight: 100, podAffinityTerm: {labelSelector: {matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}}]}}}";
    let far_of_all = "{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
        {labelSelector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {stage: prod}}, topologyKey: kubernetes.io/hostname}]}}}";
    check(&[
        (
            "in the same zone",
            "n1 zone=a; n2 zone=b; n3 zone=b",
            "n2:app=db",
            near,
            "n3",
        ),
        (
            "nobody is there",
            "n1 zone=a",
            "",
            near,
            "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
        ),
        ("the first of its like", "n1 zone=a; n2", "", with_itself, "n1"),
        (
            "the next of its like",
            "n1 zone=a; n2 zone=b",
            "n2:app=web",
            with_itself,
            "n2",
        ),
        ("on another node", "n1; n2 memory=2Gi", "n1:app=web", far, "n2"),
        (
            "no other node",
            "n1",
            "n1:app=web",
            far,
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
        ),
        (
            "one of another namespace does not count",
            "n1",
            "n1:app=web/other",
            far,
            "n1",
        ),
        (
            "unless it is asked for",
            "n1; n2 memory=2Gi",
            "n1:app=web/prod",
            far_of_all,
            "n2",
        ),
        (
            "rather on another",
            "n1 memory=64Gi cpu=64; n2 memory=2Gi",
            "n1:app=web",
            rather_far,
            "n2",
        ),
        ("if there is one", "n1", "n1:app=web", rather_far, "n1"),
    ]);
}

#[test]
fn neighbours_that_want_to_be_alone() {
    let term = json!({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"});
    let mut around = neighbours("n1:app=db");
    around[0].avoids = vec![serde_json::from_value(term).unwrap()];
    let found = placed(
        &needs("{}"),
        &nodes("n1 zone=a; n2 zone=a; n3 zone=b memory=2Gi"),
        &around,
    );
    assert_eq!(found, "n3");
    let found = placed(&needs("{}"), &nodes("n1 zone=a"), &around);
    assert_eq!(
        found,
        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."
    );
}

#[test]
fn spreading() {
    let hard = "{topologySpreadConstraints: [
        {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]}";
    let soft = "{topologySpreadConstraints: [
        {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]}";
    let many = "{topologySpreadConstraints: [
        {maxSkew: 1, minDomains: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]}";
    check(&[
        (
            "the emptier zone",
            "n1 zone=a memory=64Gi; n2 zone=b",
            "n1:app=web",
            hard,
            "n2",
        ),
        (
            "a zone that is full",
            "n1 zone=a; n2 zone=b memory=1Mi; n3",
            "n1:app=web",
            hard,
            "0/3 nodes are available: 1 Insufficient memory, 1 node(s) didn't match pod topology spread constraints, 1 \
             node(s) didn't match pod topology spread constraints (missing required label).",
        ),
        (
            "rather the emptier zone",
            "n1 zone=a memory=64Gi; n2 zone=b",
            "n1:app=web",
            soft,
            "n2",
        ),
        (
            "else the other",
            "n1 zone=a; n2 zone=b memory=1Mi",
            "n1:app=web",
            soft,
            "n1",
        ),
        ("the first of two domains", "n1 zone=a", "", many, "n1"),
        (
            "too few domains",
            "n1 zone=a",
            "n1:app=web",
            many,
            "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.",
        ),
        (
            "others do not count",
            "n1 zone=a; n2 zone=b memory=2Gi",
            "n1:app=db",
            hard,
            "n1",
        ),
    ]);
}

#[test]
fn volumes_that_are_somewhere() {
    let mut needs = needs("{}");
    let at = json!({"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]},
    ]});
    needs.volumes = vec![serde_json::from_value(at).unwrap()];
    assert_eq!(placed(&needs, &nodes("n1 memory=64Gi; n2"), &[]), "n2");
    assert_eq!(
        placed(&needs, &nodes("n1; n2 memory=1Mi"), &[]),
        "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match PersistentVolume's node affinity."
    );
    needs.excluded = vec!["n2".to_owned()];
    assert_eq!(
        placed(&needs, &nodes("n2"), &[]),
        "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
    );
}

#[test]
fn a_guest_that_moves_goes_on_with_the_same_processor() {
    let nodes = nodes(
        "same fairway.dev/accelerator=kvm fairway.dev/processor=Intel-6-85-7-aa;
         newer fairway.dev/accelerator=kvm fairway.dev/processor=Intel-6-106-6-bb;
         other fairway.dev/accelerator=kvm fairway.dev/processor=AMD-25-1-1-cc;
         slow fairway.dev/accelerator=tcg fairway.dev/processor=Intel-6-85-7-aa;
         unasked fairway.dev/processor=AMD-25-1-1-cc",
    );
    let pick = |guest: &str, model: &str, without: &[&str]| {
        let mut needs = needs("{}");
        needs.goes_on = Some((guest.parse().unwrap(), CpuModel::of(model)));
        let left: Vec<Arc<Node>> = nodes
            .iter()
            .filter(|it| !without.contains(&it.name.as_str()))
            .cloned()
            .collect();
        placed(&needs, &left, &[])
    };
    let intel = "kvm/Intel-6-85-7-aa";
    assert_eq!(pick(intel, "", &["unasked"]), "same");
    assert_eq!(pick(intel, "host-model", &["unasked"]), "same");
    assert_eq!(pick("tcg", "", &["unasked"]), "slow");
    assert_eq!(pick(intel, "Nehalem", &["unasked", "same"]), "newer");
    assert_eq!(pick(intel, "", &["same"]), "unasked", "it finds out itself");
    assert_eq!(
        pick(intel, "host-passthrough", &["same", "unasked"]),
        "0/3 nodes are available: 1 node(s) had no KVM, on which the guest runs, 2 node(s) had another processor than the guest's."
    );
    assert_eq!(
        pick(intel, "Nehalem", &["same", "newer", "unasked"]),
        "0/2 nodes are available: 1 node(s) had a processor of another maker than the guest's, 1 node(s) had no KVM, on which the guest runs."
    );
    assert_eq!(
        pick("tcg", "", &["slow", "unasked", "other", "newer"]),
        "0/1 nodes are available: 1 node(s) had KVM, and the guest is emulated."
    );
}
