//! What ResourceClaims use: numbers, and devices by class.

use std::collections::BTreeMap;

use fairway_kernel_kinds::quantity::Quantity;
use fairway_kernel_kinds::read::{has, int, list, part, text};
use serde_json::Value;

use crate::Amounts;

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The most devices that one claim can be given: what "all" may come to.
const MOST_DEVICES: i64 = 32;

pub(crate) fn measures(name: &str) -> bool {
    name == COUNT || name.ends_with(OF_CLASS)
}

/// The class that a request names, and the most devices that it may take.
fn worst_case(request: &Value) -> (&str, i64) {
    let devices = match text(request, "allocationMode") {
        "ExactCount" => int(request, "count").unwrap_or(0),
        "All" => MOST_DEVICES,
        _ => 0,
    };
    (text(request, "deviceClassName"), devices)
}

pub(crate) fn usage(claim: &Value) -> Amounts {
    let mut used = Amounts::default();
    used.one(COUNT);
    for request in list(part(part(claim, "spec"), "devices"), "requests") {
        // Of alternatives one will be taken; each class is charged the worst of its own.
        let mut by_class: BTreeMap<&str, i64> = BTreeMap::new();
        let alternatives = list(request, "firstAvailable");
        if !alternatives.is_empty() {
            for (class, devices) in alternatives.iter().map(worst_case) {
                let most = by_class.entry(class).or_default();
                *most = devices.max(*most);
            }
            by_class.retain(|_, devices| *devices > 0);
        } else if has(request, "exactly") {
            let (class, devices) = worst_case(part(request, "exactly"));
            by_class.insert(class, devices);
        }
        for (class, devices) in by_class {
            used.add(&format!("{class}{OF_CLASS}"), Quantity::from_int(devices));
        }
    }
    used
}
