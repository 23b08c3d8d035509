//! What a DataImportCron does next: which import is the present one, whether there is a newer image, and what it says of that.

use serde::Deserialize;
use serde_json::{Value, json};

use super::status::{Condition, condition, merged};
use crate::names;
use crate::view::{Metadata, Named};

/// How much of a digest is part of a name.
const SUFFIX: usize = 12;
/// How many imports are kept if nobody says otherwise.
const KEPT: usize = 3;
/// The longest name of an object that is also a label.
const MAX_NAME: usize = 63;

/// A DataImportCron.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Cron {
    pub(crate) metadata: Metadata,
    pub(crate) spec: CronSpec,
    pub(crate) status: CronStatus,
}

/// What it is to do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CronSpec {
    pub(crate) schedule: String,
    pub(crate) managed_data_source: String,
    pub(crate) garbage_collect: Option<String>,
    pub(crate) imports_to_keep: Option<i64>,
    pub(crate) retention_policy: Option<String>,
    pub(crate) template: Value,
}

/// What it has done.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CronStatus {
    pub(crate) current_imports: Vec<Current>,
    pub(crate) last_imported_pvc: Option<Named>,
}

/// An import.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Current {
    #[serde(rename = "DataVolumeName")]
    pub(crate) data_volume_name: String,
    #[serde(rename = "Digest")]
    pub(crate) digest: String,
}

/// The present import, as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Import {
    /// There is none.
    None,
    /// Its DataVolume is in this phase, and may say that it failed.
    Volume { phase: String, has_failed: bool },
    /// Its DataVolume is gone, its claim is bound.
    Claim,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) status: Value,
    /// A DataVolume to make, by its name and the digest of its image.
    pub(crate) make: Option<(String, String)>,
    /// The present DataVolume is given up.
    pub(crate) gives_up: bool,
    /// The import is finished: older ones may go.
    pub(crate) is_done: bool,
}

/// The name of the DataVolume of an image.
pub(crate) fn volume_name(data_source: &str, digest: &str) -> Option<String> {
    let short = digest.strip_prefix("sha256:")?.get(..SUFFIX)?;
    let prefix = data_source.get(..MAX_NAME - SUFFIX - 1).unwrap_or(data_source);
    Some(format!("{}-{short}", prefix.trim_end_matches(['-', '.'])))
}

/// How many imports are kept; nothing: all.
pub(crate) fn kept(spec: &CronSpec) -> Option<usize> {
    match spec.garbage_collect.as_deref() {
        None | Some("" | "Outdated") => {
            let kept = spec.imports_to_keep.and_then(|kept| usize::try_from(kept).ok());
            Some(kept.unwrap_or(KEPT))
        }
        Some(_) => None,
    }
}

/// Decides. `before` is the status as it is, `now` counts for what changes.
pub(crate) fn decide(cron: &Cron, import: &Import, before: &Value, now: &str) -> Decision {
    let desired = cron.metadata.annotation(names::DESIRED_DIGEST);
    let mut imports = cron.status.current_imports.clone();
    let mut status = before.as_object().cloned().unwrap_or_default();
    let is_done = match import {
        Import::Volume { phase, .. } => phase == "Succeeded",
        Import::Claim => true,
        Import::None => false,
    } && !imports.is_empty();
    if *import == Import::None {
        imports.clear();
    }
    let progressing = match import {
        _ if is_done => condition("Progressing", "False", "NoImport", "No current import"),
        Import::Volume { phase, .. } => match phase.as_str() {
            "ImportScheduled" => condition("Progressing", "False", "ImportScheduled", "Import is scheduled"),
            "ImportInProgress" => condition(
                "Progressing",
                "True",
                "ImportProgressing",
                "Import is progressing",
            ),
            other => condition(
                "Progressing",
                "False",
                if other.is_empty() { "Unset" } else { other },
                &format!("Import DataVolume phase {other}"),
            ),
        },
        Import::None | Import::Claim => condition("Progressing", "False", "NoImport", "No current import"),
    };
    if is_done && let Some(current) = imports.first() {
        let imported = json!({"namespace": cron.metadata.namespace, "name": current.data_volume_name});
        if status.get("lastImportedPVC") != Some(&imported) {
            status.insert("lastImportedPVC".to_owned(), imported);
            status.insert("lastImportTimestamp".to_owned(), json!(now));
        }
    }
    let is_news = desired.is_some_and(|desired| imports.first().is_none_or(|it| it.digest != desired));
    let (mut make, mut gives_up) = (None, false);
    let up_to_date: Condition;
    if is_news {
        up_to_date = condition(
            "UpToDate",
            "False",
            "Outdated",
            "Source digest updated since last import",
        );
        if let Import::Volume { has_failed: true, .. } = import {
            gives_up = true;
            imports.clear();
        }
        if let Some(digest) = desired
            && (is_done || imports.is_empty())
            && !gives_up
            && let Some(name) = volume_name(&cron.spec.managed_data_source, digest)
        {
            imports = vec![Current {
                data_volume_name: name.clone(),
                digest: digest.to_owned(),
            }];
            make = Some((name, digest.to_owned()));
        }
    } else if is_done {
        status.insert("sourceFormat".to_owned(), json!("pvc"));
        up_to_date = condition("UpToDate", "True", "UpToDate", "Latest import is up to date");
    } else if !imports.is_empty() {
        up_to_date = condition("UpToDate", "False", "ImportProgressing", "Import is progressing");
    } else {
        up_to_date = condition("UpToDate", "False", "NoDigest", "No source digest");
    }
    let shown: Vec<Value> = imports
        .iter()
        .map(|it| json!({"DataVolumeName": it.data_volume_name, "Digest": it.digest}))
        .collect();
    match shown.is_empty() {
        true => drop(status.shift_remove("currentImports")),
        false => drop(status.insert("currentImports".to_owned(), json!(shown))),
    }
    if let Some(last) = cron.metadata.annotation(names::LAST_CRON_TIME) {
        status.insert("lastExecutionTimestamp".to_owned(), json!(last));
    }
    let conditions = merged(&[progressing, up_to_date], &before["conditions"], now);
    status.insert("conditions".to_owned(), json!(conditions));
    Decision {
        status: Value::Object(status),
        make,
        gives_up,
        is_done,
    }
}

/// The DataVolume of an image: the template, with the image by its digest.
pub(crate) fn volume(cron: &Cron, name: &str, digest: &str, now: &str) -> Value {
    let template = &cron.spec.template;
    let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(cron.metadata.namespace);
    metadata["annotations"][names::IMMEDIATE_BINDING] = json!("true");
    metadata["annotations"][names::LAST_USE_TIME] = json!(now);
    for (label, value) in labels(cron) {
        metadata["labels"][label] = json!(value);
    }
    let sizes = cron
        .metadata
        .labels
        .iter()
        .filter(|(label, _)| label.starts_with(names::INSTANCETYPE_LABELS));
    for (label, value) in sizes {
        metadata["labels"][label] = json!(value);
    }
    let mut spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    let url = spec
        .pointer("/source/registry/url")
        .and_then(Value::as_str)
        .unwrap_or_default();
    spec["source"]["registry"]["url"] = json!(digested(url, digest));
    json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": metadata, "spec": spec})
}

/// The labels of what a cron makes.
pub(crate) fn labels(cron: &Cron) -> Vec<(&'static str, String)> {
    let mut labels = vec![(names::CRON, cron.metadata.name.clone())];
    if cron.spec.retention_policy.as_deref() == Some("None") {
        labels.push((names::CRON_CLEANUP, "true".to_owned()));
    }
    labels
}

/// An image by its digest, without the tag that it had.
fn digested(url: &str, digest: &str) -> String {
    let plain = url.split('@').next().unwrap_or(url);
    let path = plain.rfind('/').map_or(0, |at| at + 1);
    let untagged = plain[path..].find(':').map_or(plain, |at| &plain[..path + at]);
    format!("{untagged}@{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn digest(letter: char) -> String {
        format!("sha256:{}", letter.to_string().repeat(64))
    }

    fn cron(desired: Option<char>, current: Option<char>) -> (Cron, Value) {
        let mut object = json!({
            "metadata": {"name": "os", "namespace": "gold", "annotations": {}},
            "spec": {"managedDataSource": "os", "template": {"spec": {"source": {"registry": {"url": "docker://q.io/os:1"}}}}},
            "status": {},
        });
        if let Some(desired) = desired {
            object["metadata"]["annotations"][names::DESIRED_DIGEST] = json!(digest(desired));
        }
        if let Some(current) = current {
            let name = volume_name("os", &digest(current)).unwrap();
            object["status"]["currentImports"] = json!([{"DataVolumeName": name, "Digest": digest(current)}]);
        }
        (Cron::deserialize(&object).unwrap(), object["status"].clone())
    }

    fn phase(phase: &str) -> Import {
        Import::Volume {
            phase: phase.to_owned(),
            has_failed: phase == "Failed",
        }
    }

    #[test]
    fn imports_follow_the_image() {
        // Desired and present digest, the present import; then Progressing, UpToDate, what is made, and whether it is given up or done.
        for (desired, current, import, expected) in [
            (None, None, Import::None, "NoImport NoDigest - keeps"),
            (
                Some('a'),
                None,
                Import::None,
                "NoImport Outdated os-aaaaaaaaaaaa keeps",
            ),
            (
                Some('a'),
                Some('a'),
                phase("ImportInProgress"),
                "ImportProgressing ImportProgressing - keeps",
            ),
            (
                Some('a'),
                Some('a'),
                phase("Succeeded"),
                "NoImport UpToDate - done",
            ),
            (Some('a'), Some('a'), Import::Claim, "NoImport UpToDate - done"),
            (
                Some('b'),
                Some('a'),
                phase("Succeeded"),
                "NoImport Outdated os-bbbbbbbbbbbb done",
            ),
            (
                Some('b'),
                Some('a'),
                phase("ImportInProgress"),
                "ImportProgressing Outdated - keeps",
            ),
            (
                Some('b'),
                Some('a'),
                phase("Failed"),
                "Failed Outdated - gives up",
            ),
            (
                Some('a'),
                Some('a'),
                phase("Failed"),
                "Failed ImportProgressing - keeps",
            ),
            (
                Some('a'),
                Some('a'),
                Import::None,
                "NoImport Outdated os-aaaaaaaaaaaa keeps",
            ),
        ] {
            let (it, before) = cron(desired, current);
            let decision = decide(&it, &import, &before, NOW);
            let reason = |index: usize| {
                decision.status["conditions"][index]["reason"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            };
            let made = decision.make.as_ref().map_or("-", |(name, _)| name.as_str());
            let ends = match (decision.gives_up, decision.is_done) {
                (true, _) => "gives up",
                (_, true) => "done",
                _ => "keeps",
            };
            assert_eq!(
                format!("{} {} {made} {ends}", reason(0), reason(1)),
                expected,
                "{import:?}"
            );
        }
    }

    #[test]
    fn an_import_is_of_the_image_that_was_seen() {
        let (it, _) = cron(Some('a'), None);
        let made = volume(&it, "os-aaaaaaaaaaaa", &digest('a'), NOW);
        let url = made["spec"]["source"]["registry"]["url"].as_str().unwrap();
        assert_eq!(url, format!("docker://q.io/os@{}", digest('a')));
        assert_eq!(made["metadata"]["labels"][names::CRON], "os");
        for (url, expected) in [
            ("docker://q.io:5000/os", "docker://q.io:5000/os@d"),
            ("docker://q.io:5000/os:1", "docker://q.io:5000/os@d"),
            ("docker://q.io/os@old", "docker://q.io/os@d"),
        ] {
            assert_eq!(digested(url, "d"), expected);
        }
        assert_eq!(volume_name("os", "md5:x"), None);
        assert!(volume_name(&"x".repeat(100), &digest('a')).unwrap().len() <= MAX_NAME);
    }

    #[test]
    fn how_many_are_kept() {
        let spec = |collect: Option<&str>, keep: Option<i64>| CronSpec {
            garbage_collect: collect.map(str::to_owned),
            imports_to_keep: keep,
            ..CronSpec::default()
        };
        assert_eq!(kept(&spec(None, None)), Some(3));
        assert_eq!(kept(&spec(Some("Outdated"), Some(1))), Some(1));
        assert_eq!(kept(&spec(Some("Never"), Some(1))), None);
    }
}
