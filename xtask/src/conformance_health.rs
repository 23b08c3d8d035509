//! Runs Argo CD's own health cases: its Lua scripts through our host, and the same objects through our own judgements.
//!
//! Scripts and objects come from the Go modules that upstream publishes; nothing of them is kept here. Where Go or the
//! module cannot be reached, the suite is SKIPPED.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fairway_gitops_health::lua::{Host, Limits};
use fairway_gitops_health::{Health, Status, kinds};
use fairway_text_yaml::Limits as YamlLimits;
use serde_json::Value;

use crate::upstream;

const ARGO_CD: &str = "github.com/argoproj/argo-cd/v3@v3.5.6";
const GITOPS_ENGINE: &str = "github.com/argoproj/gitops-engine@v0.7.3";

/// Cases that fail, with the reason.
const KNOWN: &[(&str, &str)] = &[];

/// What the objects of gitops-engine's tests are expected to be; none: without health.
const BUILT_IN: &[(&str, Option<Status>)] = &[
    ("apiservice-v1-false", Some(Status::Progressing)),
    ("apiservice-v1-true", Some(Status::Healthy)),
    ("apiservice-v1beta1-false", Some(Status::Progressing)),
    ("apiservice-v1beta1-true", Some(Status::Healthy)),
    ("daemonset-ondelete", Some(Status::Healthy)),
    ("deployment-degraded", Some(Status::Degraded)),
    ("deployment-progressing", Some(Status::Progressing)),
    ("deployment-suspended", Some(Status::Suspended)),
    ("hpa-v1-degraded", Some(Status::Degraded)),
    ("hpa-v1-healthy-toofew", Some(Status::Healthy)),
    ("hpa-v1-healthy", Some(Status::Healthy)),
    (
        "hpa-v1-progressing-with-no-annotations",
        Some(Status::Progressing),
    ),
    ("hpa-v1-progressing", Some(Status::Progressing)),
    ("hpa-v2-degraded", Some(Status::Degraded)),
    ("hpa-v2-healthy", Some(Status::Healthy)),
    ("hpa-v2-progressing", Some(Status::Progressing)),
    ("hpa-v2beta1-healthy-disabled", Some(Status::Healthy)),
    ("hpa-v2beta1-healthy", Some(Status::Healthy)),
    ("hpa-v2beta2-healthy", Some(Status::Healthy)),
    ("ingress-nonemptylist", Some(Status::Healthy)),
    ("ingress-unassigned", Some(Status::Progressing)),
    ("ingress", Some(Status::Healthy)),
    ("job-failed", Some(Status::Degraded)),
    ("job-running", Some(Status::Progressing)),
    ("job-succeeded", Some(Status::Healthy)),
    ("knative-service", None),
    ("pod-crashloop", Some(Status::Degraded)),
    ("pod-deletion", Some(Status::Progressing)),
    ("pod-error", Some(Status::Degraded)),
    ("pod-failed", Some(Status::Degraded)),
    ("pod-imagepullbackoff", Some(Status::Degraded)),
    ("pod-pending", Some(Status::Progressing)),
    ("pod-running-not-ready", Some(Status::Progressing)),
    ("pod-running-restart-always", Some(Status::Healthy)),
    ("pod-running-restart-never", Some(Status::Progressing)),
    ("pod-running-restart-onfailure", Some(Status::Progressing)),
    ("pod-succeeded", Some(Status::Healthy)),
    ("pvc-bound", Some(Status::Healthy)),
    ("pvc-pending", Some(Status::Progressing)),
    ("statefulset-ondelete", Some(Status::Healthy)),
    ("statefulset", Some(Status::Healthy)),
    ("svc-clusterip", Some(Status::Healthy)),
    ("svc-loadbalancer-nonemptylist", Some(Status::Healthy)),
    ("svc-loadbalancer-unassigned", Some(Status::Progressing)),
    ("svc-loadbalancer", Some(Status::Healthy)),
];

#[derive(Default)]
struct Tally {
    passed: usize,
    known: usize,
    failed: usize,
}

impl Tally {
    fn note(&mut self, name: &str, result: Result<(), String>) {
        match (result, KNOWN.iter().find(|(known, _)| *known == name)) {
            (Ok(()), _) => self.passed += 1,
            (Err(_), Some((_, why))) => {
                self.known += 1;
                println!("KNOWN {name}: {why}");
            }
            (Err(reason), None) => {
                self.failed += 1;
                println!("FAIL {name}: {reason}");
            }
        }
    }
}

/// Runs all three suites and prints how many passed.
pub(crate) fn run() -> Result<()> {
    let (argo, engine) = match (upstream::go_module(ARGO_CD), upstream::go_module(GITOPS_ENGINE)) {
        (Ok(argo), Ok(engine)) => (argo, engine),
        (Err(error), _) | (_, Err(error)) => {
            println!("SKIPPED: Argo CD's modules cannot be fetched: {error:#}");
            return Ok(());
        }
    };
    let scripts = argo.join("resource_customizations");
    let (mut lua, mut own) = (Tally::default(), Tally::default());
    for folder in folders_with_cases(&scripts)? {
        run_folder(&scripts, &folder, &mut lua, &mut own)?;
    }
    let mut built_in = Tally::default();
    for (name, expected) in BUILT_IN {
        let path = engine.join(format!("pkg/health/testdata/{name}.yaml"));
        let got = fairway_gitops_health::Judge::default()
            .health(&read(&path)?, jiff::Timestamp::UNIX_EPOCH)
            .and_then(|health| health.status);
        let result = (got == *expected)
            .then_some(())
            .ok_or_else(|| format!("expected {expected:?}, got {got:?}"));
        built_in.note(name, result);
    }
    println!(
        "Lua scripts: {} passed, {} failed",
        lua.passed,
        lua.known + lua.failed
    );
    println!(
        "the same kinds in Rust: {} passed, {} failed",
        own.passed,
        own.known + own.failed
    );
    println!(
        "built-in kinds: {} passed, {} failed",
        built_in.passed,
        built_in.known + built_in.failed
    );
    match lua.failed + own.failed + built_in.failed {
        0 => Ok(()),
        failed => bail!("{failed} health cases failed that are not listed"),
    }
}

fn folders_with_cases(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut pending, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.ends_with("health.lua") {
                found.push(folder.clone());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn run_folder(root: &Path, folder: &Path, lua: &mut Tally, own: &mut Tally) -> Result<()> {
    let start = std::time::Instant::now();
    let host = Host {
        // Some scripts compare with the present; upstream runs them with the clock of the machine.
        now: jiff::Timestamp::now(),
        open_libs: true,
        limits: Limits {
            time: Duration::from_secs(5),
            ..Limits::default()
        },
        stopwatch: Some(std::sync::Arc::new(move || start.elapsed())),
    };
    let suite = read(&folder.join("health_test.yaml"))?;
    for case in suite["tests"].as_array().context("a suite without tests")? {
        // A case that names no input cannot run with upstream either; it is counted, so that the sum is upstream's.
        let Some(input) = insensitive(case, "inputPath").as_str() else {
            let name = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
            lua.note(
                &format!("{name}: no input"),
                Err(format!("the case names no input: {case}")),
            );
            continue;
        };
        let path = folder.join(input);
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let object = match read(&path) {
            Ok(object) => object,
            Err(error) => {
                lua.note(&name, Err(format!("{error:#}")));
                continue;
            }
        };
        let text = |field: &str| case["healthStatus"][field].as_str().unwrap_or_default();
        let expected = Health {
            status: Status::parse(text("status")),
            message: text("message").to_owned(),
        };
        // As upstream looks it up: a kind's own script goes before one for many.
        let group = object["apiVersion"]
            .as_str()
            .and_then(|version| version.split_once('/'));
        let exact = root
            .join(group.map_or("", |(group, _)| group))
            .join(object["kind"].as_str().unwrap_or_default())
            .join("health.lua");
        let script = fs::read_to_string(if exact.is_file() {
            exact
        } else {
            folder.join("health.lua")
        })?;
        let ran = host.health(&script, &object).map_err(|error| error.to_string());
        lua.note(&name, ran.and_then(|got| compare(&expected, &got)));
        if let Some(got) = kinds::health(&object) {
            own.note(&format!("rust:{name}"), compare(&expected, &got));
        }
    }
    Ok(())
}

/// A field whose name is in any case, as Go's decoder reads it.
fn insensitive<'a>(object: &'a Value, name: &str) -> &'a Value {
    let mut fields = object.as_object().into_iter().flatten();
    fields
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map_or(&Value::Null, |(_, value)| value)
}

fn compare(expected: &Health, got: &Health) -> Result<(), String> {
    match expected == got {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, got {got:?}")),
    }
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    fairway_text_yaml::from_str(&text, YamlLimits::default())
        .with_context(|| format!("parsing {}", path.display()))
}
