//! The disks: the DataVolumes that fill them, the claims that hold them, and what they are filled from.

use serde_json::Value;

use super::{Facts, Link, State, condition, field, items, name, told, warnings};

/// The volumes of the machine: those of its instance, if there is one.
fn volumes(facts: &Facts) -> &[Value] {
    match (&facts.vmi, &facts.vm) {
        (Some(vmi), _) => items(vmi, "/spec/volumes"),
        (None, Some(vm)) => items(vm, "/spec/template/spec/volumes"),
        (None, None) => &[],
    }
}

/// The DataVolumes that the machine names.
fn named(facts: &Facts) -> Vec<&str> {
    volumes(facts)
        .iter()
        .map(|it| field(it, "/dataVolume/name"))
        .filter(|it| !it.is_empty())
        .collect()
}

fn find<'f>(all: &'f [Value], wanted: &str) -> Option<&'f Value> {
    all.iter().find(|it| name(it) == wanted)
}

fn is_template(facts: &Facts, wanted: &str) -> bool {
    let vm = facts.vm.as_ref();
    vm.is_some_and(|vm| {
        items(vm, "/spec/dataVolumeTemplates")
            .iter()
            .any(|it| name(it) == wanted)
    })
}

/// Whether they are there.
pub(super) fn data_volumes(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("DataVolume", state, finding);
    let named = named(facts);
    if named.is_empty() {
        return link(State::Unused, "the machine uses none".to_owned());
    }
    let Some(all) = &facts.data_volumes else {
        return link(State::Unknown, "DataVolumes cannot be read".to_owned());
    };
    let mut said = Vec::new();
    for wanted in named {
        let claims = facts.claims.as_deref().unwrap_or_default();
        let Some(found) = find(all, wanted) else {
            // A disk that was filled long ago may have lost its DataVolume.
            if find(claims, wanted).is_some() {
                said.push(format!("{wanted} (its claim alone)"));
                continue;
            }
            if is_template(facts, wanted) {
                return link(State::Waiting, format!("{wanted} of a template is not there yet"))
                    .shown_by(warnings(facts, "VirtualMachine", &facts.name));
            }
            return link(
                State::Broken,
                format!("the machine names the DataVolume {wanted:?}, which does not exist"),
            )
            .advised("create it, or correct the name in spec.template.spec.volumes");
        };
        said.push(format!("{wanted} {}", phase(found)));
    }
    link(State::Good, said.join(", "))
}

fn phase(dv: &Value) -> &str {
    match field(dv, "/status/phase") {
        "" => "new",
        phase => phase,
    }
}

/// Whether claims are bound that nobody is filling.
pub(super) fn claims(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("claim", state, finding);
    let is_named = |it: &&str| !it.is_empty();
    let own = volumes(facts)
        .iter()
        .map(|it| field(it, "/persistentVolumeClaim/claimName"))
        .filter(is_named);
    let wanted: Vec<&str> = own.chain(named(facts)).collect();
    if wanted.is_empty() {
        return link(State::Unused, "the machine uses none".to_owned());
    }
    let Some(all) = &facts.claims else {
        return link(State::Unknown, "claims cannot be read".to_owned());
    };
    let volumes = facts.data_volumes.as_deref().unwrap_or_default();
    let mut said = Vec::new();
    for name in wanted {
        let filling = find(volumes, name).is_some_and(|it| phase(it) != "Succeeded");
        let events = warnings(facts, "PersistentVolumeClaim", name);
        match find(all, name) {
            None if filling => said.push(format!("{name} is not there yet")),
            None => {
                return link(
                    State::Broken,
                    format!("the machine needs the claim {name:?}, which does not exist"),
                )
                .advised("create it, or correct the name in spec.template.spec.volumes");
            }
            Some(claim) => match field(claim, "/status/phase") {
                "Bound" => said.push(format!("{name} Bound")),
                "Lost" => {
                    return link(State::Broken, format!("the claim {name} has lost its volume"))
                        .shown_by(events);
                }
                _ if filling => said.push(format!("{name} is being filled")),
                phase => {
                    let state = if events.is_empty() {
                        State::Waiting
                    } else {
                        State::Broken
                    };
                    let phase = if phase.is_empty() { "Pending" } else { phase };
                    return link(state, format!("the claim {name} is {phase}")).shown_by(events);
                }
            },
        }
    }
    link(State::Good, said.join(", "))
}

/// Whether disks have, or get, their content.
pub(super) fn image(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("image", state, finding);
    if facts.data_volumes.is_none() && !named(facts).is_empty() {
        return link(State::Unknown, "DataVolumes cannot be read".to_owned());
    }
    let all = facts.data_volumes.as_deref().unwrap_or_default();
    let unfinished = named(facts)
        .into_iter()
        .filter_map(|it| find(all, it))
        .find(|it| phase(it) != "Succeeded");
    if let Some(dv) = unfinished {
        return filling(facts, dv);
    }
    let containers: Vec<&str> = volumes(facts)
        .iter()
        .map(|it| field(it, "/containerDisk/image"))
        .filter(|it| !it.is_empty())
        .collect();
    let pull = facts.vmi.as_ref().and_then(|it| condition(it, "Synchronized"));
    let pull = pull.filter(|it| {
        it["status"] == "False" && matches!(field(it, "/reason"), "ErrImagePull" | "ImagePullBackOff")
    });
    if let Some(pull) = pull {
        return link(
            State::Broken,
            format!("a container disk cannot be pulled: {}", field(pull, "/message")),
        )
        .shown_by([told(pull)])
        .shown_by(warnings(facts, "VirtualMachineInstance", &facts.name));
    }
    match (containers.as_slice(), named(facts).is_empty()) {
        ([], true) => link(State::Unused, "no disk is filled from an image".to_owned()),
        ([], false) => link(State::Good, "disks have their content".to_owned()),
        (some, _) => link(State::Good, some.join(", ")),
    }
}

/// A DataVolume that is not done.
fn filling(facts: &Facts, dv: &Value) -> Link {
    let link = |state, finding: String| Link::new("image", state, finding);
    let wanted = name(dv);
    let events = warnings(facts, "DataVolume", wanted);
    if let Some(source) = missing_source(facts, dv) {
        return link(
            State::Broken,
            format!("the DataVolume {wanted} is to be filled from {source}"),
        )
        .shown_by(events)
        .advised("`fairway image list` and `kubectl get datasources -A` show what there is");
    }
    let running = condition(dv, "Running").filter(|it| it["status"] == "False");
    let running = running.filter(|it| !field(it, "/message").is_empty());
    let progress = field(dv, "/status/progress");
    let failed = phase(dv) == "Failed";
    let tries = dv["status"]["restartCount"].as_i64().unwrap_or(0);
    if failed || tries > 0 {
        let why = running.map_or("it failed", |it| field(it, "/message"));
        return link(State::Broken, format!("filling {wanted} fails: {why}"))
            .shown_by([format!("phase {}, tried {} times", phase(dv), tries + 1)])
            .shown_by(running.map(told))
            .shown_by(events);
    }
    let finding = match progress {
        "" | "N/A" => format!("{wanted} is being filled: {}", phase(dv)),
        progress => format!("{wanted} is being filled: {}, {progress}", phase(dv)),
    };
    match events.is_empty() {
        true => link(State::Waiting, finding),
        false => link(State::Broken, finding)
            .shown_by(running.map(told))
            .shown_by(events),
    }
}

/// What a DataVolume is to be filled from, if that is not there.
fn missing_source(facts: &Facts, dv: &Value) -> Option<String> {
    let reference = &dv["spec"]["sourceRef"];
    let wanted = reference["name"].as_str()?;
    let own = field(dv, "/metadata/namespace");
    let namespace = reference["namespace"].as_str().unwrap_or(own);
    let sources = facts.data_sources.as_ref()?;
    let is_it = |it: &&Value| name(it) == wanted && field(it, "/metadata/namespace") == namespace;
    let Some(found) = sources.iter().find(is_it) else {
        return Some(format!(
            "the DataSource {namespace}/{wanted}, which does not exist"
        ));
    };
    let ready = condition(found, "Ready").filter(|it| it["status"] != "True")?;
    Some(format!(
        "the DataSource {namespace}/{wanted}, which is not ready: {}",
        field(ready, "/message")
    ))
}
