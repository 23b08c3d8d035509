//! What became of a machine's user data. The guest's agent tells what cloud-init keeps of itself; what is not to be had from it is looked for
//! on the console, which also has complaints that cloud-init does not count as errors.

use serde_json::Value;

use super::Machine;
use super::guest::{boot, clean, lines};
use super::process::off;
use crate::link::{Evidence, Link, State};
use crate::object::{condition, field, items, told};

/// The most complaints that are shown.
const MOST: usize = 5;

/// The condition of an instance that is not started because its cloud-init volume or its keys are in a Secret that is not there.
pub(super) fn missing_seed(machine: &Machine) -> Option<(&Value, String)> {
    let vmi = machine.vmi.as_ref()?;
    let said = condition(vmi, "Synchronized").filter(|it| it["status"] == "False")?;
    let message = field(said, "/message");
    let volumes = items(vmi, "/spec/volumes").iter();
    let of_volumes = volumes.flat_map(|it| {
        ["cloudInitNoCloud", "cloudInitConfigDrive"]
            .into_iter()
            .flat_map(move |kind| {
                ["secretRef", "networkDataSecretRef"]
                    .into_iter()
                    .map(move |reference| field(&it[kind][reference], "/name"))
            })
    });
    let keys = items(vmi, "/spec/accessCredentials").iter();
    let of_keys = keys.flat_map(|it| {
        ["sshPublicKey", "userPassword"]
            .into_iter()
            .map(move |kind| field(&it[kind]["source"]["secret"], "/secretName"))
    });
    let mut secrets = of_volumes.chain(of_keys).filter(|it| !it.is_empty());
    let missing = secrets.find(|it| message.contains("Secret") && message.contains(&format!("{it:?}")))?;
    Some((said, missing.to_owned()))
}

/// What its cloud-init says, if it has one to read.
pub(super) fn cloud_init(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("cloud-init", state, finding);
    let volumes = machine
        .vmi
        .as_ref()
        .map_or(&[][..], |it| items(it, "/spec/volumes"));
    let is_seed = |it: &Value| !it["cloudInitNoCloud"].is_null() || !it["cloudInitConfigDrive"].is_null();
    if let Some((said, secret)) = missing_seed(machine) {
        return link(
            State::Broken,
            format!("it needs the Secret {secret:?}: {}", field(said, "/message")),
        )
        .shown_by([told(said, "")])
        .shown_by(machine.warnings("VirtualMachineInstance", &machine.name))
        .advised(format!(
            "create the Secret {secret} in {}, or correct its name in the machine",
            machine.namespace
        ));
    }
    let running = machine
        .vmi
        .as_ref()
        .is_some_and(|it| field(it, "/status/phase") == "Running");
    if !running {
        return match off(machine) {
            Some(_) => link(State::Unused, "the machine is off".to_owned()),
            None => link(State::Waiting, "the guest does not run".to_owned()),
        };
    }
    let Some(seed) = volumes.iter().find(|it| is_seed(it)) else {
        return link(State::Unused, "the machine has no cloud-init volume".to_owned());
    };
    let advice = format!(
        "correct the user data of the volume {}; in the guest, `cloud-init status --long` and \
         /var/log/cloud-init-output.log tell more",
        field(seed, "/name")
    );
    let said: Vec<String> = lines(machine.console.as_deref().unwrap_or_default())
        .filter(|it| it.contains("cloud-init") || it.contains("Cloud-init"))
        .collect();
    let complaints: Vec<&String> = said.iter().filter(|it| is_error(it)).collect();
    let by_agent = machine.cloud_init.as_ref().map(Kept::read);
    let errors = by_agent.as_ref().map_or(&[][..], |it| it.errors.as_slice());
    let first = errors.first().map(String::as_str);
    if let Some(first) = first.or_else(|| complaints.first().map(|it| after_colon(it))) {
        let kept = errors
            .iter()
            .map(|it| Evidence::new("cloud-init in the guest, by its agent", "", it));
        let printed = complaints
            .iter()
            .take(MOST)
            .map(|it| Evidence::new("console", "", it));
        return link(State::Broken, first.to_owned())
            .shown_by(kept)
            .shown_by(printed)
            .advised(advice);
    }
    match by_agent {
        Some(Kept {
            stage: Stage::Done, ..
        }) => return link(State::Good, "finished".to_owned()),
        Some(Kept {
            stage: Stage::At(stage),
            ..
        }) => {
            return link(State::Waiting, format!("it is not through yet: it is at {stage}"));
        }
        Some(Kept {
            stage: Stage::Absent, ..
        }) if said.is_empty() => {
            let finding = "there is no cloud-init in the guest: its agent finds nothing in /run/cloud-init";
            return link(State::Unknown, finding.to_owned());
        }
        _ => {}
    }
    if machine.console.is_none() {
        return link(State::Unknown, "its console cannot be read".to_owned());
    }
    match said.iter().any(|it| it.contains("finished")) {
        true => link(State::Good, "finished".to_owned()),
        false if boot(machine).state != State::Good => {
            link(State::Waiting, "the guest has not come to it".to_owned())
        }
        false if said.is_empty() => link(State::Unknown, "its console says nothing of it".to_owned()),
        false => link(State::Waiting, "it is not through yet".to_owned()).shown_by(
            said.iter()
                .rev()
                .take(3)
                .rev()
                .map(|it| Evidence::new("console", "", it)),
        ),
    }
}

/// What the guest's agent read of cloud-init's own files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    errors: Vec<String>,
    stage: Stage,
}

/// How far cloud-init is.
#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Its files are not there.
    #[default]
    Absent,
    /// It is at work.
    At(String),
    /// It is between two stages, or was ended.
    Between,
    Done,
}

impl Kept {
    fn read(told: &Value) -> Self {
        let (status, result) = (&told["status"]["v1"], &told["result"]["v1"]);
        // Every stage has its own while it is under way, and in the end all are together.
        let of_stages = status.as_object().into_iter().flatten();
        let of_stages = of_stages.flat_map(|(_, it)| items(it, "/errors"));
        let mut errors: Vec<String> = Vec::new();
        for error in items(result, "/errors").iter().chain(of_stages) {
            let text = error.as_str().map_or_else(|| clean(&error.to_string()), clean);
            if !text.is_empty() && !errors.contains(&text) && errors.len() < MOST {
                errors.push(text);
            }
        }
        let stage = match (result.is_object(), status.is_object(), field(status, "/stage")) {
            (true, ..) => Stage::Done,
            (false, true, "") => Stage::Between,
            (false, true, stage) => Stage::At(clean(stage)),
            (false, false, _) => Stage::Absent,
        };
        Self { errors, stage }
    }
}

fn is_error(line: &str) -> bool {
    let words = [
        "[WARNING]",
        "[ERROR]",
        "[CRITICAL]",
        "[FAILED]",
        "Failed to",
        "status: error",
    ];
    // The guest's own: whatever it says before it says that it is through.
    let own = line.contains("cloud-init: ") && !line.contains("cloud-init: finished");
    own || words.iter().any(|it| line.contains(it))
}

/// What a line says, without who says it and when.
fn after_colon(line: &str) -> &str {
    let rest = line.split_once("cloud-init: ").or_else(|| line.split_once("]: "));
    rest.map_or(line, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A machine that runs and has a seed, whose agent tells this and whose console has that.
    fn machine(cloud_init: Option<Value>, console: Option<&str>) -> Machine {
        let volumes = json!([{"name": "seed", "cloudInitNoCloud": {}}]);
        let agent = json!([{"type": "AgentConnected", "status": "True"}]);
        Machine {
            name: "web".to_owned(),
            vmi: Some(json!({
                "metadata": {"name": "web"}, "spec": {"volumes": volumes}, "status": {"phase": "Running", "conditions": agent},
            })),
            console: console.map(str::to_owned),
            cloud_init,
            ..Machine::default()
        }
    }

    #[test]
    fn the_agent_is_asked_before_the_console() {
        let done = json!({"v1": {"stage": null, "modules-final": {"errors": [], "finished": 1}}});
        let at = |stage: Value| json!({"v1": {"stage": stage, "init": {"errors": []}}});
        let failed = json!({"v1": {"stage": "modules-final", "init": {"errors": ["no disk \u{1b}[31mvdb"]}}});
        let result = |errors: Value| json!({"v1": {"datasource": "DataSourceNoCloud", "errors": errors}});
        let warned = "cloud-init[7]: 2026 - util.py[WARNING]: Failed loading yaml blob\n";
        let files = |status: Value, result: Value| Some(json!({"status": status, "result": result}));
        let none = || files(Value::Null, Value::Null);
        type Case = (
            &'static str,
            Option<Value>,
            Option<&'static str>,
            State,
            &'static str,
        );
        let cases: Vec<Case> = vec![
            (
                "a silent console",
                files(done.clone(), result(json!([]))),
                Some(""),
                State::Good,
                "finished",
            ),
            (
                "no console",
                files(done.clone(), result(json!([]))),
                None,
                State::Good,
                "finished",
            ),
            (
                "an error in the end",
                files(
                    done.clone(),
                    result(json!(["runcmd: it ended with 3", "runcmd: it ended with 3"])),
                ),
                Some(""),
                State::Broken,
                "runcmd: it ended with 3",
            ),
            (
                "an error before the end, with what a terminal understands",
                files(failed, Value::Null),
                Some(""),
                State::Broken,
                "no disk vdb",
            ),
            (
                "an error that is no text",
                files(Value::Null, result(json!([{"module": "runcmd"}]))),
                Some(""),
                State::Broken,
                "{\"module\":\"runcmd\"}",
            ),
            (
                "a complaint that is no error to cloud-init",
                files(done, result(json!([]))),
                Some(warned),
                State::Broken,
                "2026 - util.py[WARNING]: Failed loading yaml blob",
            ),
            (
                "under way",
                files(at(json!("modules-config")), Value::Null),
                Some(""),
                State::Waiting,
                "it is not through yet: it is at modules-config",
            ),
            (
                "between two stages",
                files(at(Value::Null), Value::Null),
                Some("Cloud-init v. 22 running 'init'\n"),
                State::Waiting,
                "it is not through yet",
            ),
            (
                "no cloud-init",
                none(),
                Some("login: "),
                State::Unknown,
                "there is no cloud-init in the guest: its agent finds nothing in /run/cloud-init",
            ),
            (
                "an image that keeps them elsewhere",
                none(),
                Some("Cloud-init v. 18 finished\nlogin: "),
                State::Good,
                "finished",
            ),
            (
                "an agent that does not tell",
                None,
                Some("Cloud-init v. 22 finished\n"),
                State::Good,
                "finished",
            ),
            (
                "nobody tells",
                None,
                None,
                State::Unknown,
                "its console cannot be read",
            ),
            (
                "nonsense",
                Some(json!({"status": 7, "result": {"v1": {"errors": "x"}}})),
                None,
                State::Good,
                "finished",
            ),
        ];
        for (name, told, console, state, finding) in cases {
            let link = cloud_init(&machine(told, console));
            assert_eq!((link.state, link.finding.as_str()), (state, finding), "{name}");
        }
    }

    #[test]
    fn complaints_are_bounded() {
        let many: Vec<String> = (0..100).map(|it| format!("{it} {}", "x".repeat(4096))).collect();
        let kept = Kept::read(&json!({"result": {"v1": {"errors": many}}}));
        assert_eq!(kept.errors.len(), MOST);
        assert!(kept.errors.iter().all(|it| it.len() < 200), "{:?}", kept.errors);
    }
}
