//! DataImportCrons: images that are fetched again and again.

use fairway_admission::{Admission, Impact, Operation, Request, Verdict};
use fairway_text_cron::Schedule;
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
    if !schedule.is_empty() && Schedule::check(schedule).is_err() {
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
