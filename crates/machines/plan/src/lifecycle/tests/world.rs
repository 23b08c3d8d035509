//! A tiny world that carries decisions out, driven by commands.

use fairway_text_yaml as yaml;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::{Action, Decision, FINALIZER, LiveChange, Observed, Revision, Volumes, decide};
use crate::defaults;
use crate::settings::Settings;
use crate::view::{self, RunStrategy, VirtualMachine, VirtualMachineInstance};

pub(super) struct World {
    vm: Value,
    pub(super) vmi: Option<Value>,
    started: Value,
    started_metadata: Value,
    volumes: Volumes,
    changed_by_sync: bool,
    now: Timestamp,
    instances: u32,
}

fn object(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.shift_remove(&key);
                    continue;
                }
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

impl World {
    pub(super) fn new() -> Self {
        let vm = object(
            "
metadata: {name: web, namespace: vms, uid: vm-1, generation: 1}
spec:
  runStrategy: Halted
  template:
    metadata: {labels: {app: web}}
    spec:
      domain:
        cpu: {sockets: 1, cores: 1}
        memory: {guest: 1Gi}
        devices: {disks: [{name: root, disk: {bus: virtio}}], interfaces: [{name: default, masquerade: {}}]}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, dataVolume: {name: root}}]
status: {}
",
        );
        Self {
            vm,
            vmi: None,
            started: Value::Null,
            started_metadata: Value::Null,
            volumes: Volumes::default(),
            changed_by_sync: false,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            instances: 0,
        }
    }

    pub(super) fn command(&mut self, line: &str) -> String {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "strategy" => self.vm["spec"]["runStrategy"] = json!(rest),
            "template" => merge(&mut self.vm["spec"]["template"], object(rest)),
            "annotate" => merge(&mut self.vm["metadata"], json!({"annotations": object(rest)})),
            "git" => self.changed_by_sync = rest == "on",
            "volumes" => {
                self.volumes = Volumes::default();
                match rest {
                    "provisioning" => self.volumes.provisioning = true,
                    "failed" => self.volumes.failed = Some("no space".to_owned()),
                    "missing" => self.volumes.missing = vec!["root".to_owned()],
                    "unbound" => self.volumes.unbound = true,
                    _ => {}
                }
            }
            "request" => {
                let uid = self.vmi.as_ref().map(|it| it["metadata"]["uid"].clone());
                let request = match rest {
                    "stop" => json!({"action": "Stop", "uid": uid}),
                    "start-paused" => json!({"action": "Start", "data": {"paused": "true"}}),
                    _ => json!({"action": "Start"}),
                };
                let mut all = self.vm["status"]["stateChangeRequests"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                all.push(request);
                self.vm["status"]["stateChangeRequests"] = json!(all);
            }
            "phase" => {
                let vmi = self.vmi.as_mut().unwrap();
                vmi["status"]["phase"] = json!(rest);
                let mut all = vmi["status"]["phaseTransitionTimestamps"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                all.push(json!({"phase": rest, "phaseTransitionTimestamp": self.now.to_string()}));
                vmi["status"]["phaseTransitionTimestamps"] = json!(all);
                let ready = if rest == "Running" { "True" } else { "False" };
                vmi["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
            }
            "condition" => {
                let vmi = self.vmi.as_mut().unwrap();
                let mut all = vmi["status"]["conditions"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                all.push(object(rest));
                vmi["status"]["conditions"] = json!(all);
            }
            "gone" => self.vmi = None,
            "delete" => self.vm["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            "wait" => self.now += SignedDuration::from_secs(rest.parse().unwrap()),
            "sync" => return self.sync(),
            other => panic!("no such command: {other}"),
        }
        String::new()
    }

    fn sync(&mut self) -> String {
        let vm: VirtualMachine = view::read("VirtualMachine", &self.vm).unwrap();
        let vmi: Option<VirtualMachineInstance> = self
            .vmi
            .as_ref()
            .map(|it| view::read("VirtualMachineInstance", it).unwrap());
        let revision = vmi.is_some().then_some(Revision {
            started: &self.started,
            current: &self.vm["spec"]["template"]["spec"],
            started_metadata: &self.started_metadata,
            metadata: &self.vm["spec"]["template"]["metadata"],
        });
        let observed = Observed {
            vm: &vm,
            vmi: vmi.as_ref(),
            revision,
            volumes: self.volumes.clone(),
            expected: None,
            changed_by_sync: self.changed_by_sync,
            now: self.now,
            chance: 0,
        };
        let decision = decide(&observed, &Settings::default());
        let mut shown = String::new();
        for action in &decision.actions {
            shown += &format!("  {action:?}\n");
        }
        for event in &decision.events {
            shown += &format!("  event {}: {}\n", event.reason, event.message);
        }
        let status = &decision.status;
        shown += &format!("  {}", status.printable_status);
        for condition in &status.conditions {
            shown += &format!(" {}={}", condition.kind, condition.status);
            if !condition.message.is_empty() && condition.kind != "Ready" {
                shown += &format!(" ({})", condition.message);
            }
        }
        for request in &status.state_change_requests {
            shown += &format!(" <{}>", request.action);
        }
        if let Some(failure) = &status.start_failure {
            let until = failure.retry_after_timestamp.as_deref().unwrap_or_default();
            shown += &format!(
                " failed {} times, not before {until}",
                failure.consecutive_fail_count
            );
        }
        if let Some(seconds) = decision.look_again {
            shown += &format!(" (again in {seconds} s)");
        }
        shown.push('\n');
        self.carry_out(&decision);
        shown
    }

    fn carry_out(&mut self, decision: &Decision) {
        for action in &decision.actions {
            match action {
                Action::AddFinalizer => self.vm["metadata"]["finalizers"] = json!([FINALIZER]),
                Action::RemoveFinalizer => self.vm["metadata"]["finalizers"] = json!([]),
                Action::CreateInstance { .. } => {
                    self.instances += 1;
                    self.started = self.vm["spec"]["template"]["spec"].clone();
                    self.started_metadata = self.vm["spec"]["template"]["metadata"].clone();
                    let mut vmi = json!({
                        "metadata": {
                            "name": "web", "uid": format!("vmi-{}", self.instances), "finalizers": ["x"],
                            "labels": self.vm["spec"]["template"]["metadata"]["labels"],
                        },
                        "spec": self.started,
                    });
                    defaults::instance(&mut vmi, &Settings::default()).unwrap();
                    self.vmi = Some(vmi);
                }
                Action::DeleteInstance { .. } => {
                    let vmi = self.vmi.as_mut().unwrap();
                    vmi["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                Action::ReleaseInstance { .. } => {
                    let vmi = self.vmi.as_mut().unwrap();
                    vmi["metadata"]["finalizers"] = json!([]);
                    if !vmi["metadata"]["deletionTimestamp"].is_null() {
                        self.vmi = None;
                    }
                }
                Action::SetRunning => self.vm["spec"]["runStrategy"] = json!("Always"),
                Action::UpdateInstance(changes) => self.update(changes),
                Action::CreateDataVolumes(_) => {}
            }
        }
        let status = &decision.status;
        self.vm["status"] = json!({
            "created": status.created,
            "conditions": status.conditions,
            "stateChangeRequests": status.state_change_requests,
            "startFailure": status.start_failure,
            "runStrategy": status.run_strategy.map_or("", RunStrategy::word),
        });
    }

    fn update(&mut self, changes: &[LiveChange]) {
        let vmi = self.vmi.as_mut().unwrap();
        for change in changes {
            match change {
                LiveChange::Sockets(count) => vmi["spec"]["domain"]["cpu"]["sockets"] = json!(count),
                LiveChange::Memory(guest) => vmi["spec"]["domain"]["memory"]["guest"] = json!(guest),
                LiveChange::Volumes { volumes, disks } => {
                    vmi["spec"]["volumes"] = volumes.clone();
                    vmi["spec"]["domain"]["devices"]["disks"] = disks.clone();
                }
                LiveChange::Interfaces { interfaces, networks } => {
                    vmi["spec"]["networks"] = networks.clone();
                    vmi["spec"]["domain"]["devices"]["interfaces"] = interfaces.clone();
                }
                LiveChange::Placement { field, value } => vmi["spec"][*field] = value.clone(),
                LiveChange::Metadata(patch) => merge(&mut vmi["metadata"], patch.clone()),
            }
        }
    }
}
