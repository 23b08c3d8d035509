//! The repository of `examples/hub-spoke`: which Applications it makes of which cluster, and that the original tools make the
//! same of it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[path = "hub_spoke/expected.rs"]
mod expected;
#[path = "hub_spoke/originals.rs"]
mod originals;
#[path = "hub_spoke/repository.rs"]
mod repository;

use std::collections::{BTreeMap, BTreeSet};

use fairway_gitops_render::{Dependents, Kind};
use fairway_gitops_tree::{Change, Entry, Reader};
use serde_json::{Value, json};

use expected::{CLUSTERS, Cluster, Expected};
use repository::{Repository, text};

const SERVER: &str = "https://kubernetes.default.svc";
const SOURCE: &str = "https://git.example.com/platform/openshift-virtualization-gitops.git";
const VARIABLES: [&str; 5] = [
    "CLUSTER_BASE_DOMAIN",
    "CLUSTER_NAME",
    "HUB_BASE_DOMAIN",
    "INFRA_GITOPS_REPO",
    "PLATFORM_BASE_DOMAIN",
];

#[test]
fn each_cluster_gets_its_applications_in_its_waves() {
    let repository = Repository::load();
    for cluster in &CLUSTERS {
        let mut found: Vec<(i64, String)> = repository
            .applications(cluster.name)
            .iter()
            .map(|application| {
                let wave = &application["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"];
                (
                    text(wave).parse().unwrap(),
                    text(&application["metadata"]["name"]),
                )
            })
            .collect();
        found.sort();
        let mut expected: Vec<(i64, String)> = cluster
            .applications()
            .map(|expected| (expected.wave, expected.name.to_owned()))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "{}", cluster.name);
        assert_eq!(found.len(), cluster.count, "{}", cluster.name);
    }
}

#[test]
fn an_application_says_where_from_and_where_to() {
    let repository = Repository::load();
    for cluster in &CLUSTERS {
        let applications = repository.applications(cluster.name);
        for expected in cluster.applications() {
            let Expected { name, path, .. } = *expected;
            let context = format!("{} on {}", name, cluster.name);
            let application = applications
                .iter()
                .find(|application| application["metadata"]["name"] == name)
                .unwrap_or_else(|| panic!("no {context}"));
            assert_eq!(application["apiVersion"], "argoproj.io/v1alpha1", "{context}");
            assert_eq!(application["kind"], "Application", "{context}");
            assert_eq!(
                application["metadata"]["namespace"], "openshift-gitops",
                "{context}"
            );
            let mut plugin = json!({"name": "setenv-cmp-plugin"});
            if !expected.env.is_empty() {
                let env = expected
                    .env
                    .iter()
                    .map(|(name, value)| json!({"name": name, "value": value}));
                plugin["env"] = env.collect();
            }
            let path = path.replace("CLUSTER", cluster.name);
            let source = json!({"repoURL": SOURCE, "targetRevision": "main", "path": path, "plugin": plugin});
            assert_eq!(application["spec"]["source"], source, "{context}");
            let destination = json!({"server": SERVER, "namespace": expected.namespace});
            assert_eq!(application["spec"]["destination"], destination, "{context}");
            assert_eq!(
                application["spec"]["syncPolicy"]["automated"],
                json!({"prune": true, "selfHeal": true})
            );
            // Those that configure operators of a later wave must not hold that wave up.
            let awaited = &application["metadata"]["annotations"]["app-of-app/awaited"];
            assert_eq!(awaited == "false", !expected.is_awaited, "{context}");
        }
    }
}

#[test]
fn every_application_has_a_source_that_renders() {
    let repository = Repository::load();
    for cluster in &CLUSTERS {
        for application in repository.applications(cluster.name) {
            let context = format!("{} on {}", application["metadata"]["name"], cluster.name);
            let rendered = repository.render_application(cluster.name, &application);
            assert_eq!(rendered.kind, Kind::Kustomize, "{context}");
            assert!(!rendered.objects.is_empty(), "{context}");
            assert!(
                !rendered.text.contains("${"),
                "{context}: a variable is left in\n{}",
                rendered.text
            );
            assert_eq!(rendered.warnings, Vec::<String>::new(), "{context}");
        }
    }
}

#[test]
fn clusters_differ_only_where_a_variable_is() {
    let repository = Repository::load();
    let (hub, etl4) = (repository.variables("hub"), repository.variables("etl4"));
    assert_eq!(hub.keys().map(String::as_str).collect::<Vec<_>>(), VARIABLES);
    let mut seen = BTreeSet::new();
    for directory in repository.kustomizations() {
        let plain = repository.render(&directory, None).text;
        let (one, other) = (
            repository.render(&directory, Some(&hub)).text,
            repository.render(&directory, Some(&etl4)).text,
        );
        assert_eq!(plain.lines().count(), one.lines().count(), "{directory}");
        for ((plain, one), other) in plain.lines().zip(one.lines()).zip(other.lines()) {
            let used: Vec<&str> = VARIABLES
                .into_iter()
                .filter(|name| plain.contains(&format!("${{{name}}}")))
                .collect();
            seen.extend(used.iter().copied());
            if used.is_empty() && !plain.contains("${ARGOCD_ENV_") {
                assert_eq!((plain, plain), (one, other), "{directory}");
            }
        }
    }
    assert_eq!(seen, VARIABLES.into(), "each variable is used somewhere");
}

#[test]
fn the_bootstrap_makes_the_root_application_and_the_plugin() {
    let repository = Repository::load();
    for cluster in &CLUSTERS {
        let variables = repository.variables(cluster.name);
        assert_eq!(variables["CLUSTER_NAME"], cluster.name);
        assert_eq!(
            variables["CLUSTER_BASE_DOMAIN"],
            format!("{}.qe.lab.redhat.com", cluster.domain)
        );
        assert_eq!(variables["PLATFORM_BASE_DOMAIN"], "qe.lab.redhat.com");
        assert_eq!(variables["HUB_BASE_DOMAIN"], "ocp3m0w-ic4s20.qe.lab.redhat.com");
        assert_eq!(variables["INFRA_GITOPS_REPO"], SOURCE);
        let root = repository.substituted(".bootstrap/root-application.yaml", cluster.name);
        assert_eq!(root[0]["metadata"]["name"], "root-applications");
        let source = &root[0]["spec"]["source"];
        assert_eq!(source["path"], format!("clusters/{}", cluster.name));
        assert_eq!(source["repoURL"], SOURCE);
        assert_eq!(source["plugin"], json!({"name": "setenv-cmp-plugin"}));
    }
    let argocd = repository.substituted(".bootstrap/argocd.yaml", "hub");
    let plugin = text(&argocd[0]["data"]["plugin.yaml"]);
    for part in [
        "name: setenv-cmp-plugin",
        "./kustomization.yaml",
        "kustomize build --enable-helm . | envsubst",
    ] {
        assert!(plugin.contains(part), "{part}");
    }
    let sidecar = &argocd[1]["spec"]["repo"]["sidecarContainers"][0];
    assert_eq!(sidecar["name"], "setenv-cmp-plugin");
    assert_eq!(
        sidecar["envFrom"],
        json!([{"configMapRef": {"name": "environment-variables"}}])
    );
    let check = &argocd[1]["spec"]["resourceHealthChecks"][0];
    assert_eq!(check["kind"], "Application");
    assert!(
        text(&check["check"]).contains("app-of-app/awaited"),
        "the annotation that the chart writes"
    );
}

#[test]
fn the_hub_installs_each_spoke_at_its_addresses() {
    let repository = Repository::load();
    for (spoke, base) in [("etl4", 160), ("etl6", 170), ("spoke1", 180)] {
        let directory = format!("clusters/hub/overlays/cluster-{spoke}");
        let rendered = repository.render(&directory, Some(&repository.variables("hub")));
        let mut kinds: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for object in &rendered.objects {
            kinds.entry(text(&object["kind"])).or_default().push(object);
        }
        let counted: Vec<(&str, usize)> = kinds
            .iter()
            .map(|(kind, all)| (kind.as_str(), all.len()))
            .collect();
        let expected = [
            ("AgentClusterInstall", 1),
            ("BareMetalHost", 3),
            ("ClusterDeployment", 1),
            ("InfraEnv", 1),
            ("KlusterletAddonConfig", 1),
            ("KlusterletConfig", 1),
            ("ManagedCluster", 1),
            ("NMStateConfig", 3),
            ("Namespace", 1),
        ];
        assert_eq!(counted, expected, "{spoke}");
        let address = |last: usize| format!("192.168.135.{last}");
        let install = &kinds["AgentClusterInstall"][0]["spec"];
        assert_eq!(install["apiVIPs"], json!([address(base + 3)]), "{spoke}");
        assert_eq!(install["ingressVIPs"], json!([address(base + 4)]), "{spoke}");
        assert_eq!(
            install["provisionRequirements"]["controlPlaneAgents"], 3,
            "{spoke}"
        );
        let deployment = &kinds["ClusterDeployment"][0]["spec"];
        assert_eq!(deployment["baseDomain"], "qe.lab.redhat.com", "{spoke}");
        assert_eq!(deployment["clusterName"], spoke);
        let hub = &kinds["KlusterletConfig"][0]["spec"]["hubKubeAPIServerConfig"]["url"];
        assert_eq!(hub, "https://api.ocp3m0w-ic4s20.qe.lab.redhat.com:6443");
        for (at, settings) in kinds["NMStateConfig"].iter().enumerate() {
            let interface = &settings["spec"]["config"]["interfaces"][0];
            assert_eq!(
                interface["ipv4"]["address"][0]["ip"],
                address(base + at),
                "{spoke}"
            );
            let host = kinds["BareMetalHost"][at];
            assert_eq!(host["metadata"]["name"], settings["metadata"]["name"]);
            let mac = &settings["spec"]["interfaces"][0]["macAddress"];
            assert_eq!(&host["spec"]["bootMACAddress"], mac, "{spoke}");
            let controller = text(&host["spec"]["bmc"]["address"]);
            assert!(controller.contains(":8000/redfish/v1/Systems/"), "{controller}");
        }
    }
}

#[test]
fn a_commit_touches_the_clusters_that_use_the_file() {
    let repository = Repository::load();
    let mut dependents = Dependents::default();
    for cluster in &CLUSTERS {
        let variables = repository.variables(cluster.name);
        let root = format!("clusters/{}", cluster.name);
        let rendered = repository.render(&root, Some(&variables));
        dependents.insert(format!("{} root", cluster.name), rendered.inputs);
        for application in repository.applications(cluster.name) {
            let rendered = repository.render_application(cluster.name, &application);
            let name = text(&application["metadata"]["name"]);
            dependents.insert(format!("{} {name}", cluster.name), rendered.inputs);
        }
    }
    assert_eq!(dependents.len(), 3 + 25 + 18 + 18);
    for (changed, expected) in [
        (
            "groups/all/values.yaml",
            vec!["hub root", "etl4 root", "etl6 root"],
        ),
        ("groups/prod/values.yaml", vec!["etl4 root", "etl6 root"]),
        ("clusters/etl4/values.yaml", vec!["etl4 root"]),
        (
            "components/nmstate-configuration/bridge.yaml",
            vec![
                "hub nmstate-configuration",
                "etl4 nmstate-configuration",
                "etl6 nmstate-configuration",
            ],
        ),
        (
            "clusters/etl6/overlays/metallb-configuration/address-pool.yaml",
            vec!["etl6 metallb-configuration"],
        ),
        (
            ".helm-charts/bm-cluster-agent-install/values.yaml",
            vec!["hub etl4", "hub etl6", "hub spoke1"],
        ),
        (
            ".helm-charts/argocd-app-of-app/templates/new.yaml",
            vec!["hub root", "etl4 root", "etl6 root"],
        ),
        ("README.md", vec![]),
        ("components/new/kustomization.yaml", vec![]),
    ] {
        let new = repository
            .tree
            .changed([(changed, Change::File(b"# new".as_slice().into()))])
            .unwrap();
        let touched: Vec<&str> = dependents
            .touched([changed], &repository.tree, &new)
            .into_iter()
            .map(String::as_str)
            .collect();
        assert_eq!(touched, expected, "{changed}");
    }
}

#[test]
fn the_repository_has_its_parts() {
    let repository = Repository::load();
    let reader: Reader = repository.tree.reader();
    let components = reader.list("components").unwrap();
    assert!(components.len() >= 25, "{components:?}");
    let used: BTreeSet<String> = CLUSTERS.iter().flat_map(Cluster::sources).collect();
    for component in components {
        let path = format!("components/{component}");
        // What no Application names is the base of clusters' overlays.
        let is_base = [
            "metallb-configuration",
            "nmstate-configuration",
            "openshift-config",
        ]
        .contains(&component.as_str());
        assert_eq!(used.contains(&path), !is_base, "{path}");
    }
    for file in [
        ".bootstrap/subscription.yaml",
        ".bootstrap/cluster-rolebinding.yaml",
        ".envsubst/Containerfile",
        "gitops_pipeline_e2e.sh",
        "README.md",
    ] {
        assert!(
            matches!(repository.tree.entry(file), Ok(Some(Entry::File(_)))),
            "{file}"
        );
    }
}
