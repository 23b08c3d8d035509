//! DataImportCrons: images that are fetched again and again.

use fairway_admission::{Admission, Impact, Operation, Request, Verdict};
use serde_json::Value;

use super::data_volume::spec::{faults as volume_faults, name_length};
use super::{cause, importer_refusal, name, same, text};
use crate::impact;
use crate::validate::{Cause, CauseType};

const VALIDATOR: &str = "dataimportcron-validate.cdi.kubevirt.io";
/// The longest label of a domain name.
const MAX_LABEL: usize = 63;

/// The kind.
pub(super) struct Crons;

impl Admission for Crons {
    fn judge(&self, request: &Request<'_>, cron: &Value) -> Verdict {
        let causes = match (request.operation, request.old) {
            (Operation::Delete, _) => Vec::new(),
            _ if name(cron).len() > MAX_LABEL => name_length(name(cron), MAX_LABEL).into_iter().collect(),
            (_, Some(old)) if same(&old["spec"], &cron["spec"]) => Vec::new(),
            (_, Some(_)) => vec![cause(
                CauseType::Duplicate,
                "DataImportCron.Spec",
                "Cannot update DataImportCron Spec",
            )],
            (_, None) => faults(&cron["spec"]),
        };
        match causes.as_slice() {
            [] => Ok(Vec::new()),
            causes => Err(importer_refusal(VALIDATOR, causes)),
        }
    }

    fn impact(&self, _: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(Impact {
            class: impact::Impact::None.to_string(),
            ..Impact::default()
        })
    }
}

fn faults(spec: &Value) -> Vec<Cause> {
    let wrong =
        |field: &str, message: &str| vec![cause(CauseType::Invalid, format!("spec.{field}"), message)];
    let template = &spec["template"]["spec"];
    if !template["source"]["registry"].is_object() {
        return wrong("Template", "Missing registry source");
    }
    let has =
        |field: &str| !super::is_empty(&template[field]) && template[field] != "" && template[field] != false;
    if ["sourceRef", "contentType", "checkpoints", "finalCheckpoint"]
        .iter()
        .any(|field| has(field))
    {
        return wrong(
            "Template",
            "Unsettable fields: SourceRef, ContentType, Checkpoints, FinalCheckpoint",
        );
    }
    let causes = volume_faults("Template", template);
    if !causes.is_empty() {
        return causes;
    }
    let schedule = text(spec, "/schedule");
    if !schedule.is_empty() && !is_schedule(schedule) {
        return wrong("Schedule", "Illegal cron schedule");
    }
    if spec["importsToKeep"].as_i64().is_some_and(|it| it < 0) {
        return wrong("ImportsToKeep", "Illegal ImportsToKeep value");
    }
    let collect = spec["garbageCollect"].as_str();
    if collect.is_some_and(|it| !["Never", "Outdated"].contains(&it)) {
        return wrong("GarbageCollect", "Illegal GarbageCollect value");
    }
    let managed = text(spec, "/managedDataSource");
    if managed.is_empty() {
        return wrong("ManagedDataSource", "Illegal ManagedDataSource value");
    }
    name_length(managed, MAX_LABEL).into_iter().collect()
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Whether a text is a schedule: five fields, or a word for one.
fn is_schedule(text: &str) -> bool {
    let text = text.trim();
    let text = match text.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => rest.trim(),
        _ => text,
    };
    if let Some(word) = text.strip_prefix('@') {
        let every = word.strip_prefix("every ");
        return every.is_some_and(|every| fairway_text_gotext::duration::span(every.trim()).is_some())
            || [
                "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
            ]
            .contains(&word);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else {
        return false;
    };
    is_field(minute, 0, 59, &[])
        && is_field(hour, 0, 23, &[])
        && is_field(day, 1, 31, &[])
        && is_field(month, 1, 12, &MONTHS)
        && is_field(weekday, 0, 6, &DAYS)
}

fn is_field(field: &str, least: u32, most: u32, names: &[&str]) -> bool {
    let number = |text: &str| -> Option<u32> {
        let named = names.iter().position(|it| it.eq_ignore_ascii_case(text));
        let named = named.and_then(|at| u32::try_from(at).ok()).map(|at| at + least);
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        named
            .or_else(|| text.parse().ok().filter(|_| digits))
            .filter(|it| (least..=most).contains(it))
    };
    field.split(',').all(|part| {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<u32>().is_ok_and(|it| it > 0)),
            None => (part, true),
        };
        let is_range = match range.split_once('-') {
            Some((from, to)) => matches!((number(from), number(to)), (Some(from), Some(to)) if from <= to),
            None => ["*", "?"].contains(&range) || number(range).is_some(),
        };
        is_range && step
    })
}

#[cfg(test)]
mod tests {
    use super::is_schedule;

    #[test]
    fn schedules() {
        for (text, expected) in [
            ("0 2 * * *", true),
            ("*/5 0-6/2 1,15 jan-mar MON", true),
            ("@daily", true),
            ("@every 1h30m", true),
            ("CRON_TZ=Europe/Berlin 0 6 * * ?", true),
            ("0 2 * *", false),
            ("60 * * * *", false),
            ("* * * * 7", false),
            ("*/0 * * * *", false),
            ("5-1 * * * *", false),
            ("@sometimes", false),
            ("@every", false),
            ("@every soon", false),
            ("", false),
        ] {
            assert_eq!(is_schedule(text), expected, "{text:?}");
        }
    }
}
