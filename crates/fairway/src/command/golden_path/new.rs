//! `fairway new`: answers from the command line, a file and the terminal become a Voyage, which is followed.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use fairway_portal_scaffolder::submit::{self, Submission};
use fairway_portal_template::answers;
use fairway_portal_template::template::Template;
use ring::rand::SecureRandom as _;
use serde_json::{Map, Value, json};

use super::super::gitops::{Session, told};
use super::super::runtime;
use super::{ask, find, follow, show};
use crate::cli::golden_path::New;

/// Does what was asked for.
pub(crate) fn run(options: &New) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(start(options))
}

async fn start(options: &New) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    let (_, template) = find(&session, &options.template).await?;
    let mut given = given(options, &template)?;
    let known = answers::questions(&template);
    if let Some(unknown) = given.keys().find(|name| !known.contains(*name)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        bail!(
            "template {} does not ask for {unknown:?}; it asks for {}",
            template.name,
            known.join(", ")
        );
    }
    let mut secrets = secrets(options)?;
    if !options.yes && ask::is_possible() {
        ask::missing(&template, &mut given, &mut secrets)?;
    }
    let judged = submit::judge(&template, &given, &secrets).map_err(|complaints| {
        let said: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        anyhow!("the answers are not good:\n  {}", said.join("\n  "))
    })?;
    for name in given
        .keys()
        .chain(secrets.keys())
        .filter(|name| judged.left_out.contains(*name))
    {
        eprintln!("{name}: the other answers do not lead to this question; what was answered is not taken");
    }
    let submission = Submission {
        template: template.reference(),
        namespace: options.namespace.clone(),
        values: judged.values,
        secrets: judged.secrets,
        keep: options.keep,
        suffix: suffix()?,
    };
    if options.dry_run {
        return dry_run(&session, options, &submission).await;
    }
    let made = submit::submit(&session.requests, &submission).await;
    let made = made.map_err(|why| anyhow!("the run could not be started: {why}"))?;
    let name = made["metadata"]["name"].as_str().unwrap_or("").to_owned();
    if options.detach {
        options.output.print(&made, &name);
        return Ok(ExitCode::SUCCESS);
    }
    println!("Voyage {name}");
    follow::follow(&session, &options.namespace, &name).await
}

async fn dry_run(session: &Session, options: &New, submission: &Submission) -> anyhow::Result<ExitCode> {
    let path = format!(
        "/apis/fairway.dev/v1alpha1/namespaces/{}/voyages/new/dryrun",
        options.namespace
    );
    let body = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "VoyageDryRun", "secrets": submission.secrets,
        "spec": {"template": submission.template, "values": submission.values},
    });
    let report = session.requests.post(&path, &body).await.map_err(told)?;
    options.output.print(&report, &show::foreseen(&report));
    Ok(match report["foreseen"]["succeeds"] == true {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Answers of the file, and over them those of the command line.
fn given(options: &New, template: &Template) -> anyhow::Result<Map<String, Value>> {
    let mut given = Map::new();
    if let Some(path) = &options.values {
        let text = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let read = fairway_text_yaml::from_slice(&text, fairway_text_yaml::Limits::default());
        match read.with_context(|| format!("{} is not YAML", path.display()))? {
            Value::Object(values) => given = values,
            Value::Null => {}
            _ => bail!("{} does not hold answers by name", path.display()),
        }
    }
    for pair in &options.set {
        let (name, value) = pair
            .split_once('=')
            .with_context(|| format!("{pair:?} is not QUESTION=ANSWER"))?;
        let question = answers::question(template, name).unwrap_or(&Value::Null);
        given.insert(name.to_owned(), ask::typed(question, value));
    }
    Ok(given)
}

fn secrets(options: &New) -> anyhow::Result<BTreeMap<String, String>> {
    let mut secrets = BTreeMap::new();
    for pair in &options.secret_files {
        let (name, path) = pair
            .split_once('=')
            .with_context(|| format!("{pair:?} is not NAME=FILE"))?;
        let text = std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))?;
        secrets.insert(name.to_owned(), text.trim_end_matches('\n').to_owned());
    }
    Ok(secrets)
}

/// Five letters that make a name unlike others.
fn suffix() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 5];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow!("the system gives no random bytes"))?;
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let text = bytes
        .iter()
        .map(|byte| char::from(letters[usize::from(*byte) % letters.len()]));
    Ok(text.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_command_line_have_the_types_of_their_questions() {
        let template = Template::read(&json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": [{"action": "debug:log"}], "parameters": [{
                "properties": {"name": {"type": "string"}, "count": {"type": "integer"}, "open": {"type": "boolean"}},
                "dependencies": {"open": {"oneOf": [
                    {"properties": {"open": {"const": true}, "code": {"$ref": "#/definitions/code"}}},
                ]}},
                "definitions": {"code": {"type": "string"}},
            }]},
        }))
        .unwrap();
        for (name, text, expected) in [
            ("name", "123", json!("123")),
            ("name", "true", json!("true")),
            ("count", "123", json!(123)),
            ("open", "true", json!(true)),
            ("code", "007", json!("007")),
            ("code", "7", json!("7")),
            ("nobody asks", "7", json!(7)),
        ] {
            let question = answers::question(&template, name).unwrap_or(&Value::Null);
            assert_eq!(ask::typed(question, text), expected, "{name}={text}");
        }
    }

    /// The built-in golden paths are sound, and know only actions that there are.
    #[test]
    fn built_in_templates_are_sound() {
        for builtin in crate::server::scaffolder::builtins(fairway_portal_scaffolder::builtin::DOMAIN).iter()
        {
            let template = Template::read(&builtin.template().unwrap()).unwrap();
            assert_eq!(template.name, builtin.name);
            assert_eq!(
                template.unknown_actions(&fairway_portal_scaffolder::actions::names()),
                Vec::<String>::new()
            );
            assert!(answers::questions(&template).len() > 3);
        }
    }
}
