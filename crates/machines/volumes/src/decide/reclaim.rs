//! What becomes of a volume whose claim is gone: it is kept, kept for a while, or removed with its files.
//!
//! A machine that Git has pruned may come back: by a revert, or by `fairway undelete`. So its disks lie in a trash for as long as
//! its tombstone does, unless it says otherwise (`fairway.dev/keep-disks: 72h`). A machine that somebody deleted by hand is gone, and so is
//! one that went with its Application: the next of its name may be somebody else's, who must not find its disks. It can ask for them to be kept.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::names;
use crate::view::Volume;

/// What the tombstone of an object says that went with its Application.
const APPLICATION_DELETED: &str = "ApplicationDeleted";

/// What becomes of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reclaim {
    /// Nothing: it is its claim's, or nobody's yet.
    Keep,
    /// Its claim is gone, and it stays for somebody to look after.
    Release,
    /// Its claim is gone, and it stays until this time.
    Trash(Timestamp),
    /// It lies in the trash, until this time.
    Wait(Timestamp),
    /// It goes, and its files with it.
    Remove,
}

/// Decides about a volume. `claim` is the UID of the claim that has its claim's name now; `until` is how long those that Git pruned
/// are kept.
pub(crate) fn decide(
    volume: &Volume,
    claim: Option<&str>,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Reclaim {
    let Some(reference) = &volume.spec.claim_ref else {
        return match volume.metadata.is_deleting() {
            true => Reclaim::Remove,
            false => Reclaim::Keep,
        };
    };
    if claim == Some(reference.uid.as_str()) {
        return Reclaim::Keep;
    }
    if volume.metadata.is_deleting() {
        return Reclaim::Remove;
    }
    if volume.spec.persistent_volume_reclaim_policy != "Delete" {
        return match volume.status.phase == "Released" {
            true => Reclaim::Keep,
            false => Reclaim::Release,
        };
    }
    let noted = volume
        .metadata
        .annotation(names::TRASH_UNTIL)
        .and_then(|text| text.parse::<Timestamp>().ok());
    match (noted, until) {
        (Some(until), _) if now < until => Reclaim::Wait(until),
        (Some(_), _) => Reclaim::Remove,
        (None, Some(until)) if now < until => Reclaim::Trash(until),
        (None, _) => Reclaim::Remove,
    }
}

/// Until when a volume is kept according to tombstones; nothing if Git pruned none of those that it was for. `keep` is how long,
/// where neither the object nor the operator says so it is as long as the tombstone.
pub(crate) fn until(stones: &[Value], volume: &Volume, keep: Option<Duration>) -> Option<Timestamp> {
    let reference = volume.spec.claim_ref.as_ref()?;
    let machine = volume.metadata.annotation(names::MACHINE);
    let created = volume.metadata.creation_timestamp.parse::<Timestamp>().ok();
    let text = |stone: &Value, pointer: &str| -> String {
        stone
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let time = |stone: &Value, pointer: &str| text(stone, pointer).parse::<Timestamp>().ok();
    let mut newest: BTreeMap<String, (Timestamp, &Value)> = BTreeMap::new();
    for stone in stones {
        let (kind, name) = (
            text(stone, "/spec/object/kind"),
            text(stone, "/spec/object/metadata/name"),
        );
        let is_it = match kind.as_str() {
            "VirtualMachine" => Some(name.as_str()) == machine,
            "DataVolume" | "PersistentVolumeClaim" => name == reference.name,
            _ => false,
        };
        let Some(deleted) = time(stone, "/spec/deletedAt") else {
            continue;
        };
        // One of an earlier machine of the same name.
        let is_earlier = created.is_some_and(|created| deleted < created);
        if !is_it || is_earlier || text(stone, "/spec/object/metadata/namespace") != reference.namespace {
            continue;
        }
        // An object that came back and went again is asked what it said the last time.
        let known = newest.entry(kind).or_insert((deleted, stone));
        if known.0 < deleted {
            *known = (deleted, stone);
        }
    }
    newest
        .into_values()
        .filter_map(|(deleted, stone)| {
            let annotation = stone
                .pointer("/spec/object/metadata/annotations")
                .and_then(|all| all.get(names::KEEP_DISKS))
                .and_then(Value::as_str);
            let is_pruned = text(stone, "/spec/reason") != APPLICATION_DELETED;
            match annotation.and_then(duration).or(keep.filter(|_| is_pruned)) {
                Some(keep) => deleted.checked_add(SignedDuration::try_from(keep).ok()?).ok(),
                None if is_pruned => time(stone, "/spec/expiresAt"),
                None => None,
            }
        })
        .max()
}

/// `90s`, `30m`, `72h`, `7d` or `0`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "" if number == 0 => 0,
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn volume(policy: &str, more: &Value) -> Volume {
        let mut object = json!({
            "metadata": {"name": "pvc-u1", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {}},
            "spec": {
                "claimRef": {"namespace": "shop", "name": "d", "uid": "u1"}, "persistentVolumeReclaimPolicy": policy,
            },
            "status": {"phase": "Bound"},
        });
        for (pointer, value) in more.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        Volume::deserialize(object).unwrap()
    }

    #[test]
    fn a_volume_follows_its_claim() {
        let (now, later) = (at("2026-02-01T00:00:00Z"), at("2026-02-02T00:00:00Z"));
        let deleting = json!({"/metadata/deletionTimestamp": "2026-02-01T00:00:00Z"});
        let noted = |time: &str| json!({"/metadata/annotations": {names::TRASH_UNTIL: time}});
        for (why, policy, more, claim, until, expected) in [
            ("it is used", "Delete", json!({}), Some("u1"), None, Reclaim::Keep),
            (
                "its claim holds it",
                "Delete",
                deleting.clone(),
                Some("u1"),
                None,
                Reclaim::Keep,
            ),
            ("it is gone", "Delete", json!({}), None, None, Reclaim::Remove),
            (
                "another has the name",
                "Delete",
                json!({}),
                Some("u2"),
                None,
                Reclaim::Remove,
            ),
            (
                "it is retained",
                "Retain",
                json!({}),
                None,
                None,
                Reclaim::Release,
            ),
            (
                "it was released",
                "Retain",
                json!({"/status/phase": "Released"}),
                None,
                None,
                Reclaim::Keep,
            ),
            (
                "it is deleted by hand",
                "Retain",
                deleting,
                None,
                None,
                Reclaim::Remove,
            ),
            (
                "it is pruned",
                "Delete",
                json!({}),
                None,
                Some(later),
                Reclaim::Trash(later),
            ),
            (
                "its time was up before",
                "Delete",
                json!({}),
                None,
                Some(now),
                Reclaim::Remove,
            ),
            (
                "it lies in the trash",
                "Delete",
                noted("2026-02-02T00:00:00Z"),
                None,
                None,
                Reclaim::Wait(later),
            ),
            (
                "its time is up",
                "Delete",
                noted("2026-01-31T00:00:00Z"),
                None,
                Some(later),
                Reclaim::Remove,
            ),
            (
                "it is nobody's",
                "Delete",
                json!({"/spec/claimRef": null}),
                None,
                None,
                Reclaim::Keep,
            ),
        ] {
            assert_eq!(
                decide(&volume(policy, &more), claim, until, now),
                expected,
                "{why}"
            );
        }
    }

    #[test]
    fn tombstones_say_how_long() {
        let of_machine = volume(
            "Delete",
            &json!({"/metadata/annotations": {names::MACHINE: "web"}}),
        );
        let stone = |kind: &str, name: &str, deleted: &str, keep: Value| {
            json!({"spec": {
                "deletedAt": deleted, "expiresAt": "2026-02-08T00:00:00Z",
                "object": {"kind": kind, "metadata": {"name": name, "namespace": "shop", "annotations": keep}},
            }})
        };
        let with_application = |keep: Value| {
            let mut stone = stone("VirtualMachine", "web", "2026-02-01T00:00:00Z", keep);
            stone["spec"]["reason"] = APPLICATION_DELETED.into();
            stone
        };
        let february = "2026-02-01T00:00:00Z";
        let two_hours = Some(Duration::from_secs(7200));
        for (why, stone, keep, expected) in [
            (
                "its machine",
                stone("VirtualMachine", "web", february, json!({})),
                None,
                Some("2026-02-08T00:00:00Z"),
            ),
            (
                "another machine",
                stone("VirtualMachine", "db", february, json!({})),
                None,
                None,
            ),
            (
                "its volume",
                stone("DataVolume", "d", february, json!({})),
                None,
                Some("2026-02-08T00:00:00Z"),
            ),
            (
                "an earlier one",
                stone("VirtualMachine", "web", "2025-12-01T00:00:00Z", json!({})),
                None,
                None,
            ),
            (
                "the operator",
                stone("VirtualMachine", "web", february, json!({})),
                two_hours,
                Some("2026-02-01T02:00:00Z"),
            ),
            (
                "the owner",
                stone(
                    "VirtualMachine",
                    "web",
                    february,
                    json!({names::KEEP_DISKS: "1d"}),
                ),
                two_hours,
                Some("2026-02-02T00:00:00Z"),
            ),
            ("its Application", with_application(json!({})), two_hours, None),
            (
                "its Application, and the owner",
                with_application(json!({names::KEEP_DISKS: "1d"})),
                None,
                Some("2026-02-02T00:00:00Z"),
            ),
            (
                "not at all",
                stone("VirtualMachine", "web", february, json!({names::KEEP_DISKS: "0"})),
                None,
                Some(february),
            ),
        ] {
            assert_eq!(until(&[stone], &of_machine, keep), expected.map(at), "{why}");
        }
        let machine = |deleted: &str, keep: &str| {
            stone("VirtualMachine", "web", deleted, json!({names::KEEP_DISKS: keep}))
        };
        let again = "2026-02-01T01:00:00Z";
        let disk = stone("DataVolume", "d", february, json!({names::KEEP_DISKS: "5h"}));
        for (why, stones, expected) in [
            (
                "what it said the last time",
                vec![machine(february, "3d"), machine(again, "1h")],
                "2026-02-01T02:00:00Z",
            ),
            (
                "in whichever order",
                vec![machine(again, "1h"), machine(february, "3d")],
                "2026-02-01T02:00:00Z",
            ),
            (
                "the longest of what both say",
                vec![machine(february, "3d"), disk, machine(again, "1h")],
                "2026-02-01T05:00:00Z",
            ),
        ] {
            assert_eq!(until(&stones, &of_machine, None), Some(at(expected)), "{why}");
        }
    }

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("2m", Some(120)),
            ("1d", Some(86400)),
            ("0", Some(0)),
            ("5", None),
            ("x", None),
        ] {
            assert_eq!(duration(text), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
