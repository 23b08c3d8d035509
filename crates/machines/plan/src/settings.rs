//! What the `KubeVirt` object of a cluster decides for all machines of it: `spec.configuration`; and what the operator's
//! `HyperConverged` object says beside it.
//!
//! The platform's objects are in the root workspace. A workspace may have objects of its own, which decide what concerns
//! nobody else ([`Settings::in_force`]).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::view::Amount;

/// The binding of the network card that a machine gets of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultBinding {
    /// On the network as it is.
    Bridge,
    /// Behind an address translation.
    Masquerade,
    /// The word of a binding that is no longer served.
    Slirp,
}

/// Whether Fairway's nodes change machines that run: processors, memory, disks and cards.
pub const NODES_PLUG: bool = true;

/// Settings of all machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Kind of processor.
    pub architecture: String,
    /// Board.
    pub machine_type: String,
    /// Boards that are allowed: regular expressions.
    pub emulated_machines: Vec<String>,
    /// Guest memory for 100 of the node's.
    pub memory_overcommit: i64,
    /// What a machine asks for that does not say.
    pub cpu_request: Option<String>,
    /// Model of processors.
    pub cpu_model: Option<String>,
    /// What happens to machines of a node that is emptied.
    pub eviction_strategy: Option<String>,
    /// Changes are applied to running machines where that can be done.
    pub live_update: bool,
    /// Sockets that a machine can grow to.
    pub max_cpu_sockets: u32,
    /// Memory that a machine can grow to.
    pub max_guest: Option<Amount>,
    /// How many times larger it can grow, if no maximum is given.
    pub max_hotplug_ratio: u32,
    /// Binding of the network card that nobody asked for.
    pub default_binding: DefaultBinding,
    /// Cards may be on the network of everything as it is.
    pub bridge_on_pod_network: bool,
    /// Features that somebody switched on.
    pub feature_gates: BTreeSet<String>,
    /// Consoles are kept.
    pub log_serial_console: bool,
    /// Free memory goes back to the host.
    pub free_page_reporting: bool,
}

/// The only name under which the operator's object counts.
pub const HYPERCONVERGED_NAME: &str = "kubevirt-hyperconverged";

/// The objects that settings are read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    kubevirt: Option<Value>,
    hyperconverged: Option<Value>,
}

impl Sources {
    /// Of all objects of both kinds in a workspace, those that count: of several `KubeVirt`s the first made.
    pub fn of(
        kubevirts: impl IntoIterator<Item = Value>,
        hyperconvergeds: impl IntoIterator<Item = Value>,
    ) -> Self {
        let age = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("creationTimestamp"), text("namespace"), text("name"))
        };
        Self {
            kubevirt: kubevirts.into_iter().min_by_key(age),
            hyperconverged: hyperconvergeds
                .into_iter()
                .filter(|object| object["metadata"]["name"] == HYPERCONVERGED_NAME)
                .min_by_key(age),
        }
    }
}

/// How machines are moved. It is the platform's business, as nodes are.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationSettings {
    /// How many at once.
    pub parallel: usize,
    /// How many at once away from a node.
    pub parallel_outbound: usize,
    /// Taint of nodes that are to be emptied.
    pub drain_taint: String,
    /// All of it, as a migration's state says it.
    pub configuration: Value,
}

impl Sources {
    /// How machines are moved.
    pub fn migrations(&self) -> MigrationSettings {
        // Upstream's defaults, but that guests that write faster than memory can be sent are slowed down: those that are
        // emulated would not arrive.
        let mut all = json!({
            "allowAutoConverge": true,
            "allowPostCopy": false,
            "bandwidthPerMigration": "0Mi",
            "completionTimeoutPerGiB": 150,
            "disableTLS": false,
            "nodeDrainTaintKey": crate::node::DRAIN_TAINT,
            "parallelMigrationsPerCluster": 5,
            "parallelOutboundMigrationsPerNode": 2,
            "progressTimeout": 150,
            "unsafeMigrationOverride": false,
        });
        let own = self
            .kubevirt
            .as_ref()
            .map(|it| &it["spec"]["configuration"]["migrations"]);
        // The operator has the last word.
        let operator = self
            .hyperconverged
            .as_ref()
            .map(|it| &it["spec"]["liveMigrationConfig"]);
        let said = own.into_iter().chain(operator).filter_map(Value::as_object);
        for (field, value) in said.flatten().filter(|(_, value)| !value.is_null()) {
            all[field] = value.clone();
        }
        let number = |field: &str| {
            let number = all[field].as_u64().and_then(|it| usize::try_from(it).ok());
            number.unwrap_or(1).max(1)
        };
        MigrationSettings {
            parallel: number("parallelMigrationsPerCluster"),
            parallel_outbound: number("parallelOutboundMigrationsPerNode"),
            drain_taint: all["nodeDrainTaintKey"].as_str().unwrap_or_default().to_owned(),
            configuration: all,
        }
    }
}

impl Default for Settings {
    /// Upstream's, but for two: changes are applied to running machines, as the operator that most people install with
    /// sets it, and state of TPM and firmware may persist.
    fn default() -> Self {
        Self {
            architecture: "amd64".to_owned(),
            machine_type: "q35".to_owned(),
            emulated_machines: vec!["q35*".to_owned(), "pc-q35*".to_owned()],
            memory_overcommit: 100,
            cpu_request: None,
            cpu_model: None,
            eviction_strategy: None,
            live_update: true,
            max_cpu_sockets: 0,
            max_guest: None,
            max_hotplug_ratio: 4,
            default_binding: DefaultBinding::Bridge,
            bridge_on_pod_network: true,
            feature_gates: BTreeSet::from(["VMPersistentState".to_owned()]),
            log_serial_console: true,
            free_page_reporting: true,
        }
    }
}

impl Settings {
    /// The settings in force in a workspace: the platform's, and from the workspace's own objects what concerns nobody else.
    ///
    /// Who rules a workspace must not open the host to its machines, nor let them take more of it than they were given.
    pub fn in_force(platform: &Sources, own: Option<&Sources>) -> Self {
        let platform = Self::default().with(platform);
        let Some(own) = own else {
            return platform;
        };
        let Self {
            architecture,
            emulated_machines,
            memory_overcommit,
            bridge_on_pod_network,
            feature_gates,
            free_page_reporting,
            ..
        } = platform.clone();
        Self {
            architecture,
            emulated_machines,
            memory_overcommit,
            bridge_on_pod_network,
            feature_gates,
            free_page_reporting,
            ..platform.with(own)
        }
    }

    /// The same, as far as nodes can follow: where they do not plug into running machines, every change waits for a restart,
    /// whatever the rollout strategy says.
    #[must_use]
    pub fn as_nodes_can(self, plug: bool) -> Self {
        Self {
            live_update: self.live_update && plug,
            ..self
        }
    }

    fn with(self, sources: &Sources) -> Self {
        let settings = match &sources.kubevirt {
            Some(object) => self.with_kubevirt(object),
            None => self,
        };
        match &sources.hyperconverged {
            Some(object) => settings.with_hyperconverged(object),
            None => settings,
        }
    }

    /// Settings out of a `KubeVirt` object; what it does not say stays as it is without one.
    pub fn from_kubevirt(object: &Value) -> Self {
        Self::default().with_kubevirt(object)
    }

    /// Takes over what a `KubeVirt` object says.
    #[must_use]
    pub fn with_kubevirt(mut self, object: &Value) -> Self {
        let from = &object["spec"]["configuration"];
        let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        let number = |value: &Value| {
            let found = value.as_u64().and_then(|it| u32::try_from(it).ok());
            found.filter(|it| *it > 0)
        };
        let machine = &from["architectureConfiguration"]["amd64"];
        if let Some(kind) = text(&machine["machineType"]).or_else(|| text(&from["machineType"])) {
            self.machine_type = kind;
        }
        let allowed = [&machine["emulatedMachines"], &from["emulatedMachines"]];
        if let Some(allowed) = allowed.into_iter().find_map(Value::as_array) {
            self.emulated_machines = allowed.iter().filter_map(text).collect();
        }
        let developer = &from["developerConfiguration"];
        if let Some(percent) = developer["memoryOvercommit"].as_i64().filter(|it| *it > 0) {
            self.memory_overcommit = percent;
        }
        self.cpu_request = text(&from["cpuRequest"]).or(self.cpu_request);
        self.cpu_model = text(&from["cpuModel"]).or(self.cpu_model);
        self.eviction_strategy = text(&from["evictionStrategy"]).or(self.eviction_strategy);
        if let Some(strategy) = text(&from["vmRolloutStrategy"]) {
            self.live_update = strategy == "LiveUpdate";
        }
        let live = &from["liveUpdateConfiguration"];
        self.max_cpu_sockets = number(&live["maxCpuSockets"]).unwrap_or(self.max_cpu_sockets);
        self.max_guest = serde_json::from_value(live["maxGuest"].clone())
            .ok()
            .or(self.max_guest);
        self.max_hotplug_ratio = number(&live["maxHotplugRatio"]).unwrap_or(self.max_hotplug_ratio);
        let network = &from["network"];
        self.default_binding = match network["defaultNetworkInterface"].as_str() {
            Some("masquerade") => DefaultBinding::Masquerade,
            Some("slirp") => DefaultBinding::Slirp,
            Some("bridge") => DefaultBinding::Bridge,
            _ => self.default_binding,
        };
        if let Some(allowed) = network["permitBridgeInterfaceOnPodNetwork"].as_bool() {
            self.bridge_on_pod_network = allowed;
        }
        let gates = developer["featureGates"].as_array().into_iter().flatten();
        self.feature_gates.extend(gates.filter_map(text));
        // Presence switches off; there is nothing in it.
        let options = &from["virtualMachineOptions"];
        self.free_page_reporting &= options["disableFreePageReporting"].is_null();
        self.log_serial_console &= options["disableSerialConsoleLog"].is_null();
        self
    }

    /// Takes over what a `HyperConverged` object says; it is the operator's word, and comes before that of `KubeVirt`.
    #[must_use]
    pub fn with_hyperconverged(mut self, object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        self.cpu_model = text(&spec["defaultCPUModel"]).or(self.cpu_model);
        self.eviction_strategy = text(&spec["evictionStrategy"]).or(self.eviction_strategy);
        if let Some(percent) = spec["higherWorkloadDensity"]["memoryOvercommitPercentage"]
            .as_i64()
            .filter(|it| *it > 0)
        {
            self.memory_overcommit = percent;
        }
        // Options were under `configuration` in older documentation.
        for options in [
            &spec["configuration"]["virtualMachineOptions"],
            &spec["virtualMachineOptions"],
        ] {
            if let Some(off) = options["disableFreePageReporting"].as_bool() {
                self.free_page_reporting = !off;
            }
            if let Some(off) = options["disableSerialConsoleLog"].as_bool() {
                self.log_serial_console = !off;
            }
        }
        self
    }

    /// Whether somebody switched a feature on.
    pub fn gate(&self, name: &str) -> bool {
        self.feature_gates.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubevirt_object_says_what_differs() {
        let settings = Settings::from_kubevirt(&json!({"spec": {"configuration": {
            "vmRolloutStrategy": "Stage",
            "machineType": "pc-q35-7.2",
            "evictionStrategy": "LiveMigrate",
            "developerConfiguration": {"memoryOvercommit": 150, "featureGates": ["HostDisk"]},
            "liveUpdateConfiguration": {"maxCpuSockets": 8, "maxGuest": "4Gi", "maxHotplugRatio": 2},
            "network": {"defaultNetworkInterface": "masquerade", "permitBridgeInterfaceOnPodNetwork": false},
            "virtualMachineOptions": {"disableSerialConsoleLog": {}},
        }}}));
        let expected = Settings {
            live_update: false,
            machine_type: "pc-q35-7.2".to_owned(),
            eviction_strategy: Some("LiveMigrate".to_owned()),
            memory_overcommit: 150,
            feature_gates: BTreeSet::from(["HostDisk".to_owned(), "VMPersistentState".to_owned()]),
            max_cpu_sockets: 8,
            max_guest: serde_json::from_value(json!("4Gi")).ok(),
            max_hotplug_ratio: 2,
            default_binding: DefaultBinding::Masquerade,
            bridge_on_pod_network: false,
            log_serial_console: false,
            ..Settings::default()
        };
        assert_eq!(settings, expected);
        assert_eq!(Settings::from_kubevirt(&json!({})), Settings::default());
    }

    #[test]
    fn a_workspace_decides_what_concerns_nobody_else() {
        let kubevirt = |name: &str, configuration: Value| {
            json!({
                "metadata": {"name": name, "namespace": "kubevirt", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"configuration": configuration},
            })
        };
        let platform = Sources::of(
            [
                kubevirt("b", json!({"cpuModel": "Skylake-Server"})),
                kubevirt(
                    "a",
                    json!({"cpuModel": "Haswell", "evictionStrategy": "LiveMigrate",
                       "developerConfiguration": {"featureGates": ["Sidecar"]}}),
                ),
            ],
            [json!({"metadata": {"name": "mine"}, "spec": {"defaultCPUModel": "Broadwell"}})],
        );
        let own = kubevirt(
            "own",
            json!({
                "cpuModel": "EPYC",
                "machineType": "pc-q35-7.2",
                "emulatedMachines": ["pc*"],
                "developerConfiguration": {"memoryOvercommit": 1000, "featureGates": ["HostDisk"]},
            }),
        );
        let settings = Settings::in_force(&platform, Some(&Sources::of([own], [])));
        let expected = Settings {
            cpu_model: Some("EPYC".to_owned()),
            machine_type: "pc-q35-7.2".to_owned(),
            eviction_strategy: Some("LiveMigrate".to_owned()),
            feature_gates: BTreeSet::from(["Sidecar".to_owned(), "VMPersistentState".to_owned()]),
            ..Settings::default()
        };
        assert_eq!(settings, expected);
        let settings = Settings::in_force(&platform, None);
        assert_eq!(settings.cpu_model.as_deref(), Some("Haswell"));
    }

    #[test]
    fn how_machines_are_moved() {
        let plain = Sources::default().migrations();
        assert_eq!((plain.parallel, plain.parallel_outbound), (5, 2));
        assert_eq!(plain.drain_taint, "kubevirt.io/drain");
        let migrations = json!({"parallelMigrationsPerCluster": 8, "bandwidthPerMigration": "64Mi", "nodeDrainTaintKey": "x/drain"});
        let kubevirt = json!({"spec": {"configuration": {"migrations": migrations}}});
        let operator = json!({
            "metadata": {"name": HYPERCONVERGED_NAME},
            "spec": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 3, "parallelOutboundMigrationsPerNode": 0}},
        });
        let said = Sources::of([kubevirt], [operator]).migrations();
        assert_eq!((said.parallel, said.parallel_outbound), (3, 1));
        assert_eq!(said.drain_taint, "x/drain");
        assert_eq!(said.configuration["bandwidthPerMigration"], "64Mi");
    }

    #[test]
    fn the_operator_has_the_last_word() {
        let hco = json!({"spec": {
            "evictionStrategy": "LiveMigrate",
            "configuration": {"virtualMachineOptions": {"disableSerialConsoleLog": true}},
            "virtualMachineOptions": {"disableFreePageReporting": true},
        }});
        let kubevirt =
            json!({"spec": {"configuration": {"evictionStrategy": "None", "cpuModel": "Haswell"}}});
        let settings = Settings::from_kubevirt(&kubevirt).with_hyperconverged(&hco);
        assert_eq!(settings.eviction_strategy.as_deref(), Some("LiveMigrate"));
        assert_eq!(settings.cpu_model.as_deref(), Some("Haswell"));
        assert!(!settings.log_serial_console && !settings.free_page_reporting);
    }
}
