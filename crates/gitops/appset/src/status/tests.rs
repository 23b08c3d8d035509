//! Statuses, over time.

use super::*;

const NOW: Timestamp = Timestamp::constant(1_794_823_200, 0);
const LATER: Timestamp = Timestamp::constant(1_794_823_209, 0);

fn application(name: &str, env: &str, sync: &str, health: &str, phase: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "argocd", "labels": {"env": env}},
        "status": {"sync": {"status": sync, "revision": "r1"}, "health": {"status": health}, "operationState": {"phase": phase}},
    })
}

fn set() -> Value {
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    json!({"spec": {"strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("prod")]}}}})
}

fn said(status: &Value, kind: &str) -> (String, String) {
    let all = status["conditions"].as_array().unwrap();
    let found = all.iter().find(|it| it["type"] == kind).unwrap();
    (
        text(found, "/status").to_owned(),
        text(found, "/reason").to_owned(),
    )
}

#[test]
fn conditions_go_together() {
    let of = |outcome: Outcome| status(&json!({}), &[], &outcome, NOW).unwrap().status;
    let well = of(Outcome::default());
    let broken = of(Outcome {
        error: Some((Reason::Parameters, "no such repository".to_owned())),
        generated: false,
    });
    let unwritten = of(Outcome {
        error: Some((Reason::Update, "forbidden".to_owned())),
        generated: true,
    });
    for (status, error, generated, up_to_date) in [
        (&well, ("False", "ApplicationSetUpToDate"), "True", "True"),
        (
            &broken,
            ("True", "ApplicationGenerationFromParamsError"),
            "False",
            "False",
        ),
        (&unwritten, ("True", "UpdateApplicationError"), "True", "False"),
    ] {
        assert_eq!(
            said(status, "ErrorOccurred"),
            (error.0.to_owned(), error.1.to_owned())
        );
        assert_eq!(said(status, "ParametersGenerated").0, generated);
        assert_eq!(said(status, "ResourcesUpToDate").0, up_to_date);
        assert_eq!(
            status["conditions"].as_array().unwrap().len(),
            3,
            "no rollout, no word of it"
        );
    }
}

#[test]
fn what_says_the_same_is_the_same() {
    let apps = [application("a", "dev", "Synced", "Healthy", "Succeeded")];
    let first = status(&set(), &apps, &Outcome::default(), NOW).unwrap().status;
    let mut again = set();
    again["status"] = first.clone();
    assert_eq!(
        status(&again, &apps, &Outcome::default(), LATER).unwrap().status,
        first
    );
}

#[test]
fn applications_are_resources() {
    let apps = [
        application("b", "dev", "Synced", "Healthy", ""),
        json!({"metadata": {"name": "a", "namespace": "n"}}),
    ];
    let status = status(&json!({}), &apps, &Outcome::default(), NOW)
        .unwrap()
        .status;
    assert_eq!(status["resourcesCount"], 2);
    assert_eq!(
        status["resources"],
        json!([
            {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "name": "a", "namespace": "n"},
            {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "name": "b", "namespace": "argocd",
             "status": "Synced", "health": {"status": "Healthy"}},
        ])
    );
}

/// A rollout from beginning to end: what is seen, whose turn it is, how each stands.
#[test]
fn a_rollout_goes_step_by_step() {
    let mut set = set();
    let (out, run, ok) = (
        ("OutOfSync", "Healthy", ""),
        ("Synced", "Progressing", "Running"),
        ("Synced", "Healthy", "Succeeded"),
    );
    for (reason, dev, prod, sync, expected, step) in [
        (
            "dev is first",
            out,
            out,
            &["dev"][..],
            ["Pending", "Waiting"],
            Some("1"),
        ),
        (
            "until it begins",
            out,
            out,
            &["dev"],
            ["Pending", "Waiting"],
            Some("1"),
        ),
        (
            "dev is on its way",
            run,
            out,
            &[],
            ["Progressing", "Waiting"],
            Some("1"),
        ),
        (
            "dev is done",
            ok,
            out,
            &["prod"],
            ["Healthy", "Pending"],
            Some("2"),
        ),
        (
            "prod is on its way",
            ok,
            run,
            &[],
            ["Healthy", "Progressing"],
            Some("2"),
        ),
        ("all is done", ok, ok, &[], ["Healthy", "Healthy"], None),
        ("dev drifts", out, ok, &["dev"], ["Pending", "Healthy"], Some("1")),
    ] {
        let apps = [("dev", dev), ("prod", prod)]
            .map(|(env, (sync, health, phase))| application(env, env, sync, health, phase));
        let found = status(&set, &apps, &Outcome::default(), NOW).unwrap();
        assert_eq!(found.sync, sync, "{reason}");
        let statuses: Vec<&str> = found.status["applicationStatus"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| text(it, "/status"))
            .collect();
        assert_eq!(statuses, expected, "{reason}");
        let progressing = said(&found.status, "RolloutProgressing");
        assert_eq!(progressing.0 == "True", step.is_some(), "{reason}");
        if let Some(step) = step {
            assert!(
                found.status["conditions"]
                    .to_string()
                    .contains(&format!("rollout of step {step}")),
                "{reason}"
            );
        }
        set["status"] = found.status;
    }
}

/// A sync that runs is not begun again; one that did not help is, but not at once, unless there is something new.
#[test]
fn syncs_in_vain_are_not_repeated_at_once() {
    let ended = |phase: &str, revision: &str, seconds: i64| {
        let at = (NOW - SignedDuration::from_secs(seconds)).to_string();
        json!({"phase": phase, "finishedAt": at, "syncResult": {"revision": revision}})
    };
    for (reason, state, operation, sync, again) in [
        ("never synced", Value::Null, Value::Null, 1, false),
        ("asked for", Value::Null, json!({"sync": {}}), 0, false),
        ("running", json!({"phase": "Running"}), Value::Null, 0, false),
        ("failed just now", ended("Failed", "r1", 5), Value::Null, 0, true),
        (
            "succeeded in vain",
            ended("Succeeded", "r1", 5),
            Value::Null,
            0,
            true,
        ),
        ("a while ago", ended("Failed", "r1", 31), Value::Null, 1, false),
        (
            "of another commit",
            ended("Failed", "r0", 5),
            Value::Null,
            1,
            false,
        ),
    ] {
        let mut app = application("dev", "dev", "OutOfSync", "Missing", "");
        app["status"]["operationState"] = state;
        app["operation"] = operation;
        let known = json!([{"application": "dev", "status": "Pending", "targetRevisions": ["r1"]}]);
        let mut set = set();
        set["status"] = json!({"applicationStatus": known});
        // What is under way has begun; all others wait for their turn.
        let found = status(&set, &[app], &Outcome::default(), NOW).unwrap();
        assert_eq!((found.sync.len(), found.again), (sync, again), "{reason}");
    }
}

#[test]
fn errors_leave_what_was_said_of_applications() {
    let mut set = set();
    let apps = [application("dev", "dev", "OutOfSync", "Missing", "")];
    set["status"] = status(&set, &apps, &Outcome::default(), NOW).unwrap().status;
    let outcome = Outcome {
        error: Some((Reason::Parameters, "gone".to_owned())),
        generated: false,
    };
    let after = failed(&set, &outcome, LATER);
    assert_eq!(after["resources"], set["status"]["resources"]);
    assert_eq!(after["applicationStatus"], set["status"]["applicationStatus"]);
    assert_eq!(said(&after, "RolloutProgressing").0, "True");
    assert_eq!(said(&after, "ErrorOccurred").0, "True");
}

#[test]
fn a_new_revision_waits_again() {
    let mut set = set();
    let mut app = application("a", "dev", "Synced", "Healthy", "Succeeded");
    set["status"] = status(&set, &[app.clone()], &Outcome::default(), NOW)
        .unwrap()
        .status;
    assert_eq!(set["status"]["applicationStatus"][0]["status"], "Healthy");
    app["status"]["sync"] = json!({"status": "OutOfSync", "revision": "r2"});
    let found = status(&set, &[app], &Outcome::default(), LATER).unwrap();
    assert_eq!(found.sync, ["a"]);
    assert_eq!(
        found.status["applicationStatus"][0]["targetRevisions"],
        json!(["r2"])
    );
}

#[test]
fn errors_have_reasons() {
    let template = Error::Template {
        text: String::new(),
        reason: String::new(),
    };
    for (error, reason) in [
        (template, Reason::Template),
        (Error::Source(String::new()), Reason::Parameters),
    ] {
        assert_eq!(Reason::of(&error), reason);
    }
}
