//! Argo CD's own catalogue of triggers and templates, from its Go module if that is on this machine: all of it is read, fires when it
//! should, and says something to each service.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairway_gitops_notifications::message::Message;
use fairway_gitops_notifications::{Config, Facts, Subject, decide};
use serde_json::{Value, json};

/// The catalogues of all versions in the module cache.
fn catalogues() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/pkg/mod"));
    let cache = std::env::var_os("GOMODCACHE")
        .map(PathBuf::from)
        .or(home)
        .unwrap_or_default();
    let versions = std::fs::read_dir(cache.join("github.com/argoproj/argo-cd"));
    let versions = versions.into_iter().flatten().flatten();
    let files = versions.map(|version| version.path().join("notifications_catalog/install.yaml"));
    files.filter(|file| file.exists()).collect()
}

fn entries(file: &PathBuf) -> BTreeMap<String, String> {
    let text = std::fs::read(file).unwrap();
    let object = fairway_text_yaml::from_slice(&text, fairway_text_yaml::Limits::default()).unwrap();
    let data = object["data"].as_object().unwrap().iter();
    let mut entries: BTreeMap<String, String> = data
        .map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned()))
        .collect();
    for (name, text) in [
        ("service.email", "{host: mail, port: 25, from: a@b.c}"),
        ("service.slack", "token: t"),
        ("service.webhook.hook", "url: http://x"),
        ("context", "argocdUrl: https://ui"),
    ] {
        entries.insert(name.to_owned(), text.to_owned());
    }
    entries
}

fn application(status: &Value, is_deleted: bool, sources: bool) -> Value {
    let mut application = json!({
        "metadata": {"name": "web", "annotations": {}},
        "spec": {"project": "shop", "source": {"repoURL": "https://git/a"}},
        "status": status,
    });
    if is_deleted {
        application["metadata"]["deletionTimestamp"] = "2026-05-01T10:00:00Z".into();
    }
    if sources {
        application["spec"] = json!({"project": "shop", "sources": [{"repoURL": "https://git/a"}, {"repoURL": "https://git/b"}]});
    }
    application
}

fn status(phase: &str, health: &str, sync: &str) -> Value {
    json!({
        "reconciledAt": "2026-05-01T10:00:00Z",
        "sync": {"status": sync, "revision": "abc"},
        "health": {"status": health, "lastTransitionTime": "2026-05-01T09:59:50Z"},
        "operationState": {
            "phase": phase, "message": "said", "startedAt": "2026-05-01T09:59:00Z", "finishedAt": "2026-05-01T09:59:30Z",
            "syncResult": {"revision": "abc"},
        },
        "conditions": [{"type": "SyncError", "message": "m"}],
    })
}

/// Which triggers fire; what they say to Slack is JSON, and to everybody something.
fn fired(config: &Config, application: &Value) -> Vec<String> {
    let mut application = application.clone();
    for (trigger, service) in config
        .triggers
        .keys()
        .flat_map(|it| ["email", "slack", "hook"].map(|to| (it, to)))
    {
        let name = format!("notifications.argoproj.io/subscribe.{trigger}.{service}");
        application["metadata"]["annotations"][name] = "somebody@example.com".into();
    }
    let subject = Subject {
        application: &application,
        project: &Value::Null,
        unrecorded: &[],
    };
    let decision = decide(config, &subject, &Facts::at(0));
    let mut fired: Vec<String> = Vec::new();
    for notice in decision.notices {
        match notice
            .message
            .unwrap_or_else(|why| panic!("{} {}: {why}", notice.trigger, notice.to))
        {
            Message::Mail(mail) => assert!(!mail.subject.is_empty() && mail.body.contains("web"), "{mail:?}"),
            Message::Http(request) => assert!(request.body.contains("web"), "{}", request.body),
        }
        if fired.last() != Some(&notice.trigger) {
            fired.push(notice.trigger);
        }
    }
    fired.retain(|trigger| trigger != "on-created");
    fired
}

#[test]
fn the_catalogue_works() {
    let files = catalogues();
    if files.is_empty() {
        println!("SKIPPED: the Go module of Argo CD is not on this machine");
    }
    for file in files {
        let config = Config::read(&entries(&file), &BTreeMap::new());
        assert_eq!(config.problems, Vec::<String>::new(), "{}", file.display());
        assert!(config.triggers.len() >= 8 && config.templates.len() >= 8);
        let synced = ["on-sync-succeeded"];
        for (status, is_deleted, expected) in [
            (Value::Null, false, &[][..]),
            (json!({}), true, &["on-deleted"]),
            (status("Succeeded", "Progressing", "Synced"), false, &synced),
            (
                status("Succeeded", "Healthy", "Synced"),
                false,
                &["on-deployed", "on-sync-succeeded"],
            ),
            (
                status("Succeeded", "Degraded", "Synced"),
                false,
                &["on-health-degraded", "on-sync-succeeded"],
            ),
            (
                status("Failed", "Healthy", "OutOfSync"),
                false,
                &["on-sync-failed"],
            ),
            (
                status("Error", "Healthy", "Unknown"),
                false,
                &["on-sync-failed", "on-sync-status-unknown"],
            ),
            (
                status("Running", "Healthy", "OutOfSync"),
                false,
                &["on-sync-running"],
            ),
        ] {
            for sources in [false, true] {
                let found = fired(&config, &application(&status, is_deleted, sources));
                assert_eq!(found, expected, "{} {status}", file.display());
            }
        }
    }
}
