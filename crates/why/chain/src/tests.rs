//! Statuses as Fairway writes them, and the link that each of them breaks.

use fairway_text_yaml as yaml;
use serde_json::Value;

use super::*;

mod asked;

fn read(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

/// Facts from YAML.
fn facts(text: &str) -> Facts {
    let all = read(text);
    let list = |name: &str| all[name].as_array().cloned().unwrap_or_default();
    let object = |name: &str| all.get(name).filter(|it| it.is_object()).cloned();
    Facts {
        voyage: object("voyage"),
        application: object("application"),
        project: object("project"),
        repository: object("repository"),
        services: list("services"),
        endpoint_slices: list("slices"),
        routes: list("routes"),
        gateways: list("gateways"),
        policies: list("policies"),
        doors: list("doors"),
        gateway_classes: Some(vec![read("{metadata: {name: istio}}")]),
        machines: object("vm")
            .map(|vm| Machine {
                namespace: "vms".to_owned(),
                name: "web".to_owned(),
                vm: Some(vm),
                vmi: object("vmi"),
                events: list("events"),
                data_volumes: all["dataVolumes"].as_array().cloned(),
                claims: Some(list("claims")),
                console: all["console"].as_str().map(str::to_owned),
                running_for: all["runningFor"].as_u64(),
                probes: list("closed")
                    .iter()
                    .map(|it| Probe {
                        port: u16::try_from(it.as_u64().unwrap()).unwrap(),
                        answer: Answer::Closed("connection refused".to_owned()),
                    })
                    .collect(),
                ..Machine::default()
            })
            .into_iter()
            .collect(),
        ..Facts::default()
    }
}

const SYNCED: &str = "
  kind: Application
  metadata: {name: web, namespace: openshift-gitops}
  spec: {source: {repoURL: 'https://git/root/web.git', path: manifests, targetRevision: main}, syncPolicy: {automated: {prune: true, selfHeal: true}}}
";

/// What was seen, the link that it breaks, and a part of what is shown for it.
const CASES: [(&str, &str, &str, &str); 35] = [
    ("answers that are no good", "form", "name: it does not have the wanted form", "
voyage: {kind: Voyage, metadata: {name: v}, spec: {template: t}, status: {phase: Failed, message: 'the answers are not good: name: it does not have the wanted form'}}"),
    ("an unknown action", "form", "unknown action", "
voyage: {kind: Voyage, metadata: {name: v}, spec: {template: t}, status: {phase: Failed, steps: [], message: 'step \"a\": unknown action b:c'}}"),
    ("a step that failed", "run", "no such host", "
voyage: {kind: Voyage, metadata: {name: v}, status: {phase: Failed, message: 'step \"publish\" failed: no such host', steps: [{id: a, state: completed}, {id: publish, state: failed, endedAt: '2026-01-01T00:00:00Z', log: [{at: x, text: no such host}]}]}}"),
    ("what was made is being taken back", "run", "step \"publish\" failed", "
voyage: {kind: Voyage, metadata: {name: v}, status: {phase: Undoing, message: 'step \"publish\" failed: full', steps: [{id: publish, state: failed}]}}"),
    ("no such branch", "commit", "unable to resolve", "
application:
  status: {sync: {status: Unknown}, conditions: [{type: ComparisonError, message: 'Failed to load target state: unable to resolve \"nope\" to a commit'}]}"),
    ("a repository that cannot be served", "commit", "its disk is full", "
repository: {kind: Repository, metadata: {name: web}, status: {conditions: [{type: Ready, status: 'False', message: its disk is full}]}}"),
    ("a mirror that cannot follow", "commit", "could not be reached", "
repository: {kind: Repository, metadata: {name: web}, status: {conditions: [{type: Ready, status: 'True'}, {type: Mirrored, status: 'False', message: could not be reached}]}}"),
    ("bad YAML", "render", "yaml: line 2", "
application:
  status: {sync: {status: Unknown, revision: 970019a14fa1c257}, conditions: [{type: ComparisonError, message: 'Failed to load target state: a.yaml: yaml: line 2: illegal'}]}"),
    ("a directory that is not there", "render", "no such file or directory", "
application:
  status: {sync: {status: Unknown, revision: 970019a14fa1c257}, conditions: [{type: ComparisonError, message: 'Failed to load target state: \"nope\": no such file or directory'}]}"),
    ("a webhook says no", "admission", "denied the request", "
application:
  status: {sync: {status: OutOfSync, revision: abc}, operationState: {phase: Running, message: 'one or more objects failed to apply (dry run), reason: x. Retrying attempt #2 at 7:57AM.', syncResult: {resources: [{kind: VirtualMachine, name: v, status: SyncFailed, message: 'admission webhook \"v\" denied the request: no'}]}}}"),
    ("a quota is used up", "admission", "exceeded quota", "
application:
  status: {sync: {status: OutOfSync, revision: abc}, operationState: {phase: Failed, message: m, syncResult: {resources: [{kind: ConfigMap, name: a, status: SyncFailed, message: 'configmaps \"a\" is forbidden: exceeded quota: q'}]}}}"),
    ("a quota keeps the instance away", "admission", "exceeded quota", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}, status: {conditions: [{type: Failure, status: 'True', message: 'virtualmachineinstances \"web\" is forbidden: exceeded quota: q'}]}}"),
    ("no namespace", "sync", "namespaces \"x\" not found", "
application:
  status: {sync: {status: OutOfSync, revision: abc}, operationState: {phase: Running, message: 'one or more objects failed to apply, reason: namespaces \"x\" not found. Retrying attempt #2 at 7:57AM.', syncResult: {resources: [{kind: ConfigMap, name: a, status: SyncFailed, message: 'namespaces \"x\" not found'}]}}}"),
    ("no cluster", "sync", "there are no clusters", "
application:
  status: {sync: {status: Unknown}, conditions: [{type: InvalidSpecError, message: 'unable to find destination server: there are no clusters with this server: https://nope'}]}"),
    ("nobody syncs", "sync", "no automated policy", "
application:
  spec: {syncPolicy: null}
  status: {sync: {status: OutOfSync, revision: abc}, resources: [{kind: ConfigMap, name: a, status: OutOfSync}]}"),
    ("a window that holds it back", "sync", "deny * * * * * for 1h", "
application:
  status: {sync: {status: OutOfSync, revision: abc}, resources: [{kind: ConfigMap, name: a, status: OutOfSync}]}
project: {kind: AppProject, metadata: {name: default}, 'spec': {syncWindows: [{kind: deny, schedule: '* * * * *', duration: 1h}]}}"),
    ("a kind that nobody knows", "sync", "waiting for the kind", "
application:
  status: {sync: {status: OutOfSync, revision: abc}, operationState: {phase: Running, message: 'waiting for the kind nope.io/Foo of v to be defined'}}"),
    ("a node that is wanted and not there", "scheduling", "disk\":\"ssd", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always, template: {spec: {volumes: [{name: r, dataVolume: {name: web-root}}]}}}}
dataVolumes: [{metadata: {name: web-root}, status: {phase: Pending}}]
events: [{type: Warning, reason: WaitingForNode, involvedObject: {kind: DataVolume, name: web-root}, message: 'no node that runs machines has the labels {\"disk\":\"ssd\"}'}]"),
    ("no memory", "scheduling", "Insufficient memory", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, status: {conditions: [{type: PodScheduled, status: 'False', message: '0/1 nodes are available: 1 Insufficient memory.'}]}}"),
    ("an import that fails", "disk", "404 Not Found", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always, template: {spec: {volumes: [{name: r, dataVolume: {name: web-root}}]}}}, status: {conditions: [{type: Failure, status: 'True', message: 'Error encountered while creating DataVolumes: DataVolume web-root is in Failed phase'}]}}
dataVolumes: [{metadata: {name: web-root}, status: {phase: Failed}}]
claims: [{metadata: {name: web-root}, status: {phase: Bound}}]
events: [{type: Warning, reason: Error, involvedObject: {kind: DataVolume, name: web-root}, message: 'http://x answers 404 Not Found'}]"),
    ("a source that is not there", "disk", "datasources.cdi.kubevirt.io \"tiny\" not found", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always, dataVolumeTemplates: [{metadata: {name: web-root}}], template: {spec: {volumes: [{name: r, dataVolume: {name: web-root}}]}}}, status: {conditions: [{type: Failure, status: 'True', message: 'Error encountered while creating DataVolumes: failed to create DataVolume: admission webhook \"datavolume-mutate.cdi.kubevirt.io\" denied the request: datasources.cdi.kubevirt.io \"tiny\" not found'}]}}
dataVolumes: []"),
    ("a full disk", "disk", "low-level IO error", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, status: {phase: Running, nodeName: n1, conditions: [{type: Paused, status: 'True', reason: PausedIOError, message: 'VMI was paused, low-level IO error detected'}]}}"),
    ("QEMU does not start", "boot", "Permission denied", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, status: {phase: Scheduled, nodeName: n1, conditions: [{type: Synchronized, status: 'False', message: \"QEMU did not start: Permission denied\\nmore\"}]}}"),
    ("nothing to boot from", "boot", "blank", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, spec: {volumes: [{name: r, dataVolume: {name: web-root}}]}, status: {phase: Running, nodeName: n1}}
dataVolumes: [{metadata: {name: web-root}, spec: {source: {blank: {}}}, status: {phase: Succeeded}}]
claims: [{metadata: {name: web-root}, status: {phase: Bound}}]
console: ''
runningFor: 30"),
    ("a panic", "boot", "Kernel panic", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, status: {phase: Running, nodeName: n1}}
console: 'Kernel panic - not syncing'"),
    ("a package that cannot be had", "cloud-init", "this guest cannot do that", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, spec: {volumes: [{name: s, cloudInitNoCloud: {userData: x}}]}, status: {phase: Running, nodeName: n1}}
console: \"cloud-init: packages: this guest cannot do that\\nweb login: cloud-init: finished, status: error\""),
    ("a Secret that is not there", "cloud-init", "needs Secret \"nope\"", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web}, spec: {volumes: [{name: s, cloudInitNoCloud: {secretRef: {name: nope}}}]}, status: {phase: Scheduled, nodeName: n1, conditions: [{type: Synchronized, status: 'False', message: 'volume \"s\" needs Secret \"nope\", which does not exist'}]}}"),
    ("other labels", "Service", "app=shop", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always, template: {metadata: {labels: {app: web}}}}}
services: [{kind: Service, metadata: {name: web, namespace: vms}, spec: {selector: {app: shop}}}]"),
    ("a port where nobody listens", "Service", "connection refused", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always}}
vmi: {kind: VirtualMachineInstance, metadata: {name: web, labels: {app: web}}, status: {phase: Running, nodeName: n1, interfaces: [{ipAddress: 10.0.0.7}]}}
console: 'web login: '
services: [{kind: Service, metadata: {name: web, namespace: vms}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8081}]}}]
slices: [{metadata: {namespace: vms, labels: {kubernetes.io/service-name: web}}, endpoints: [{addresses: [10.0.0.7]}]}]
closed: [8081]"),
    ("a class that is not there", "gateway", "nope", "
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, spec: {gatewayClassName: nope}}]"),
    ("a listener in conflict", "gateway", "taken", "
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, spec: {gatewayClassName: istio}, status: {listeners: [{name: http, conditions: [{type: Conflicted, status: 'True', message: taken}]}]}}]"),
    ("a backend that is not there", "gateway", "BackendNotFound", "
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, spec: {gatewayClassName: istio}, status: {conditions: [{type: Programmed, status: 'True'}]}}]
routes: [{kind: HTTPRoute, metadata: {name: web, namespace: vms}, spec: {parentRefs: [{name: web}]}, status: {parents: [{conditions: [{type: Accepted, status: 'True'}, {type: ResolvedRefs, status: 'False', reason: BackendNotFound}]}]}}]"),
    ("a Gateway that is not there", "gateway", "vms/web", "
routes: [{kind: HTTPRoute, metadata: {name: web, namespace: vms}, spec: {parentRefs: [{name: web}]}}]"),
    ("a policy that is not enforced", "gateway", "no issuer", "
policies: [{kind: AuthPolicy, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'False', message: no issuer}]}}]"),
    ("a host that is taken", "gateway", "HostAlreadyClaimed", "
doors: [{kind: Route, metadata: {name: web, namespace: vms}, status: {ingress: [{conditions: [{type: Admitted, status: 'False', reason: HostAlreadyClaimed}]}]}}]"),
];

#[test]
fn faults() {
    for (what, link, shown, given) in CASES {
        // What an Application says besides.
        let given = match given.contains("\napplication:") && !given.contains("spec:") {
            true => given.replace("\napplication:", format!("\napplication:{SYNCED}").trim_end()),
            false => given.replace(
                "  spec: {syncPolicy: null}",
                "  kind: Application\n  metadata: {name: web}\n  spec: {source: {repoURL: u}}",
            ),
        };
        let report = report(&facts(&given));
        let broken = report
            .broken()
            .unwrap_or_else(|| panic!("{what}: nothing is broken:\n{}", text(&report)));
        assert_eq!(broken.name, link, "{what}:\n{}", text(&report));
        let told = format!("{:?} {}", broken.evidence, broken.finding);
        assert!(
            told.contains(&shown.replace('"', "\\\"")) || told.contains(shown),
            "{what}: {told}"
        );
        assert!(
            broken.advice.is_some(),
            "{what}: nothing is advised:\n{}",
            text(&report)
        );
    }
}

#[test]
fn what_may_not_be_read_is_unknown() {
    let mut facts = Facts::default();
    for what in [
        "voyages",
        "applications",
        "virtualmachines",
        "services",
        "httproutes",
    ] {
        facts.unreadable.insert(
            what,
            format!("forbidden: User \"ann\" cannot list resource {what:?}"),
        );
    }
    let report = report(&facts);
    assert_eq!(report.broken(), None, "{}", text(&report));
    for link in &report.links {
        assert_eq!(link.state, State::Unknown, "{}", link.name);
        assert!(
            link.evidence[0].message.starts_with("forbidden: "),
            "{}",
            link.name
        );
    }
}
