//! LimitRange: defaults for containers that say nothing, bounds for containers, pods and claims.

use std::collections::BTreeSet;

use fairway_kernel_kinds::quantity::Quantity;
use fairway_kernel_kinds::read::{each_mut, list, part, part_mut, set, text};
use serde_json::Value;

use crate::Amounts;
use crate::pod_resources::specified;

/// Where a pod tells what was set for it.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Thousandths of more than this cannot be held, so such amounts are compared as whole numbers.
const MAX_MILLI: i64 = i64::MAX / 1000;

/// A LimitRange as the decisions see it.
#[derive(Clone, Debug, Default)]
pub struct LimitRange {
    limits: Vec<Limit>,
}

#[derive(Clone, Debug)]
struct Limit {
    kind: String,
    min: Amounts,
    max: Amounts,
    default: Amounts,
    default_request: Amounts,
    max_ratio: Amounts,
}

impl LimitRange {
    /// Reads a LimitRange.
    pub fn from_object(object: &Value) -> Self {
        let limits = list(part(object, "spec"), "limits").iter().map(|limit| Limit {
            kind: text(limit, "type").to_owned(),
            min: Amounts::read(limit, "min"),
            max: Amounts::read(limit, "max"),
            default: Amounts::read(limit, "default"),
            default_request: Amounts::read(limit, "defaultRequest"),
            max_ratio: Amounts::read(limit, "maxLimitRequestRatio"),
        });
        Self {
            limits: limits.collect(),
        }
    }

    /// Fills in what the containers of a pod do not say, and notes it on the pod.
    pub fn complete_pod(&self, pod: &mut Value) {
        let (mut requests, mut limits) = (Amounts::default(), Amounts::default());
        for limit in self.limits.iter().filter(|limit| limit.kind == "Container") {
            limit
                .default_request
                .iter()
                .for_each(|(name, amount)| requests.set(name, amount));
            limit
                .default
                .iter()
                .for_each(|(name, amount)| limits.set(name, amount));
        }
        if requests.is_empty() && limits.is_empty() {
            return;
        }
        let mut notes = Vec::new();
        for (field, what) in [("containers", "container"), ("initContainers", "init container")] {
            for container in each_mut(part_mut(pod, "spec"), field) {
                let name = text(container, "name").to_owned();
                let requested = fill(container, "requests", &requests);
                let limited = fill(container, "limits", &limits);
                for (set, word) in [(requested, "request"), (limited, "limit")] {
                    if !set.is_empty() {
                        notes.push(format!("{} {word} for {what} {name}", set.join(", ")));
                    }
                }
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            set(
                part_mut(part_mut(pod, "metadata"), "annotations"),
                ANNOTATION,
                note,
            );
        }
    }

    /// Why a pod is out of bounds.
    pub fn refuse_pod(&self, pod: &Value) -> Option<String> {
        let mut wrong = Vec::new();
        let spec = part(pod, "spec");
        for limit in &self.limits {
            match limit.kind.as_str() {
                "Container" => {
                    for container in ["containers", "initContainers"]
                        .iter()
                        .flat_map(|field| list(spec, field))
                    {
                        let resources = part(container, "resources");
                        let (requests, limits) = (
                            Amounts::read(resources, "requests"),
                            Amounts::read(resources, "limits"),
                        );
                        limit.judge(&requests, &limits, &mut wrong);
                    }
                }
                "Pod" => limit.judge(&specified(pod, "requests"), &specified(pod, "limits"), &mut wrong),
                _ => {}
            }
        }
        aggregate(wrong)
    }

    /// Why a PersistentVolumeClaim is out of bounds.
    pub fn refuse_claim(&self, claim: &Value) -> Option<String> {
        let mut wrong = Vec::new();
        let requests = Amounts::read(part(part(claim, "spec"), "resources"), "requests");
        for limit in self
            .limits
            .iter()
            .filter(|limit| limit.kind == "PersistentVolumeClaim")
        {
            for (name, least) in limit.min.iter() {
                wrong.extend(limit.below_min(name, least, &requests, &Amounts::default()));
            }
            for (name, most) in limit.max.iter() {
                wrong.extend(limit.above_max_request(name, most, &requests));
            }
        }
        aggregate(wrong)
    }
}

/// Sets what is missing in a container's requests or limits; returns the names.
fn fill(container: &mut Value, field: &str, defaults: &Amounts) -> Vec<String> {
    let there = Amounts::read(part(container, "resources"), field);
    let missing: Vec<(&str, Quantity)> = defaults.iter().filter(|(name, _)| !there.has(name)).collect();
    for (name, amount) in &missing {
        set(
            part_mut(part_mut(container, "resources"), field),
            name,
            amount.canonical(),
        );
    }
    missing.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// Several complaints in one sentence, each once.
fn aggregate(wrong: Vec<String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let distinct: Vec<String> = wrong
        .into_iter()
        .filter(|what| seen.insert(what.clone()))
        .collect();
    match distinct.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

/// Two amounts and the bound in a common precision: thousandths if they can be held.
fn comparable(request: Quantity, limit: Quantity, bound: Quantity) -> (i64, i64, i64) {
    let all = [request, limit, bound];
    if all.iter().all(|amount| amount.value() <= MAX_MILLI) {
        (request.milli_value(), limit.milli_value(), bound.milli_value())
    } else {
        (request.value(), limit.value(), bound.value())
    }
}

impl Limit {
    fn judge(&self, requests: &Amounts, limits: &Amounts, wrong: &mut Vec<String>) {
        for (name, bound) in self.min.iter() {
            wrong.extend(self.below_min(name, bound, requests, limits));
        }
        for (name, bound) in self.max.iter() {
            wrong.extend(self.above_max(name, bound, requests, limits));
        }
        for (name, bound) in self.max_ratio.iter() {
            wrong.extend(self.above_ratio(name, bound, requests, limits));
        }
    }

    fn below_min(&self, name: &str, bound: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let (request, limit) = (requests.get(name), limits.get(name));
        let (asked, limited, least) = comparable(or_zero(request), or_zero(limit), bound);
        let rule = format!("minimum {name} usage per {} is {}", self.kind, bound.canonical());
        match (request, limit) {
            (None, _) => Some(format!("{rule}.  No request is specified")),
            (Some(request), _) if asked < least => {
                Some(format!("{rule}, but request is {}", request.canonical()))
            }
            (_, Some(limit)) if limited < least => {
                Some(format!("{rule}, but limit is {}", limit.canonical()))
            }
            _ => None,
        }
    }

    fn above_max(&self, name: &str, bound: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let (request, limit) = (requests.get(name), limits.get(name));
        let (asked, limited, most) = comparable(or_zero(request), or_zero(limit), bound);
        let rule = format!("maximum {name} usage per {} is {}", self.kind, bound.canonical());
        match (request, limit) {
            (_, None) => Some(format!("{rule}.  No limit is specified")),
            (_, Some(limit)) if limited > most => Some(format!("{rule}, but limit is {}", limit.canonical())),
            (Some(request), _) if asked > most => {
                Some(format!("{rule}, but request is {}", request.canonical()))
            }
            _ => None,
        }
    }

    /// For claims, which have no limits.
    fn above_max_request(&self, name: &str, bound: Quantity, requests: &Amounts) -> Option<String> {
        let request = requests.get(name);
        let (asked, _, most) = comparable(or_zero(request), Quantity::ZERO, bound);
        let rule = format!("maximum {name} usage per {} is {}", self.kind, bound.canonical());
        match request {
            None => Some(format!("{rule}.  No request is specified")),
            Some(request) if asked > most => Some(format!("{rule}, but request is {}", request.canonical())),
            Some(_) => None,
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "a ratio for people, as upstream computes it"
    )]
    fn above_ratio(
        &self,
        name: &str,
        bound: Quantity,
        requests: &Amounts,
        limits: &Amounts,
    ) -> Option<String> {
        let (request, limit) = (requests.get(name), limits.get(name));
        let (asked, limited, _) = comparable(or_zero(request), or_zero(limit), bound);
        let rule = format!(
            "{name} max limit to request ratio per {} is {}",
            self.kind,
            bound.canonical()
        );
        if asked == 0 {
            return Some(format!("{rule}, but no request is specified or request is 0"));
        }
        if limited == 0 {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        }
        let ratio = limited as f64 / asked as f64;
        let exceeded = if bound.value() <= MAX_MILLI {
            ratio * 1000.0 > bound.milli_value() as f64
        } else {
            ratio > bound.value() as f64
        };
        exceeded.then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
    }
}

fn or_zero(amount: Option<Quantity>) -> Quantity {
    amount.unwrap_or(Quantity::ZERO)
}
