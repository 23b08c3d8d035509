//! `fairway vm events`: what happened to machines, their disks and their migrations.

use std::collections::BTreeSet;

use fairway_gitops_view::field::{list, text};
use fairway_gitops_view::table::Table;
use fairway_gitops_view::time::age;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;

use super::session::{Located, Session};
use super::target::Kind;
use crate::cli::vm::show::Events;

/// The kinds that are about machines.
const KINDS: [&str; 8] = [
    "VirtualMachine",
    "VirtualMachineInstance",
    "VirtualMachineInstanceMigration",
    "VirtualMachineSnapshot",
    "VirtualMachineRestore",
    "VirtualMachineClone",
    "DataVolume",
    "PersistentVolumeClaim",
];

pub(super) async fn run(session: &Session, options: &Events) -> anyhow::Result<()> {
    let machine = options.name.as_deref().map(|it| session.target(it)).transpose()?;
    let namespace = match &machine {
        Some(machine) => Some(machine.namespace.as_str()),
        None if options.all_namespaces => None,
        None => Some(session.namespace()),
    };
    let meant = match &machine {
        Some(machine) => Some(related(session, machine).await?),
        None => None,
    };
    if options.follow {
        return follow(session, namespace, meant.as_ref()).await;
    }
    let path = match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/events"),
        None => "/api/v1/events".to_owned(),
    };
    let mut events = session.list(&path).await?;
    events.retain(|it| is_meant(it, meant.as_ref()));
    if events.is_empty() {
        eprintln!("No events found.");
        return Ok(());
    }
    print!("{}", table(events, namespace.is_none(), Timestamp::now()));
    Ok(())
}

/// Kinds and names of everything that belongs to a machine.
type Related = BTreeSet<(String, String)>;

async fn related(session: &Session, machine: &Located) -> anyhow::Result<Related> {
    let vm = match session.get(&machine.object(Kind::Machine)).await {
        Ok(vm) => vm,
        // What is gone may have left events.
        Err(refused) if refused.is_not_found() => Value::Null,
        Err(refused) => return Err(refused.into()),
    };
    let path = format!(
        "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstancemigrations",
        machine.namespace
    );
    let migrations = session.list(&path).await.unwrap_or_default();
    Ok(belonging(&machine.name, &vm, &migrations))
}

fn belonging(name: &str, vm: &Value, migrations: &[Value]) -> Related {
    let mut all = Related::new();
    let mut add = |kind: &str, name: &str| {
        if !name.is_empty() {
            all.insert((kind.to_owned(), name.to_owned()));
        }
    };
    add("VirtualMachine", name);
    add("VirtualMachineInstance", name);
    for volume in list(vm, "/spec/template/spec/volumes") {
        let filled = text(volume, "/dataVolume/name");
        add("DataVolume", filled);
        add("PersistentVolumeClaim", filled);
        add(
            "PersistentVolumeClaim",
            text(volume, "/persistentVolumeClaim/claimName"),
        );
    }
    for migration in migrations {
        if text(migration, "/spec/vmiName") == name {
            add(
                "VirtualMachineInstanceMigration",
                text(migration, "/metadata/name"),
            );
        }
    }
    all
}

fn is_meant(event: &Value, meant: Option<&Related>) -> bool {
    let kind = text(event, "/involvedObject/kind");
    match meant {
        None => KINDS.contains(&kind),
        Some(all) => all.contains(&(kind.to_owned(), text(event, "/involvedObject/name").to_owned())),
    }
}

/// When it was last seen.
fn moment(event: &Value) -> &str {
    let all = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/metadata/creationTimestamp",
    ];
    let mut told = all.into_iter().map(|it| text(event, it));
    told.find(|it| !it.is_empty()).unwrap_or_default()
}

fn cells(event: &Value, has_namespace: bool, when: String) -> Vec<String> {
    let object = format!(
        "{}/{}",
        text(event, "/involvedObject/kind").to_lowercase(),
        text(event, "/involvedObject/name")
    );
    let mut cells = vec![
        when,
        text(event, "/type").to_owned(),
        text(event, "/reason").to_owned(),
        object,
        text(event, "/message").trim().to_owned(),
    ];
    if has_namespace {
        cells.insert(0, text(event, "/metadata/namespace").to_owned());
    }
    cells
}

fn table(mut events: Vec<Value>, has_namespace: bool, now: Timestamp) -> String {
    events.sort_by(|one, other| moment(one).cmp(moment(other)));
    let mut headings = vec!["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
    if has_namespace {
        headings.insert(0, "NAMESPACE");
    }
    let mut table = Table::default();
    table.line(headings);
    for event in &events {
        table.line(cells(event, has_namespace, age(moment(event), now)));
    }
    table.render()
}

/// Those that there are, and then those that come.
async fn follow(session: &Session, namespace: Option<&str>, meant: Option<&Related>) -> anyhow::Result<()> {
    let client = session.client.clone();
    let api: Api<Event> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let mut events = watcher(api, watcher::Config::default()).applied_objects().boxed();
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            next = events.next() => match next {
                None => return Ok(()),
                Some(Ok(event)) => {
                    let event = serde_json::to_value(event)?;
                    if is_meant(&event, meant) {
                        let when = moment(&event).to_owned();
                        println!("{}", cells(&event, namespace.is_none(), when).join("  "));
                    }
                }
                // A server that is away comes back.
                Some(Err(error)) => {
                    eprintln!("fairway: {error}");
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, name: &str, at: &str) -> Value {
        json!({
            "metadata": {"namespace": "a"}, "involvedObject": {"kind": kind, "name": name}, "type": "Normal",
            "reason": "Started", "message": "it runs\n", "lastTimestamp": at,
        })
    }

    #[test]
    fn those_of_a_machine() {
        let vm = json!({"spec": {"template": {"spec": {"volumes": [
            {"dataVolume": {"name": "web-root"}}, {"persistentVolumeClaim": {"claimName": "more"}}, {"emptyDisk": {}},
        ]}}}});
        let migrations = [
            json!({"metadata": {"name": "m1"}, "spec": {"vmiName": "web"}}),
            json!({"metadata": {"name": "m2"}, "spec": {"vmiName": "db"}}),
        ];
        let meant = belonging("web", &vm, &migrations);
        for (kind, name, expected) in [
            ("VirtualMachine", "web", true),
            ("VirtualMachineInstance", "web", true),
            ("DataVolume", "web-root", true),
            ("PersistentVolumeClaim", "more", true),
            ("VirtualMachineInstanceMigration", "m1", true),
            ("VirtualMachineInstanceMigration", "m2", false),
            ("VirtualMachine", "db", false),
            ("Pod", "web", false),
        ] {
            assert_eq!(
                is_meant(&event(kind, name, ""), Some(&meant)),
                expected,
                "{kind} {name}"
            );
        }
        assert!(
            is_meant(&event("VirtualMachine", "db", ""), None) && !is_meant(&event("Pod", "db", ""), None)
        );
    }

    #[test]
    fn the_last_comes_last() {
        let events = vec![
            event("VirtualMachineInstance", "web", "2026-11-17T12:00:50Z"),
            event("VirtualMachine", "web", "2026-11-17T12:00:00Z"),
        ];
        assert_eq!(
            table(events, false, "2026-11-17T12:01:00Z".parse().unwrap()),
            "LAST SEEN  TYPE    REASON   OBJECT                      MESSAGE\n\
             60s        Normal  Started  virtualmachine/web          it runs\n\
             10s        Normal  Started  virtualmachineinstance/web  it runs\n"
        );
    }
}
