//! Sizes and tastes: VirtualMachineInstancetypes and VirtualMachinePreferences, of a namespace and of everybody.

use std::sync::Arc;

use fairway_admission::{Admission, Impact, Operation, Request, Verdict};
use serde_json::Value;

use super::{cause, text, verdict};
use crate::impact;
use crate::validate::{Cause, CauseType};

const TOPOLOGIES: [&str; 10] = [
    "preferSockets",
    "preferCores",
    "preferThreads",
    "preferSpread",
    "preferAny",
    "sockets",
    "cores",
    "threads",
    "spread",
    "any",
];

/// A kind of them.
struct Sizes {
    webhook: &'static str,
    is_taste: bool,
}

pub(super) fn of(plural: &str) -> Option<Arc<dyn Admission>> {
    let (webhook, is_taste) = match plural {
        "virtualmachineinstancetypes" => (
            "virtualmachineinstancetype-validator.instancetype.kubevirt.io",
            false,
        ),
        "virtualmachineclusterinstancetypes" => (
            "virtualmachineclusterinstancetype-validator.instancetype.kubevirt.io",
            false,
        ),
        "virtualmachinepreferences" => (
            "virtualmachinepreference-validator.instancetype.kubevirt.io",
            true,
        ),
        "virtualmachineclusterpreferences" => (
            "virtualmachineclusterpreference-validator.instancetype.kubevirt.io",
            true,
        ),
        _ => return None,
    };
    Some(Arc::new(Sizes { webhook, is_taste }))
}

impl Admission for Sizes {
    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        if request.operation == Operation::Delete {
            return Ok(Vec::new());
        }
        let spec = &object["spec"];
        let causes = if self.is_taste { taste(spec) } else { size(spec) };
        verdict(self.webhook, &causes)?;
        Ok(match self.is_taste {
            true => old_word(spec).into_iter().collect(),
            false => Vec::new(),
        })
    }

    fn impact(&self, request: &Request<'_>, _: &Value) -> Option<Impact> {
        let reason = match request.operation {
            Operation::Create => "",
            _ => "machines keep the size and the preference that they started with",
        };
        Some(Impact {
            class: impact::Impact::None.to_string(),
            reason: reason.to_owned(),
        })
    }
}

fn size(spec: &Value) -> Vec<Cause> {
    const FIELD: &str = "spec.memory.overcommitPercent";
    let mut causes = Vec::new();
    let percent = spec["memory"]["overcommitPercent"].as_i64().unwrap_or(0);
    if !(0..=100).contains(&percent) {
        let message = format!("{FIELD} '{percent}': must be in range between 0 and 100.");
        causes.push(cause(CauseType::Invalid, FIELD, message));
    }
    if percent != 0 && spec["memory"]["hugepages"].is_object() {
        let message = format!("{FIELD} and spec.memory.hugepages should not be requested together.");
        causes.push(cause(CauseType::Invalid, FIELD, message));
    }
    causes
}

fn taste(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(topology) = spec["cpu"]["preferredCPUTopology"].as_str() else {
        return causes;
    };
    if !TOPOLOGIES.contains(&topology) {
        let message = format!("unknown preferredCPUTopology {topology}");
        causes.push(cause(
            CauseType::Invalid,
            "spec.cpu.preferredCPUTopology",
            message,
        ));
    }
    let options = &spec["cpu"]["spreadOptions"];
    if !options.is_object() || !["spread", "preferSpread"].contains(&topology) {
        return causes;
    }
    let across = options["across"].as_str().unwrap_or("SocketsCores");
    if !["SocketsCoresThreads", "SocketsCores", "CoresThreads"].contains(&across) {
        let message = format!("across {across} is not supported");
        causes.push(cause(
            CauseType::Invalid,
            "spec.cpu.spreadOptions.across",
            message,
        ));
        return causes;
    }
    let old = spec["preferSpreadSocketToCoreRatio"]
        .as_u64()
        .filter(|it| *it != 0);
    let ratio = options["ratio"].as_u64().or(old).unwrap_or(2);
    if across == "CoresThreads" && ratio != 2 {
        let message =
            "only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over cores and threads";
        causes.push(cause(CauseType::Invalid, "spec.cpu.spreadOptions.ratio", message));
    }
    causes
}

/// The older spelling of a topology.
fn old_word(spec: &Value) -> Option<String> {
    let word = text(spec, "/cpu/preferredCPUTopology");
    let new = word.strip_prefix("prefer")?.to_lowercase();
    Some(format!(
        "PreferredCPUTopology {word} is deprecated for removal in a future release, please use {new} instead"
    ))
}
