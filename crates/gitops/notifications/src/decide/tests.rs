//! Who is told what, once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Decision, Subject, decide};
use crate::config::Config;
use crate::facts::{Commit, Facts};
use crate::record::NOTIFIED;

fn config() -> Config {
    let entries = [
        (
            "trigger.on-deployed",
            "- when: app.status.health.status == 'Healthy'\n  oncePer: app.status.sync.revision\n  send: [said]",
        ),
        (
            "trigger.on-degraded",
            "- when: app.status.health.status == 'Degraded'\n  send: [said]",
        ),
        (
            "trigger.either",
            "- when: app.status.health.status == 'Healthy'\n  send: [said]\n- when: app.status.health.status == 'Degraded'\n  send: [said]",
        ),
        ("trigger.broken", "- when: app.a.b.c == 1\n  send: [said]"),
        ("trigger.no-truth", "- when: app.metadata.name\n  send: [said]"),
        (
            "trigger.late",
            "- when: time.Now().Unix() > 100\n  oncePer: app.nothing.at.all\n  send: [said]",
        ),
        (
            "trigger.by-anna",
            "- when: repo.GetCommitMetadata('abc').Author == 'Anna'\n  send: [said]",
        ),
        ("template.said", "message: '{{.app.metadata.name}}'"),
        ("service.webhook.hook", "url: http://x"),
        ("service.email", "{host: mail, port: 25, from: a@b}"),
    ];
    let entries: BTreeMap<String, String> = entries
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let config = Config::read(&entries, &BTreeMap::new());
    assert_eq!(config.problems, Vec::<String>::new());
    config
}

/// An Application that changes, and whose annotation is kept.
struct Run {
    application: Value,
    now: i128,
}

impl Run {
    fn new(subscriptions: &[(&str, &str)]) -> Self {
        let mut application = json!({"metadata": {"name": "web", "annotations": {}}, "status": {}});
        for (subscription, recipients) in subscriptions {
            let name = format!("notifications.argoproj.io/subscribe.{subscription}");
            application["metadata"]["annotations"][name] = (*recipients).into();
        }
        Self { application, now: 5 }
    }

    fn status(&mut self, health: &str, revision: &str) {
        self.application["status"] = json!({"health": {"status": health}, "sync": {"revision": revision}});
    }

    fn decide(&self) -> Decision {
        let subject = Subject {
            application: &self.application,
            project: &Value::Null,
            unrecorded: &[],
        };
        decide(&config(), &subject, &Facts::at(self.now * 1_000_000_000))
    }

    /// Tells all of it and remembers; who was told.
    fn tell(&mut self) -> Vec<String> {
        let decision = self.decide();
        let keys: Vec<String> = decision.notices.iter().map(|notice| notice.key.clone()).collect();
        if let Some(patch) = decision.patch(&keys) {
            self.application["metadata"]["annotations"][NOTIFIED] =
                patch["metadata"]["annotations"][NOTIFIED].clone();
        }
        let told = decision.notices.iter();
        told.map(|notice| format!("{} {}", notice.trigger, notice.to))
            .collect()
    }
}

#[test]
fn each_is_told_once_for_each_revision() {
    let mut run = Run::new(&[("on-deployed.email", "a@b; c@d"), ("on-degraded.hook", "")]);
    let deployed = ["on-deployed email:a@b", "on-deployed email:c@d"];
    // (health, revision, who is told)
    for (step, (health, revision, expected)) in [
        ("Progressing", "r1", &[][..]),
        ("Healthy", "r1", &deployed),
        ("Healthy", "r1", &[]),
        ("Degraded", "r1", &["on-degraded hook"]),
        ("Degraded", "r1", &[]),
        // Something else for a while does not make the same revision news.
        ("Healthy", "r1", &[]),
        // But what is told each time is told again.
        ("Degraded", "r2", &["on-degraded hook"]),
        ("Healthy", "r2", &deployed),
        ("Healthy", "r1", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        run.status(health, revision);
        assert_eq!(run.tell(), expected, "step {step}: {health} {revision}");
    }
    let record = run.application["metadata"]["annotations"][NOTIFIED]
        .as_str()
        .unwrap();
    let record: BTreeMap<String, i64> = serde_json::from_str(record).unwrap();
    assert_eq!(record.len(), 4);
    assert!(
        record
            .keys()
            .all(|key| key.starts_with("r1:on-deployed:[0].") || key.starts_with("r2:on-deployed:[0]."))
    );
    assert!(record.values().all(|at| *at == 5));
}

#[test]
fn a_record_without_content_goes() {
    let mut run = Run::new(&[("on-degraded.hook", "")]);
    run.status("Degraded", "r1");
    run.tell();
    run.status("Healthy", "r1");
    let decision = run.decide();
    assert_eq!(
        decision.patch(&[]),
        Some(json!({"metadata": {"annotations": {NOTIFIED: null}}}))
    );
    run.tell();
    assert_eq!(run.decide().patch(&[]), None);
}

#[test]
fn conditions_of_a_trigger_are_told_apart() {
    let mut run = Run::new(&[("either.hook", "")]);
    for (health, count) in [("Healthy", 1), ("Degraded", 1), ("Degraded", 0), ("Healthy", 1)] {
        run.status(health, "r1");
        assert_eq!(run.tell().len(), count, "{health}");
    }
}

#[test]
fn what_fails_is_told_again_and_what_was_told_is_not() {
    let mut run = Run::new(&[("on-degraded.email", "a@b; c@d")]);
    run.status("Degraded", "r1");
    let decision = run.decide();
    let [first, second] = &decision.notices[..] else {
        panic!("{decision:?}")
    };
    // The second one failed.
    let patch = decision.patch(std::slice::from_ref(&first.key)).unwrap();
    let mut partly = run.application.clone();
    partly["metadata"]["annotations"][NOTIFIED] = patch["metadata"]["annotations"][NOTIFIED].clone();
    let subject = |application, unrecorded| Subject {
        application,
        project: &Value::Null,
        unrecorded,
    };
    let again = decide(&config(), &subject(&partly, &[]), &Facts::at(0));
    assert_eq!(
        again.notices.iter().map(|notice| &notice.key).collect::<Vec<_>>(),
        [&second.key]
    );
    // The first one was told, but could not be written down.
    let unrecorded = [first.key.clone()];
    let again = decide(&config(), &subject(&run.application, &unrecorded), &Facts::at(0));
    assert_eq!(
        again.notices.iter().map(|notice| &notice.key).collect::<Vec<_>>(),
        [&second.key]
    );
    assert!(
        again.patch(&[]).unwrap().to_string().contains("a@b"),
        "it is written down now"
    );
}

#[test]
fn a_status_from_before_the_end_of_an_operation_is_not_told() {
    let mut run = Run::new(&[("on-deployed.hook", "")]);
    run.status("Healthy", "r1");
    let at = |second: u8| json!(format!("2026-01-01T00:00:0{second}Z"));
    for (phase, finished, reconciled, observed, count) in [
        ("Running", json!(null), json!(null), json!(null), 1),
        ("Succeeded", at(5), json!(null), json!(null), 0),
        ("Succeeded", at(5), at(4), json!(null), 0),
        ("Failed", at(5), at(4), at(5), 1),
        ("Succeeded", at(5), at(5), json!(null), 1),
        ("Error", json!(null), at(9), json!(null), 0),
        ("Succeeded", json!("soon"), at(9), json!(null), 0),
    ] {
        let status = &mut run.application["status"];
        status["operationState"] = json!({"phase": phase, "finishedAt": finished});
        status["reconciledAt"] = reconciled;
        status["observedAt"] = observed;
        assert_eq!(run.decide().notices.len(), count, "{}", run.application["status"]);
    }
}

#[test]
fn what_cannot_be_judged_does_not_hold() {
    let mut run = Run::new(&[
        ("broken.hook", ""),
        ("no-truth.hook", ""),
        ("unknown.hook", ""),
        ("on-degraded.pager", ""),
    ]);
    run.status("Degraded", "r1");
    let decision = run.decide();
    assert_eq!(decision.problems, ["trigger 'unknown' is not configured"]);
    assert_eq!(decision.unjudged, ["trigger 'broken': cannot fetch b from <nil>"]);
    let [notice] = &decision.notices[..] else {
        panic!("{decision:?}")
    };
    assert_eq!(
        notice.message,
        Err("notification service 'pager' is not supported".to_owned())
    );
}

#[test]
fn time_passes() {
    let mut run = Run::new(&[("late.hook", "")]);
    assert!(run.decide().asks_clock && run.tell().is_empty());
    run.now = 101;
    // Without a value of oncePer it is told once for each time.
    assert_eq!(run.tell(), ["late hook"]);
    assert!(run.tell().is_empty());
    assert!(!Run::new(&[("on-deployed.hook", "")]).decide().asks_clock);
}

#[test]
fn commits_are_asked_for() {
    let run = Run::new(&[("by-anna.hook", "")]);
    let subject = Subject {
        application: &run.application,
        project: &Value::Null,
        unrecorded: &[],
    };
    let mut facts = Facts::at(0);
    decide(&config(), &subject, &facts);
    assert_eq!(facts.asked().into_iter().collect::<Vec<_>>(), ["abc"]);
    let commit = Commit {
        author: "Anna".to_owned(),
        ..Commit::default()
    };
    facts.commits.insert("abc".to_owned(), Ok(commit));
    assert_eq!(decide(&config(), &subject, &facts).notices.len(), 1);
    assert!(facts.asked().is_empty());
}

#[test]
fn much_is_told_in_turns() {
    let many: Vec<String> = (0..70).map(|number| format!("p{number}@b")).collect();
    let mut run = Run::new(&[("on-degraded.email", &many.join(";"))]);
    run.status("Degraded", "r1");
    assert!(run.decide().has_more);
    assert_eq!(
        (run.tell().len(), run.tell().len(), run.tell().len()),
        (50, 20, 0)
    );
}
