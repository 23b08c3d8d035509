//! Phases, progress, conditions and events, by what was observed.

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn observed<'a>(work: Work, filling: &'a Filling, claim: Option<&'a str>, before: &'a Value) -> Observed<'a> {
    Observed {
        namespace: "shop",
        name: "d",
        work: Some(work),
        origin: Some(("gold", "os")),
        filling,
        claim,
        restarts: 0,
        before,
    }
}

fn told(reason: &'static str, message: &str) -> Told {
    Told {
        reason,
        message: message.to_owned(),
    }
}

#[test]
fn phases_and_conditions() {
    let pending = Some("Pending");
    let waits = Filling::Waits(told("CloneSourceInUse", "machine shop/web uses os"));
    let no_size = Filling::NoClaim(Some(told("ErrClaimNotValid", "no size")));
    // Phase; then Bound, Ready and Running: status, reason, message.
    for (work, filling, claim, expected) in [
        (
            Work::Import,
            Filling::NoClaim(None),
            None,
            "Pending | Unknown NotFound No PVC found | False   | False  ",
        ),
        (
            Work::Import,
            no_size,
            None,
            "Pending | Unknown ErrClaimNotValid no size | False ErrClaimNotValid no size | False  ",
        ),
        (
            Work::Import,
            Filling::Scheduled,
            pending,
            "ImportScheduled | False Pending PVC d Pending | False   | False  ",
        ),
        (
            Work::Import,
            Filling::Running(Some(0.5)),
            pending,
            "ImportInProgress | False Pending PVC d Pending | False TransferRunning  | True Pod is running ",
        ),
        (
            Work::Import,
            Filling::Retries("no route".to_owned()),
            pending,
            "ImportInProgress | False Pending PVC d Pending | False   | False Error no route",
        ),
        (
            Work::Import,
            Filling::Failed("no disk".to_owned()),
            pending,
            "Failed | False Pending PVC d Pending | False   | False Error no disk",
        ),
        (
            Work::Import,
            Filling::Done,
            Some("Bound"),
            "Succeeded | True Bound PVC d Bound | True   | False Completed Import Complete",
        ),
        (
            Work::Import,
            Filling::Done,
            pending,
            "ImportInProgress | False Pending PVC d Pending | False   | False  ",
        ),
        (
            Work::Upload,
            Filling::Ready,
            pending,
            "UploadReady | False Pending PVC d Pending | False TransferRunning  | True Pod is running ",
        ),
        (
            Work::Upload,
            Filling::Done,
            Some("Bound"),
            "Succeeded | True Bound PVC d Bound | True   | False Completed Upload Complete",
        ),
        (
            Work::Clone,
            waits,
            pending,
            "CloneScheduled | False Pending PVC d Pending | False   | False CloneSourceInUse machine shop/web uses os",
        ),
        (
            Work::Clone,
            Filling::Done,
            Some("Bound"),
            "Succeeded | True Bound PVC d Bound | True   | False Completed Clone Complete",
        ),
        (
            Work::CloneSnapshot,
            Filling::Running(None),
            pending,
            "CloneFromSnapshotSourceInProgress | False Pending PVC d Pending | False TransferRunning  | True Pod is running ",
        ),
        (
            Work::Import,
            Filling::Lost,
            Some("Lost"),
            "Failed | False ClaimLost Claim Lost | False   | False  ",
        ),
    ] {
        let before = json!({});
        let it = observed(work, &filling, claim, &before);
        let phase = phase(it.work, &filling, claim);
        let mut shown = phase.to_owned();
        for condition in conditions(&it, phase) {
            shown.push_str(&format!(
                " | {} {} {}",
                condition.status, condition.reason, condition.message
            ));
        }
        assert_eq!(shown, expected, "{filling:?}");
    }
}

#[test]
fn progress_is_written_as_upstream_writes_it() {
    for (filling, phase, before, expected) in [
        (Filling::Scheduled, "ImportScheduled", "", "N/A"),
        (Filling::Running(None), "ImportInProgress", "", "N/A"),
        (
            Filling::Running(Some(0.123_456)),
            "ImportInProgress",
            "N/A",
            "12.35%",
        ),
        (Filling::Running(Some(1.7)), "ImportInProgress", "N/A", "100.00%"),
        (
            Filling::Retries(String::new()),
            "ImportInProgress",
            "12.35%",
            "12.35%",
        ),
        (Filling::Done, "Succeeded", "99.00%", "100.0%"),
    ] {
        assert_eq!(progress(&filling, phase, before), expected, "{filling:?}");
    }
}

#[test]
fn times_move_only_when_something_does() {
    let running = Filling::Running(Some(0.1));
    let first = json!({});
    let one = status(&observed(Work::Import, &running, Some("Pending"), &first), NOW);
    let later = "2026-01-01T00:01:00Z";
    let further = Filling::Running(Some(0.2));
    let two = status(&observed(Work::Import, &further, Some("Pending"), &one), later);
    assert_eq!(one["conditions"], two["conditions"]);
    assert_ne!(one["progress"], two["progress"]);
    let failing = Filling::Retries("a".to_owned());
    let three = status(&observed(Work::Import, &failing, Some("Pending"), &two), later);
    let running_of = |status: &Value| status["conditions"][2].clone();
    assert_eq!(running_of(&three)["lastTransitionTime"], later);
    let failing = Filling::Retries("b".to_owned());
    let last = "2026-01-01T00:02:00Z";
    let four = status(&observed(Work::Import, &failing, Some("Pending"), &three), last);
    assert_eq!(running_of(&four)["lastTransitionTime"], later);
    assert_eq!(running_of(&four)["lastHeartbeatTime"], last);
}

#[test]
fn people_are_told_once() {
    let mut before = json!({});
    let mut said = Vec::new();
    for (filling, claim) in [
        (Filling::Scheduled, Some("Pending")),
        (Filling::Running(None), Some("Pending")),
        (Filling::Running(Some(0.5)), Some("Pending")),
        (Filling::Retries("no route".to_owned()), Some("Pending")),
        (Filling::Retries("no route".to_owned()), Some("Pending")),
        (Filling::Running(Some(0.5)), Some("Pending")),
        (Filling::Done, Some("Bound")),
        (Filling::Done, Some("Bound")),
    ] {
        let it = observed(Work::Import, &filling, claim, &before);
        let after = status(&it, NOW);
        for happening in happenings(&it, &after) {
            said.push(format!("{} {}", happening.reason, happening.message));
        }
        before = after;
    }
    assert_eq!(
        said,
        [
            "ImportScheduled Import into d scheduled",
            "Pending PVC d Pending",
            "ImportInProgress Import into d in progress",
            "Error no route",
            "ImportSucceeded Successfully imported into PVC d",
            "Bound PVC d Bound",
        ]
    );
    let filling = Filling::Failed("it is a web page".to_owned());
    let empty = json!({"phase": "ImportInProgress"});
    let it = observed(Work::Import, &filling, Some("Pending"), &empty);
    let reasons: Vec<&str> = happenings(&it, &status(&it, NOW))
        .iter()
        .map(|it| it.reason)
        .collect();
    assert_eq!(reasons, ["ImportFailed", "Pending", "Error"]);
    let filling = Filling::Done;
    let cloning = json!({"phase": "CloneInProgress"});
    let it = observed(Work::Clone, &filling, Some("Bound"), &cloning);
    assert_eq!(
        happenings(&it, &status(&it, NOW))[0].message,
        "Successfully cloned from gold/os into shop/d"
    );
}
