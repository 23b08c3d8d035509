//! What the `KubeVirt` object of a cluster decides for all machines of it: `spec.configuration`.

use std::collections::BTreeSet;

use serde_json::Value;

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
    /// Settings out of a `KubeVirt` object; what it does not say stays as it is without one.
    pub fn from_kubevirt(object: &Value) -> Self {
        let mut settings = Self::default();
        let from = &object["spec"]["configuration"];
        let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        let number = |value: &Value| value.as_u64().and_then(|it| u32::try_from(it).ok());
        let machine = &from["architectureConfiguration"]["amd64"];
        if let Some(kind) = text(&machine["machineType"]).or_else(|| text(&from["machineType"])) {
            settings.machine_type = kind;
        }
        let allowed = [&machine["emulatedMachines"], &from["emulatedMachines"]];
        if let Some(allowed) = allowed.into_iter().find_map(Value::as_array) {
            settings.emulated_machines = allowed.iter().filter_map(text).collect();
        }
        let developer = &from["developerConfiguration"];
        if let Some(percent) = developer["memoryOvercommit"].as_i64().filter(|it| *it > 0) {
            settings.memory_overcommit = percent;
        }
        settings.cpu_request = text(&from["cpuRequest"]);
        settings.cpu_model = text(&from["cpuModel"]);
        settings.eviction_strategy = text(&from["evictionStrategy"]);
        if let Some(strategy) = text(&from["vmRolloutStrategy"]) {
            settings.live_update = strategy == "LiveUpdate";
        }
        let live = &from["liveUpdateConfiguration"];
        settings.max_cpu_sockets = number(&live["maxCpuSockets"]).unwrap_or_default();
        settings.max_guest = serde_json::from_value(live["maxGuest"].clone()).ok();
        if let Some(ratio) = number(&live["maxHotplugRatio"]).filter(|it| *it > 0) {
            settings.max_hotplug_ratio = ratio;
        }
        let network = &from["network"];
        settings.default_binding = match network["defaultNetworkInterface"].as_str() {
            Some("masquerade") => DefaultBinding::Masquerade,
            Some("slirp") => DefaultBinding::Slirp,
            _ => DefaultBinding::Bridge,
        };
        if let Some(allowed) = network["permitBridgeInterfaceOnPodNetwork"].as_bool() {
            settings.bridge_on_pod_network = allowed;
        }
        let gates = developer["featureGates"].as_array().into_iter().flatten();
        settings.feature_gates.extend(gates.filter_map(text));
        // Presence switches off; there is nothing in it.
        let options = &from["virtualMachineOptions"];
        settings.free_page_reporting = options["disableFreePageReporting"].is_null();
        settings.log_serial_console = options["disableSerialConsoleLog"].is_null();
        settings
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
    use serde_json::json;

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
