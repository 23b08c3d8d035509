//! Cases of sprig's and Helm's own tests: templates with their results, and lines of `--set` with what they set.
//!
//! Each file holds one JSON object a line. A result that is not asserted depends on time or chance: there the template
//! must give some text, and no error.

use std::path::Path;
use std::rc::Rc;

use fairway_gitops_helm::strvals;
use fairway_text_gotemplate::time::{Zone, parse_layout};
use fairway_text_gotemplate::value::{Entries, from_json};
use fairway_text_gotemplate::{Fault, Functions, Host, Limits, Machine, Templates, Value, arg, parse, sprig};
use serde_json::{Map, Value as Json};

use crate::conformance_apply::Report;

/// Cases that are known to fail, each with its reason, one a line: `NAME: REASON`.
const KNOWN: &str = include_str!("conformance_helm/known_failures.txt");

/// Why a case is expected to fail.
pub(crate) fn known_reason(name: &str) -> Option<&'static str> {
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(": "))
        .find(|(known, _)| *known == name)
        .map(|(_, reason)| reason)
}

/// Runs the cases in a folder.
pub(crate) fn run(folder: &Path) -> std::io::Result<Report> {
    let mut report = Report::default();
    let mut functions = Functions::builtin();
    sprig::add(&mut functions);
    functions.add(sprig::environment::TABLE);
    for (file, check) in [("sprig.jsonl", true), ("strvals.jsonl", false)] {
        let text = std::fs::read_to_string(folder.join(file))?;
        for (number, line) in text.lines().enumerate() {
            let outcome = match serde_json::from_str::<Json>(line) {
                Err(error) => Err(format!("not a case: {error}")),
                Ok(case) if check => template_case(&case, &functions),
                Ok(case) => set_case(&case),
            };
            match outcome {
                Ok(()) => report.passed += 1,
                Err(reason) => report.failed.push((format!("{file}:{}", number + 1), reason)),
            }
        }
    }
    Ok(report)
}

/// The moment at which the cases were recorded, and chance that does not repeat.
struct Surroundings(std::cell::Cell<u64>);

impl Host for Surroundings {
    fn now(&self) -> i128 {
        1_794_773_273_560_699_904
    }

    fn entropy(&self, buffer: &mut [u8]) {
        for byte in buffer {
            let state = self
                .0
                .get()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            self.0.set(state);
            *byte = (state >> 56) as u8;
        }
    }

    /// The originals' tests set one variable.
    fn ask(&self, question: &str, args: &[Value]) -> Result<Value, Fault> {
        match (question, &*arg::text(args, 0)) {
            (sprig::environment::QUESTION, "FOO") => Ok("bar".into()),
            (sprig::environment::QUESTION, _) => Ok("".into()),
            _ => Err(Fault::new(format!("nobody answers {question}"))),
        }
    }
}

/// Numbers in the cases were Go's `int`, unless they have a fraction.
fn data(json: &Json) -> Value {
    match json {
        Json::Number(number) if number.is_i64() => Value::int(number.as_i64().unwrap_or(0)),
        Json::Array(items) => Value::list(items.iter().map(data).collect()),
        Json::Object(fields) => {
            let entries: Entries = fields
                .iter()
                .map(|(key, value)| (key.as_bytes().into(), data(value)))
                .collect();
            Value::map(entries)
        }
        // Times were `time.Time`.
        Json::String(text) => match parse_layout("2006-01-02T15:04:05Z07:00", text, &Zone::Utc) {
            Ok(time) => Value::Time(Rc::new(time)),
            Err(_) => from_json(json),
        },
        other => from_json(other),
    }
}

fn template_case(case: &Json, functions: &Functions) -> Result<(), String> {
    let text = case["tpl"].as_str().ok_or("no tpl")?;
    let wanted = case["out"].as_str().ok_or("no out")?;
    let parsed = parse("test", text, functions).map_err(|error| error.to_string())?;
    let mut templates = Templates::default();
    templates.add(&parsed);
    let host = Surroundings(std::cell::Cell::new(1));
    let limits = Limits {
        work: 1_000_000_000,
        ..Limits::default()
    };
    let mut machine = Machine::new(functions, &templates, &host, limits);
    let printed = match machine.execute("test", &data(&case["vars"])) {
        Ok(printed) => printed,
        // That it fails matters; the messages are compared in the tests of the crate.
        Err(_) if wanted.starts_with("ERR:") => return Ok(()),
        Err(fault) => return Err(fault.to_string()),
    };
    let printed = String::from_utf8_lossy(&printed);
    let asserted = case["asserted"].as_bool().unwrap_or(true);
    match printed == wanted || (!asserted && !printed.is_empty()) {
        true => Ok(()),
        false => Err(format!("{text} gives {printed:?} instead of {wanted:?}")),
    }
}

/// Equal, whichever way a number is kept.
fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => left.as_f64() == right.as_f64(),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        (left, right) => left == right,
    }
}

fn set_case(case: &Json) -> Result<(), String> {
    let line = case["line"].as_str().ok_or("no line")?;
    let mut values: Map<String, Json> = case["before"].as_object().cloned().unwrap_or_default();
    // The originals' tests read files that are not there.
    let mut read = |path: &str| Ok(path.replace("path", "value"));
    let outcome = match case["fn"].as_str().ok_or("no fn")? {
        "Parse" | "ParseInto" => strvals::parse_into(line, &mut values),
        "ParseString" | "ParseIntoString" => strvals::parse_string_into(line, &mut values),
        "ParseJSON" => strvals::parse_json_into(line, &mut values),
        "ParseLiteral" | "ParseLiteralInto" => strvals::parse_literal_into(line, &mut values),
        "ParseFile" | "ParseIntoFile" => strvals::parse_file_into(line, &mut values, &mut read),
        other => return Err(format!("unknown function {other}")),
    };
    let found = Json::Object(values);
    match (outcome, case["error"].as_str()) {
        (Ok(()), None) => {}
        (Ok(()), Some(wanted)) => return Err(format!("{line}: no error instead of {wanted:?}")),
        (Err(error), None) => return Err(format!("{line}: unexpected error {error:?}")),
        (Err(error), Some(wanted)) if error != wanted => {
            return Err(format!("{line}: error {error:?} instead of {wanted:?}"));
        }
        (Err(_), Some(_)) => {}
    }
    match same(&found, &case["after"]) {
        true => Ok(()),
        false => Err(format!("{line}: gives {found} instead of {}", case["after"])),
    }
}
