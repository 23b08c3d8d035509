//! Jobs and what starts them by the clock.

use serde_json::Value;

use crate::view::{conditions, items, text};
use crate::{Health, Status};

pub(super) fn job(object: &Value) -> Health {
    let mut health = Health::plain(Status::Progressing);
    let mut failed = None;
    for condition in conditions(&object["status"]["conditions"]) {
        match condition.kind {
            "Failed" => failed = Some(condition.words()),
            "Complete" => health = Health::new(Status::Healthy, condition.words()),
            "Suspended" if condition.status == "True" && health.status == Some(Status::Progressing) => {
                health = Health::new(Status::Suspended, condition.words());
            }
            _ => {}
        }
    }
    match failed {
        Some(message) => Health::new(Status::Degraded, message),
        None => health,
    }
}

/// A CronJob is healthy unless its last run is known to have failed: whether a run is late cannot be seen in its status.
pub(super) fn cron_job(object: &Value) -> Health {
    let healthy = |message: &str| Health::new(Status::Healthy, message);
    if object["spec"]["suspend"] == true {
        return healthy("CronJob is Suspended");
    }
    let status = &object["status"];
    if status.is_null() {
        return Health::new(Status::Progressing, "Waiting for CronJob");
    }
    let (scheduled, succeeded) = (
        text(&status["lastScheduleTime"]),
        text(&status["lastSuccessfulTime"]),
    );
    match (scheduled, succeeded) {
        ("", _) => healthy("CronJob has not been scheduled yet"),
        (_, "") => healthy("The CronJob never completed successfully. It may not be healthy"),
        _ if !items(&status["active"]).is_empty() => {
            healthy("The job is running. Its last execution may not have been successful")
        }
        // RFC 3339 in UTC sorts as text.
        _ if succeeded < scheduled => Health::new(
            Status::Degraded,
            "CronJob has not completed its last execution successfully",
        ),
        _ => healthy("CronJob has completed its last execution successfully"),
    }
}
