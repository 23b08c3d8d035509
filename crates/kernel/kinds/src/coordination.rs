//! Lease and LeaseCandidate.

use serde_json::Value;

use crate::at::{At, Errors, NOT_POSITIVE};
use crate::meta::{self, NameRule};
use crate::read::{self, has, int, part, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::validation;

const OLDEST: &str = "OldestEmulationVersion";

fn validate_strategy(errs: &mut Errors, at: &At<'_>, strategy: &str) {
    // Upstream names the field twice.
    let at = at.field("strategy");
    let at = at.field("strategy");
    if strategy.contains('/') {
        errs.all_invalid(&at, strategy, validation::is_qualified_name(strategy));
    } else {
        errs.one_of(&at, strategy, &[OLDEST]);
    }
}

pub(crate) struct Lease;

static LEASE: Profile = Profile {
    create_on_update: true,
    unconditional_update: false,
    ..Profile::NAMESPACED
};

/// Coordinated leader election is not on by default upstream, so its fields go unless they were stored before.
fn drop_coordination(obj: &mut Value, old: Option<&Value>) {
    let used = |key: &str| old.is_some_and(|old| has(part(old, "spec"), key));
    if let Some(spec) = obj
        .get_mut("spec")
        .filter(|_| !used("strategy") && !used("preferredHolder"))
    {
        read::unset(spec, "strategy");
        read::unset(spec, "preferredHolder");
    }
}

impl Strategy for Lease {
    fn profile(&self) -> &'static Profile {
        &LEASE
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        drop_coordination(obj, None);
    }

    fn prepare_update(&self, _ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        drop_coordination(obj, Some(old));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|s| *s <= 0) {
            errs.invalid(&at.field("leaseDurationSeconds"), seconds, NOT_POSITIVE);
        }
        errs.none_negative(&at, spec, &["leaseTransitions"]);
        if has(spec, "strategy") {
            validate_strategy(errs, &at, text(spec, "strategy"));
        }
        if !text(spec, "preferredHolder").is_empty() && text(spec, "strategy").is_empty() {
            errs.forbidden(
                &at.field("preferredHolder"),
                "may only be specified if `strategy` is defined",
            );
        }
    }
}

pub(crate) struct LeaseCandidate;

static CANDIDATE: Profile = Profile {
    name: NameRule::Own,
    ..LEASE
};

/// `1.36.0`, with whatever semantic versioning allows after it.
fn version(text: &str) -> Option<(u64, u64, u64)> {
    let core = text.split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|n| {
        let canonical = n == "0" || (!n.starts_with('0') && n.bytes().all(|b| b.is_ascii_digit()));
        if canonical { n.parse::<u64>().ok() } else { None }
    });
    let parsed = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(parsed)
}

impl Strategy for LeaseCandidate {
    fn profile(&self) -> &'static Profile {
        &CANDIDATE
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_none() {
            let name = meta::name(obj);
            errs.all_invalid(
                &At::new("metadata.name"),
                name,
                validation::is_config_map_key(name),
            );
        }
        let spec = part(obj, "spec");
        let at = At::new("spec");
        errs.require_text(&at, spec, "leaseName");
        for key in ["emulationVersion", "binaryVersion"] {
            let value = text(spec, key);
            if !value.is_empty() && version(value).is_none() {
                errs.invalid(&at.field(key), value, "must be a valid semantic version");
            }
        }
        let (binary, emulated) = (text(spec, "binaryVersion"), text(spec, "emulationVersion"));
        if binary.is_empty() {
            errs.required(&at.field("binaryVersion"), "");
        } else if version(binary).zip(version(emulated)).is_some_and(|(b, e)| b < e) {
            errs.invalid(
                &at.field("binaryVersion"),
                binary,
                "must be greater than or equal to `emulationVersion`",
            );
        }
        match text(spec, "strategy") {
            "" => errs.required(&at.field("strategy"), ""),
            strategy => {
                if strategy == OLDEST && emulated.is_empty() {
                    errs.required(
                        &at.field("emulationVersion"),
                        "must be specified when `strategy` is 'OldestEmulationVersion'",
                    );
                }
                validate_strategy(errs, &at, strategy);
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        errs.immutable(
            &At::new("spec.leaseName"),
            new.get("leaseName"),
            old.get("leaseName"),
        );
    }
}
