//! Runs the cases of structured-merge-diff's own tests against Fairway's server-side apply.
//!
//! A case is a schema, a list of steps and the outcome. Some of the originals' inputs are code and not in the case: the
//! converters between versions, the ignored fields, and the schema after a change. They are known by the name of the
//! test that a case comes from and are written down in `Fixture`.
//!
//! The crate under test includes this file in its own tests, so that one runner serves both.

use std::fmt::Write as _;
use std::path::Path as FilePath;

use fairway_kernel_apply::fieldpath::{Filter, Set};
use fairway_kernel_apply::typed::Typed;
use fairway_kernel_apply::typed::validate::Duplicates;
use fairway_kernel_apply::updater::{ConvertError, Converter, Managers, ResetFields, UpdateError, Updater};
use fairway_kernel_schema::shape::Shapes;
use serde_json::Value;

// The path is spelt out because this file is a module of two crates.
#[path = "conformance_apply/schema.rs"]
mod schema;

use schema::{shapes_of, yaml};

/// How many cases passed, and why the others did not.
#[derive(Default)]
pub(crate) struct Report {
    /// Number of cases that passed.
    pub(crate) passed: usize,
    /// Name and reason of each that failed.
    pub(crate) failed: Vec<(String, String)>,
}

/// Runs every case in a folder.
pub(crate) fn run(folder: &FilePath) -> std::io::Result<Report> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut report = Report::default();
    for file in files
        .iter()
        .filter(|file| file.path().extension().is_some_and(|ext| ext == "json"))
    {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file.path())?;
        let outcome = match serde_json::from_str::<Value>(&text) {
            Ok(case) => run_case(&case),
            Err(error) => Err(format!("not a case: {error}")),
        };
        match outcome {
            Ok(()) => report.passed += 1,
            Err(reason) => report.failed.push((name, reason)),
        }
    }
    Ok(report)
}

fn run_case(case: &Value) -> Result<(), String> {
    let fixture = Fixture::of(case);
    let mut schema = yaml(text(case, "schema"))?;
    let mut shapes = shapes_of(&schema)?;
    let steps = case["steps"].as_array().ok_or("no steps")?;
    let mut live: Option<(String, Value)> = None;
    let mut managers = Managers::new();
    for (index, step) in steps.iter().enumerate() {
        if text(step, "op") == "ChangeParser" {
            fixture.change_schema(&mut schema, case)?;
            shapes = shapes_of(&schema)?;
        } else {
            let same_version = text(case, "parser").contains("SameVersion");
            let state = State {
                shapes: &shapes,
                fixture: &fixture,
                same_version,
            };
            state
                .step(step, &mut live, &mut managers)
                .map_err(|reason| format!("step {index}: {reason}"))?;
        }
        check_managers(&managers, &step["managersAfter"], true)
            .map_err(|reason| format!("step {index}: {reason}"))?;
    }
    if let Some(expected) = case.get("finalLive") {
        let got = live.as_ref().map_or(&Value::Null, |(_, value)| value);
        if !same(got, expected) {
            return Err(format!("live object is {got}, expected {expected}"));
        }
    }
    check_managers(&managers, &case["finalManagers"], true)?;
    check_managers(&managers, &case["expectManaged"], false)
}

/// What runs the steps of a case.
struct State<'a> {
    shapes: &'a Shapes,
    fixture: &'a Fixture,
    same_version: bool,
}

impl<'a> State<'a> {
    fn typed<'v>(&self, type_name: &str, value: &'v Value) -> Result<Typed<'a, 'v>, String> {
        let shape = self
            .shapes
            .named(type_name)
            .ok_or_else(|| format!("no type {type_name}"))?;
        Ok(Typed::new(self.shapes, shape, value))
    }

    fn step(
        &self,
        step: &Value,
        live: &mut Option<(String, Value)>,
        managers: &mut Managers,
    ) -> Result<(), String> {
        let (op, version, type_name) = (text(step, "op"), text(step, "apiVersion"), text(step, "type"));
        let manager = text(step, "manager");
        let outcome = self.run_step(
            op,
            version,
            type_name,
            manager,
            text(step, "object"),
            live,
            managers,
        );
        let expected_conflicts = step.get("expectConflicts").and_then(Value::as_array);
        match (outcome, expected_conflicts, step.get("error")) {
            (Err(StepError::Conflicts(mut got)), Some(expected), _) => {
                let mut expected: Vec<(String, String)> = expected
                    .iter()
                    .map(|conflict| {
                        (
                            text(conflict, "manager").to_owned(),
                            text(conflict, "path").to_owned(),
                        )
                    })
                    .collect();
                expected.sort();
                got.sort();
                if got == expected {
                    Ok(())
                } else {
                    Err(format!("conflicts are {got:?}, expected {expected:?}"))
                }
            }
            (Ok(()), Some(expected), _) if expected.is_empty() => Ok(()),
            (Ok(()), Some(expected), _) => Err(format!("no conflicts, expected {expected:?}")),
            (Err(_), None, Some(_)) => Ok(()),
            (Ok(()), None, Some(error)) => Err(format!("succeeded, expected {error}")),
            (Ok(()), None, None) => Ok(()),
            (Err(error), ..) => Err(format!("failed: {error:?}")),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a step, and the state")]
    fn run_step(
        &self,
        op: &str,
        version: &str,
        type_name: &str,
        manager: &str,
        object: &str,
        live: &mut Option<(String, Value)>,
        managers: &mut Managers,
    ) -> Result<(), StepError> {
        let object = yaml(object)?;
        let object = self.typed(type_name, &object)?;
        let duplicates = if op == "Update" {
            Duplicates::Allow
        } else {
            Duplicates::Refuse
        };
        object.validate(duplicates).map_err(|errors| errors.to_string())?;
        let converter = CaseConverter {
            fixture: self.fixture,
            same_version: self.same_version,
        };
        let updater = Updater {
            converter: &converter,
            reset_fields: &self.fixture.ignored,
            skip: &[],
        };

        let is_new = live.is_none();
        let (live_type, live_value) = live.take().unwrap_or_else(|| (type_name.to_owned(), Value::Null));
        *live = Some((live_type.clone(), live_value.clone()));
        let stored = self.typed(&live_type, &live_value)?;
        let current = converter.convert(&stored, version)?;
        let mut extracted = None;
        if op == "ExtractApply" && !is_new {
            let set = managers
                .get(manager)
                .map(|owned| owned.set.leaves())
                .unwrap_or_default();
            let merged = current
                .extract(&set)
                .merge(&object)
                .map_err(|errors| errors.to_string())?;
            extracted = Some(merged);
        }
        let config = extracted.as_ref().unwrap_or(&object);
        let new = match op {
            "Update" => {
                *managers = updater.update(&current, &object, version, managers.clone(), manager)?;
                Some(object.value.into_owned())
            }
            "Apply" | "ForceApply" | "ExtractApply" => {
                let force = op != "Apply";
                let applied = updater.apply(&current, config, version, managers.clone(), manager, force)?;
                *managers = applied.managers;
                applied.object.map(|object| object.value.into_owned())
            }
            other => return Err(StepError::Other(format!("unknown step {other}"))),
        };
        *live = Some((
            type_name.to_owned(),
            new.unwrap_or_else(|| current.value.into_owned()),
        ));
        Ok(())
    }
}

#[derive(Debug)]
enum StepError {
    Conflicts(Vec<(String, String)>),
    Other(#[allow(dead_code, reason = "printed through Debug")] String),
}

impl From<String> for StepError {
    fn from(error: String) -> Self {
        Self::Other(error)
    }
}

impl From<ConvertError> for StepError {
    fn from(error: ConvertError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<UpdateError> for StepError {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Conflicts(conflicts) => Self::Conflicts(
                conflicts
                    .into_iter()
                    .map(|c| (c.manager, c.path.to_string()))
                    .collect(),
            ),
            other => Self::Other(other.to_string()),
        }
    }
}

fn check_managers(got: &Managers, expected: &Value, with_applied: bool) -> Result<(), String> {
    let Some(expected) = expected.as_object() else {
        return Ok(());
    };
    let mut problem = String::new();
    for (name, owned) in got {
        let fields = owned.set.to_fields_v1();
        match expected.get(name) {
            None => write!(problem, "{name} owns {fields}, expected nothing; "),
            Some(want) if want["fieldsV1"] != fields || text(want, "apiVersion") != owned.api_version => {
                write!(
                    problem,
                    "{name} owns {fields} in {}, expected {want}; ",
                    owned.api_version
                )
            }
            Some(want) if with_applied && want["applied"] != Value::Bool(owned.applied) => {
                write!(problem, "{name}: applied is {}; ", owned.applied)
            }
            Some(_) => Ok(()),
        }
        .map_err(|error| error.to_string())?;
    }
    for name in expected.keys().filter(|name| !got.contains_key(*name)) {
        write!(problem, "{name} owns nothing, expected {}; ", expected[name])
            .map_err(|error| error.to_string())?;
    }
    if problem.is_empty() { Ok(()) } else { Err(problem) }
}

/// Equality that does not mind how a whole number is written.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => l.as_f64() == r.as_f64(),
        (Value::Array(l), Value::Array(r)) => l.len() == r.len() && l.iter().zip(r).all(|(l, r)| same(l, r)),
        (Value::Object(l), Value::Object(r)) => {
            l.len() == r.len() && l.iter().all(|(key, l)| r.get(key).is_some_and(|r| same(l, r)))
        }
        _ => left == right,
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The inputs of a case that are code in the original.
struct Fixture {
    conversion: Conversion,
    ignored: ResetFields,
}

/// The converters of the original's tests.
#[derive(Clone, Copy)]
enum Conversion {
    /// All versions look the same.
    None,
    /// `name_v1` in version v1 is `name_v2` in version v2.
    Renaming,
    /// The key `a` is `aa` in version v2, `aaa` in version v3.
    Repeating,
    /// A field of v1 is computed from a field of v2 that must be there.
    Reliant,
}

impl Fixture {
    fn of(case: &Value) -> Self {
        let source = text(case, "source");
        let is = |name: &str| source.contains(name);
        let conversion = if is("FieldUnsetting") || is("FieldRenameConversions") {
            Conversion::Renaming
        } else if is("RealConversion") || is("TestFilteredFieldsUsesVersions") {
            Conversion::Repeating
        } else if is("ReliantFieldsConversions") {
            Conversion::Reliant
        } else {
            Conversion::None
        };
        let exclude =
            |version: &str, paths: &[&[&str]]| (version.to_owned(), Filter::Exclude(Set::from_paths(paths)));
        let ignored = if is("TestFilteredFieldsUsesVersions") {
            let key = "mapOfMapsRecursive";
            let uses_v4 = case["steps"]
                .as_array()
                .is_some_and(|s| s.iter().any(|s| text(s, "apiVersion") == "v4"));
            if uses_v4 {
                let repeated = ["c", "cc", "ccc", "cccc"];
                (1..)
                    .zip(repeated)
                    .map(|(i, c)| exclude(&format!("v{i}"), &[&[key, c]]))
                    .collect()
            } else {
                vec![exclude("v2", &[&[key, "c"]])]
            }
        } else if case["hasIgnoredFields"] == Value::Bool(true) {
            vec![exclude("v1", &[&["string"], &["obj"]])]
        } else {
            Vec::new()
        };
        Self {
            conversion,
            ignored: ResetFields::new(ignored),
        }
    }

    /// The schema after a `ChangeParser` step.
    fn change_schema(&self, schema: &mut Value, case: &Value) -> Result<(), String> {
        let types = schema["types"].as_array_mut().ok_or("schema without types")?;
        let find = |types: &mut Vec<Value>, name: &str| {
            types
                .iter()
                .position(|t| text(t, "name") == name)
                .ok_or_else(|| format!("no type {name}"))
        };
        let source = text(case, "source");
        if source.contains("GranularToAtomic") {
            let at = find(types, "struct")?;
            types[at]["map"]["elementRelationship"] = Value::from("atomic");
        } else if source.contains("AtomicToGranular") {
            let at = find(types, "struct")?;
            types[at]["map"]["elementRelationship"] = Value::from("separable");
        } else {
            let at = find(types, "associativeList")?;
            types[at]["list"]["keys"] = serde_json::json!(["name", "id"]);
            let at = find(types, "myElement")?;
            let fields = types[at]["map"]["fields"]
                .as_array_mut()
                .ok_or("element without fields")?;
            if !fields.iter().any(|field| text(field, "name") == "id") {
                let mut id = serde_json::json!({"name": "id", "type": {"scalar": "numeric"}});
                // The test with a default starts from several items, the one without from a single one.
                if text(&case["steps"][0], "object").matches("name:").count() > 1 {
                    id["default"] = Value::from(1);
                }
                fields.push(id);
            }
        }
        Ok(())
    }
}

struct CaseConverter<'f> {
    fixture: &'f Fixture,
    same_version: bool,
}

impl<'s> Converter<'s> for CaseConverter<'_> {
    fn convert<'v>(
        &self,
        object: &'v Typed<'s, '_>,
        api_version: &str,
    ) -> Result<Typed<'s, 'v>, ConvertError> {
        let missing = || ConvertError::MissingVersion(api_version.to_owned());
        let from = ["v1", "v2", "v3", "v4"]
            .into_iter()
            .find(|name| object.shapes.named(name) == Some(object.shape))
            .unwrap_or_default();
        let shape = if self.same_version {
            object.shape
        } else {
            object.shapes.named(api_version).unwrap_or(object.shape)
        };
        let converted = match self.fixture.conversion {
            Conversion::None => return Ok(object.by_ref()),
            Conversion::Renaming => rename(&object.value, from, api_version),
            Conversion::Repeating => {
                let times = api_version
                    .strip_prefix('v')
                    .and_then(|n| n.parse().ok())
                    .ok_or_else(missing)?;
                repeat(&object.value, times)
            }
            Conversion::Reliant => {
                if from == api_version {
                    return Ok(object.by_ref());
                }
                let map = object.value.as_object();
                let has_bar = map.is_some_and(|map| map.contains_key("required_field_bar"));
                match api_version {
                    "v1" if !has_bar => {
                        return Err(ConvertError::Failed("missing required field bar".to_owned()));
                    }
                    "v1" => rename_key(&object.value, "required_field_bar", "field_foo_rely_on_bar"),
                    "v2" => rename_key(&object.value, "field_foo_rely_on_bar", "required_field_bar"),
                    _ => return Err(missing()),
                }
            }
        };
        let converted = Typed {
            shape,
            ..object.with_value(converted)
        };
        converted
            .validate(Duplicates::Refuse)
            .map_err(|errors| ConvertError::Failed(errors.to_string()))?;
        Ok(converted)
    }
}

fn rename(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let key = key
                    .strip_suffix(from)
                    .map_or_else(|| key.clone(), |stem| format!("{stem}{to}"));
                (key, rename(value, from, to))
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| rename(item, from, to)).collect(),
        scalar => scalar.clone(),
    }
}

fn rename_key(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                (
                    if key == from { to.to_owned() } else { key.clone() },
                    value.clone(),
                )
            })
            .collect(),
        other => other.clone(),
    }
}

fn repeat(value: &Value, times: usize) -> Value {
    fn below(value: &Value, times: usize) -> Value {
        match value {
            Value::Object(map) if !map.is_empty() => map
                .iter()
                .filter_map(|(key, value)| {
                    let first = key.get(..1)?;
                    Some((
                        first.repeat(times),
                        if value.is_object() {
                            below(value, times)
                        } else {
                            Value::Null
                        },
                    ))
                })
                .collect(),
            other => other.clone(),
        }
    }
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), below(value, times)))
            .collect(),
        other => other.clone(),
    }
}
