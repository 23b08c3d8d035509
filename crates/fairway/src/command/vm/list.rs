//! `fairway vm list`.

use fairway_gitops_view::field::{qualified_name, text};
use fairway_gitops_view::table::Table;
use fairway_gitops_view::time::age;
use jiff::Timestamp;
use serde_json::Value;

use super::session::Session;
use super::target::Kind;
use crate::cli::gitops::ListFormat;
use crate::cli::vm::show::List;

pub(super) async fn run(session: &Session, options: &List) -> anyhow::Result<()> {
    let everywhere = options.all_namespaces;
    let mut machines = session
        .all(Kind::Machine, everywhere, options.selector.as_deref())
        .await?;
    machines.sort_by_key(qualified_name);
    match options.format {
        None | Some(ListFormat::Wide) => {
            let instances = session.all(Kind::Instance, everywhere, None).await?;
            if machines.is_empty() {
                match everywhere {
                    true => eprintln!("No virtual machines found."),
                    false => eprintln!("No virtual machines found in namespace {}.", session.namespace()),
                }
                return Ok(());
            }
            let is_wide = options.format.is_some();
            print!(
                "{}",
                table(&machines, &instances, everywhere, is_wide, Timestamp::now())
            );
        }
        Some(ListFormat::Name) => machines
            .iter()
            .for_each(|it| println!("virtualmachine.kubevirt.io/{}", text(it, "/metadata/name"))),
        Some(ListFormat::Json) => println!("{:#}", Value::Array(machines)),
        Some(ListFormat::Yaml) => print!("{}", fairway_text_yaml::to_string(&Value::Array(machines))),
    }
    Ok(())
}

/// A line for each machine; what it says of itself, and what its instance adds.
fn table(
    machines: &[Value],
    instances: &[Value],
    has_namespace: bool,
    is_wide: bool,
    now: Timestamp,
) -> String {
    let mut headings = vec!["NAME", "STATUS", "READY", "IP", "NODE", "AGE"];
    if has_namespace {
        headings.insert(0, "NAMESPACE");
    }
    if is_wide {
        headings.extend(["CPU", "MEMORY", "GUEST", "STRATEGY"]);
    }
    let mut table = Table::default();
    table.line(headings);
    for machine in machines {
        let own = qualified_name(machine);
        let instance = instances.iter().find(|it| qualified_name(it) == own);
        let of_instance = |pointer: &str| instance.map_or("", |it| text(it, pointer));
        let ready = machine["status"]["ready"] == true;
        let mut cells = vec![
            text(machine, "/metadata/name").to_owned(),
            or_none(text(machine, "/status/printableStatus")),
            if ready { "True" } else { "False" }.to_owned(),
            or_none(of_instance("/status/interfaces/0/ipAddress")),
            or_none(of_instance("/status/nodeName")),
            age(text(machine, "/metadata/creationTimestamp"), now),
        ];
        if has_namespace {
            cells.insert(0, text(machine, "/metadata/namespace").to_owned());
        }
        if is_wide {
            let strategy = match text(machine, "/spec/runStrategy") {
                "" if machine["spec"]["running"] == true => "Always",
                "" => "Halted",
                strategy => strategy,
            };
            cells.extend([
                or_none(&instance.map(processors).unwrap_or_default()),
                or_none(of_instance("/status/memory/guestCurrent")),
                or_none(of_instance("/status/guestOSInfo/prettyName")),
                strategy.to_owned(),
            ]);
        }
        table.line(cells);
    }
    table.render()
}

/// How many processors the guest has.
fn processors(vmi: &Value) -> String {
    let topology = match &vmi["status"]["currentCPUTopology"] {
        Value::Null => &vmi["spec"]["domain"]["cpu"],
        told => told,
    };
    let count = |field: &str| topology[field].as_u64().filter(|it| *it > 0).unwrap_or(1);
    let all = count("sockets") * count("cores") * count("threads");
    all.to_string()
}

fn or_none(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_machines() {
        let machines = [
            json!({
                "metadata": {"namespace": "a", "name": "db", "creationTimestamp": "2026-11-17T11:00:00Z"},
                "spec": {"running": false}, "status": {"printableStatus": "Stopped"},
            }),
            json!({
                "metadata": {"namespace": "a", "name": "web", "creationTimestamp": "2026-11-17T12:00:00Z"},
                "spec": {"runStrategy": "Always"}, "status": {"printableStatus": "Running", "ready": true},
            }),
        ];
        let instances = [json!({
            "metadata": {"namespace": "a", "name": "web"},
            "spec": {"domain": {"cpu": {"cores": 2, "sockets": 2}}},
            "status": {
                "nodeName": "n1", "interfaces": [{"ipAddress": "10.88.0.2"}], "memory": {"guestCurrent": "128Mi"},
                "guestOSInfo": {"prettyName": "Debian GNU/Linux 12"},
            },
        })];
        let now = "2026-11-17T12:01:00Z".parse().unwrap();
        assert_eq!(
            table(&machines, &instances, false, false, now),
            "NAME  STATUS   READY  IP         NODE  AGE\n\
             db    Stopped  False  -          -     61m\n\
             web   Running  True   10.88.0.2  n1    60s\n"
        );
        let wide = table(&machines, &instances, true, true, now);
        assert_eq!(
            wide,
            "NAMESPACE  NAME  STATUS   READY  IP         NODE  AGE  CPU  MEMORY  GUEST                STRATEGY\n\
             a          db    Stopped  False  -          -     61m  -    -       -                    Halted\n\
             a          web   Running  True   10.88.0.2  n1    60s  4    128Mi   Debian GNU/Linux 12  Always\n"
        );
    }
}
