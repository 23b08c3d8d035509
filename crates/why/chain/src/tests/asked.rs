//! Disks, policies, APIs and keys that somebody asked about: what is known of them, and what the chain comes to.

use super::*;

/// Facts from YAML, about one object.
fn about(kind: &str, given: &str) -> Facts {
    let all = read(given);
    let list = |name: &str| all[name].as_array().cloned().unwrap_or_default();
    let object = |name: &str| all.get(name).filter(|it| it.is_object()).cloned();
    let machine = Machine {
        name: "web".to_owned(),
        vm: object("vm"),
        ..Machine::default()
    };
    let unreadable = all["unreadable"].as_str().map(|it| match it {
        "apiproducts" => "apiproducts",
        "datavolumes" => "datavolumes",
        other => panic!("{other}"),
    });
    Facts {
        asked: Subject {
            kind: kind.to_owned(),
            namespace: "vms".to_owned(),
            name: "web".to_owned(),
        },
        unreadable: unreadable
            .map(|it| (it, "forbidden: no".to_owned()))
            .into_iter()
            .collect(),
        object: object("it").map(|mut it| {
            it["kind"] = kind.into();
            it
        }),
        product: match kind {
            "APIProduct" => object("it"),
            _ => object("product"),
        },
        key_requests: list("requests"),
        key_approvals: list("approvals"),
        machines: all.get("vm").map(|_| machine).into_iter().collect(),
        routes: list("routes"),
        gateways: list("gateways"),
        policies: list("policies"),
        disk: object("disk").map(|disk| Disk {
            name: "web".to_owned(),
            data_volume: disk.get("dataVolume").cloned(),
            claim: disk.get("claim").cloned(),
            data_sources: disk["sources"].as_array().cloned(),
            events: disk["events"].as_array().cloned().unwrap_or_default(),
        }),
        ..Facts::default()
    }
}

/// A kind, what is known of an object of it, and the verdict.
const CASES: [(&str, &str, &str, &str); 40] = [
    // Disks.
    ("a disk that is well", "DataVolume", "every link holds", "
disk:
  dataVolume: {kind: DataVolume, metadata: {name: web, namespace: vms}, spec: {source: {http: {url: 'https://x/i.img'}}}, status: {phase: Succeeded, conditions: [{type: Ready, status: 'True'}]}}
  claim: {metadata: {name: web}, status: {phase: Bound, capacity: {storage: 1Gi}}}"),
    ("a source that is not there", "DataVolume", "the first broken link is source: the DataVolume web is to be filled from the DataSource vms/nowhere, which does not exist", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {sourceRef: {kind: DataSource, name: nowhere}}, status: {phase: Pending}}
  sources: []"),
    ("a source that is not ready", "DataVolume", "the first broken link is source: the DataVolume web is to be filled from the DataSource vms/tiny, which is not ready: PVC not found", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {sourceRef: {kind: DataSource, name: tiny}}, status: {phase: Pending}}
  sources: [{metadata: {name: tiny, namespace: vms}, status: {conditions: [{type: Ready, status: 'False', message: PVC not found}]}}]"),
    ("an import that fails", "DataVolume", "the first broken link is filling: filling web fails: it answers 404", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {http: {url: 'https://x'}}}, status: {phase: ImportInProgress, restartCount: 2, conditions: [{type: Running, status: 'False', reason: Error, message: it answers 404}]}}"),
    ("an import under way", "DataVolume", "nothing is broken; filling is not done yet: web is being filled: ImportInProgress, 40.00%", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {http: {url: 'https://x'}}}, status: {phase: ImportInProgress, progress: 40.00%, conditions: [{type: Running, status: 'True'}]}}
  claim: {metadata: {name: web}, status: {phase: Pending}}"),
    ("something that it needs is in use", "DataVolume", "nothing is broken; filling is not done yet: web is being filled: CloneScheduled: the source is in use", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {pvc: {namespace: vms, name: db}}}, status: {phase: CloneScheduled, conditions: [{type: Running, status: 'False', reason: SourceInUse, message: the source is in use}]}}"),
    ("a class that is not there", "DataVolume", "the first broken link is filling: web is being filled: Pending: no StorageClass golden", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {blank: {}}}, status: {phase: Pending}}
  events: [{type: Warning, reason: ErrClaimNotValid, involvedObject: {kind: DataVolume, name: web}, message: no StorageClass golden}]"),
    ("an upload that nobody sends", "DataVolume", "nothing is broken; filling is not done yet: web waits for somebody to send its content", "
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {upload: {}}}, status: {phase: UploadReady}}"),
    ("no node for the machine that uses it", "DataVolume", "the first broken link is scheduling: no node takes it: no node has ssd", "
vm: {kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Always, template: {spec: {volumes: [{name: r, dataVolume: {name: web}}]}}}}
disk:
  dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {blank: {}}}, status: {phase: Pending}}
  events: [{type: Warning, reason: WaitingForNode, involvedObject: {kind: DataVolume, name: web}, message: no node has ssd}]"),
    ("a claim that has lost its volume", "PersistentVolumeClaim", "the first broken link is claim: the claim web has lost its volume", "
disk: {claim: {metadata: {name: web}, status: {phase: Lost}}}"),
    ("a claim by itself", "PersistentVolumeClaim", "every link holds", "
disk: {claim: {metadata: {name: web}, status: {phase: Bound}}}"),
    ("a claim that nobody binds", "PersistentVolumeClaim", "the first broken link is claim: the claim web is Pending: no class golden", "
disk:
  claim: {metadata: {name: web}, status: {phase: Pending}}
  events: [{type: Warning, reason: ProvisioningFailed, involvedObject: {kind: PersistentVolumeClaim, name: web}, message: no class golden}]"),
    ("a claim that is gone", "DataVolume", "the first broken link is claim: the claim web is gone, and the disk with it", "
disk: {dataVolume: {metadata: {name: web, namespace: vms}, spec: {source: {blank: {}}}, status: {phase: Succeeded}}}"),
    ("DataVolumes that nobody may read", "PersistentVolumeClaim", "no link is broken; not known: source, filling", "
unreadable: datavolumes
disk: {claim: {metadata: {name: web}, status: {phase: Bound}}}"),
    // Policies.
    ("a policy that is enforced", "TLSPolicy", "every link holds", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: Gateway, name: web}}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'True', message: it is enforced}]}}
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Programmed, status: 'True'}]}}]"),
    ("a target that is not there", "DNSPolicy", "the first broken link is gateway: DNSPolicy vms/web is for Gateway vms/nowhere, which does not exist", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: Gateway, name: nowhere}}, status: {conditions: [{type: Accepted, status: 'False', reason: TargetNotFound, message: it was not found}]}}"),
    ("a target that does not work", "RateLimitPolicy", "the first broken link is gateway: listener http of Gateway vms/web: no certificate", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: Gateway, name: web}}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'False', message: waits}]}}
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, status: {listeners: [{name: http, conditions: [{type: ResolvedRefs, status: 'False', message: no certificate}]}]}}]"),
    ("a policy that is not enforced, beside another", "AuthPolicy", "the first broken link is policy: AuthPolicy vms/web: Overridden by vms/strict", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: Gateway, name: web}}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'False', reason: Overridden, message: Overridden by vms/strict}]}}
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Programmed, status: 'True'}]}}]
policies: [{kind: AuthPolicy, metadata: {name: strict, namespace: vms}, status: {conditions: [{type: Accepted, status: 'False', message: another matter}]}}]"),
    ("a policy whose key server does not answer", "AuthPolicy", "the first broken link is policy: AuthPolicy vms/web: the issuer does not answer", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: HTTPRoute, name: web}}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'False', message: the issuer does not answer}]}}
routes: [{kind: HTTPRoute, metadata: {name: web, namespace: vms}, status: {parents: [{conditions: [{type: Accepted, status: 'True'}]}]}}]"),
    ("a policy that is partly enforced", "PlanPolicy", "every link holds", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: HTTPRoute, name: web}}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'True', message: 'partially enforced, but: it leaks'}]}}
routes: [{kind: HTTPRoute, metadata: {name: web, namespace: vms}, status: {parents: [{conditions: [{type: Accepted, status: 'True'}]}]}}]"),
    ("a policy that nobody has seen yet", "TLSPolicy", "nothing is broken; policy is not done yet: TLSPolicy vms/web has not been taken up yet", "
it: {metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: Gateway, name: web}}}
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Programmed, status: 'True'}]}}]"),
    ("what a policy said of itself before it was changed", "AuthPolicy", "nothing is broken; policy is not done yet: AuthPolicy vms/web has not been taken up yet", "
it: {metadata: {name: web, namespace: vms, generation: 2}, spec: {targetRef: {kind: Gateway, name: web}}, status: {conditions: [{type: Accepted, status: 'False', observedGeneration: 1, message: old}]}}
gateways: [{kind: Gateway, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Programmed, status: 'True'}]}}]"),
    ("a policy that is not there yet", "AuthPolicy", "nothing is broken; policy is not done yet: there is no AuthPolicy vms/web yet", "{}"),
    // APIs.
    ("an API that is offered", "APIProduct", "every link holds", "
it: {kind: APIProduct, metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: HTTPRoute, name: web}}, status: {conditions: [{type: Ready, status: 'True', message: HTTPRoute vms/web accepted}, {type: AuthPolicyDiscovered, status: 'True', reason: Found, message: Discovered AuthPolicy web}, {type: PlanPolicyDiscovered, status: 'False', reason: NotFound, message: PlanPolicy not found}]}}
routes: [{kind: HTTPRoute, metadata: {name: web, namespace: vms}, status: {parents: [{conditions: [{type: Accepted, status: 'True'}]}]}}]"),
    ("an API whose route is gone", "APIProduct", "the first broken link is gateway: APIProduct vms/web is for HTTPRoute vms/web, which does not exist", "
it: {kind: APIProduct, metadata: {name: web, namespace: vms}, spec: {targetRef: {kind: HTTPRoute, name: web}}, status: {conditions: [{type: Ready, status: 'False', message: not found}]}}"),
    ("an API whose description cannot be read", "APIProduct", "the first broken link is product: APIProduct vms/web: it answers 404", "
it: {kind: APIProduct, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}, {type: OpenAPISpecReady, status: 'False', message: it answers 404}]}}"),
    ("an API whose policy is not enforced", "APIProduct", "the first broken link is policy: AuthPolicy vms/web: no issuer", "
it: {kind: APIProduct, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}, {type: AuthPolicyDiscovered, status: 'False', reason: AuthPolicyNotReady, message: not enforced}]}}
policies: [{kind: AuthPolicy, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Accepted, status: 'True'}, {type: Enforced, status: 'False', message: no issuer}]}}]"),
    ("an API that nobody guards", "APIProduct", "every link holds", "
it: {kind: APIProduct, metadata: {name: web, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}, {type: AuthPolicyDiscovered, status: 'False', reason: NotFound, message: AuthPolicy not found}]}}"),
    // Keys.
    ("a key that lets in", "APIKey", "every link holds", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {secretRef: {name: web-api-key}, conditions: [{type: Approved, status: 'True', reason: Approved, message: approved by ann}]}}
requests: [{kind: APIKeyRequest, metadata: {name: r, namespace: vms}}]
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}, {type: AuthPolicyDiscovered, status: 'True', reason: Found, message: found}]}}"),
    ("a key that nobody has looked at", "APIKey", "nothing is broken; request is not done yet: nobody has looked at the key yet", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}}
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}]}}"),
    ("a request that waits", "APIKey", "nothing is broken; approval is not done yet: nobody has approved or denied it yet", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {conditions: [{type: Pending, status: 'True', reason: AwaitingApproval, message: awaits}]}}
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}]}}"),
    ("a request that was denied", "APIKey", "the first broken link is approval: API key request denied by ann: not for you", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {conditions: [{type: Denied, status: 'True', reason: Denied, message: 'API key request denied by ann: not for you'}]}}
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}}"),
    ("a key that has expired", "APIKey", "the first broken link is approval: API key expired at 2026-01-01T00:00:00Z", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {conditions: [{type: Expired, status: 'True', reason: KeyExpired, message: 'API key expired at 2026-01-01T00:00:00Z'}]}}
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}}"),
    ("a Secret that is not there", "APIKey", "the first broken link is secret: Referenced secret vms/mine not found", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}, secretRef: {name: mine}}, status: {conditions: [{type: Failed, status: 'True', reason: SecretNotFound, message: Referenced secret vms/mine not found}]}}
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}]}}"),
    ("an API that is not there", "APIKey", "the first broken link is product: Referenced APIProduct vms/shop not found", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {conditions: [{type: Failed, status: 'True', reason: APIProductNotFound, message: Referenced APIProduct vms/shop not found}]}}"),
    ("an API that is not there, and nobody has said so yet", "APIKey", "the first broken link is product: the key is for the APIProduct shop, which does not exist", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}}"),
    ("an API that asks for no keys", "APIKey", "the first broken link is policy: APIProduct vms/shop does not have an API key authentication scheme configured", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {conditions: [{type: Failed, status: 'True', reason: APIKeyAuthSchemeNotFound, message: APIProduct vms/shop does not have an API key authentication scheme configured}]}}
approvals: [{kind: APIKeyApproval, metadata: {name: a, namespace: vms}, spec: {approved: true, reviewedBy: ann}}]
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}, status: {conditions: [{type: Ready, status: 'True'}]}}"),
    ("an API whose route is refused", "APIKey", "the first broken link is gateway: HTTPRoute vms/web: no listener", "
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {secretRef: {name: web-api-key}, conditions: [{type: Approved, status: 'True', message: approved by ann}]}}
product: {kind: APIProduct, metadata: {name: shop, namespace: vms}, status: {conditions: [{type: Ready, status: 'False', message: not accepted}]}}
routes: [{kind: HTTPRoute, metadata: {name: web, namespace: vms}, status: {parents: [{conditions: [{type: Accepted, status: 'False', message: no listener}]}]}}]"),
    ("an API that whoever asks may not read", "APIKey", "no link is broken; not known: product, policy", "
unreadable: apiproducts
it: {metadata: {name: web, namespace: vms}, spec: {apiProductRef: {name: shop}}, status: {secretRef: {name: web-api-key}, conditions: [{type: Approved, status: 'True', message: approved by ann}]}}"),
    // Nothing.
    ("something that nobody made and nobody uses", "ConfigMap", "nothing stands behind it: no run, Application, machine or gateway has to do with it", "
it: {metadata: {name: web, namespace: vms}}"),
];

#[test]
fn verdicts() {
    for (what, kind, verdict, given) in CASES {
        let mut facts = about(kind, given);
        // What keeps a machine from a node is said of its disks.
        if let (Some(machine), Some(disk)) = (facts.machines.first_mut(), &facts.disk) {
            machine.events.clone_from(&disk.events);
        }
        let report = report(&facts);
        assert_eq!(report.verdict(), verdict, "{what}:\n{}", text(&report));
        if let Some(broken) = report.broken() {
            assert!(
                broken.advice.is_some(),
                "{what}: nothing is advised:\n{}",
                text(&report)
            );
        }
    }
}

#[test]
fn links_are_those_of_the_kind() {
    for (kind, given, links) in [
        (
            "VirtualMachine",
            "{}",
            "scheduling disk boot cloud-init Service gateway",
        ),
        (
            "AuthPolicy",
            "{}",
            "scheduling disk boot cloud-init Service gateway policy",
        ),
        (
            "APIProduct",
            "{}",
            "scheduling disk boot cloud-init Service gateway product policy",
        ),
        ("APIKey", "{}", "request approval secret gateway product policy"),
        ("DataVolume", "disk: {}", "source filling claim"),
        (
            "DataVolume",
            "{disk: {}, vm: {kind: VirtualMachine}}",
            "scheduling source filling claim",
        ),
        // One that is not there is explained by what should have made it.
        (
            "DataVolume",
            "{}",
            "scheduling disk boot cloud-init Service gateway",
        ),
    ] {
        let report = report(&about(kind, given));
        let names: Vec<&str> = report.links.iter().map(|it| it.name).collect();
        let expected = format!("form run commit render admission sync {links}");
        assert_eq!(names.join(" "), expected, "{kind} {given}");
    }
}
