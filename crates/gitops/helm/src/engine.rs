//! Executes the templates of a chart and its sub-charts, each with the values in its scope.

mod functions;
mod objects;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::LazyLock;

use fairway_text_gotemplate::text::lossy;
use fairway_text_gotemplate::value::{Entries, Map, from_json, map_from_json};
use fairway_text_gotemplate::{
    ExecError, Fault, Functions, Host, Limits, Machine, MissingKey, ParseError, Templates, Value, arg, parse,
    sprig,
};

use crate::capabilities::Capabilities;
use crate::chart::{Chart, File, Place};
use crate::environment::Environment;
use crate::error::Error;
use crate::render::{Options, Release};
use crate::values::Table;

/// What one rendering is done with.
pub(crate) struct Run<'a> {
    pub(crate) release: &'a Release,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) options: &'a Options,
    pub(crate) environment: &'a dyn Environment,
}

/// A template file and the data that it is executed with.
struct Source<'a> {
    path: String,
    base: String,
    file: &'a File,
    chart: &'a Chart,
    data: Map,
}

struct Surroundings<'a>(&'a dyn Environment);

impl Host for Surroundings<'_> {
    fn now(&self) -> i128 {
        self.0.now()
    }

    fn entropy(&self, buffer: &mut [u8]) {
        self.0.entropy(buffer);
    }

    fn ask(&self, question: &str, args: &[Value]) -> Result<Value, Fault> {
        match question {
            functions::LOOKUP => {
                let text = |at| arg::text(args, at).into_owned();
                let found = self.0.lookup(&text(0), &text(1), &text(2), &text(3))?;
                Ok(match from_json(&found) {
                    Value::Nil => Value::map(Entries::new()),
                    found => found,
                })
            }
            other => Err(Fault::new(format!("nobody answers {other}"))),
        }
    }
}

/// The name that a template makes up for a release, as `--name-template` does. It has sprig's functions, and no data.
pub fn release_name(template: &str, limits: Limits, environment: &dyn Environment) -> Result<String, Error> {
    const NAME: &str = "name-template";
    static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
        let mut functions = Functions::builtin();
        sprig::add(&mut functions);
        functions
    });
    let mut templates = Templates::default();
    let parsed = parse(NAME, template, &FUNCTIONS);
    templates.add(&parsed.map_err(|error| Error::Template(error.to_string()))?);
    let surroundings = Surroundings(environment);
    let printed = Machine::new(&FUNCTIONS, &templates, &surroundings, limits)
        .execute(NAME, &Value::Nil)
        .map_err(|fault| Error::Template(fault.to_string()))?;
    Ok(lossy(&printed).into_owned())
}

/// The text of each template file that is not a partial.
pub(crate) fn render(chart: &Chart, values: &Table, run: &Run<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut sources = Vec::new();
    let values = map_from_json(values);
    let shared = Shared {
        release: release_value(run.release),
        capabilities: objects::capabilities(run.capabilities),
        unreadable: objects::Unreadable::default(),
    };
    collect(
        chart,
        None,
        &Place::root(chart.name()),
        &values,
        &shared,
        &mut sources,
    );
    // Copies of a chart under several names may share sub-charts: of two files at one path, the later one counts.
    let mut taken = HashSet::new();
    sources.reverse();
    sources.retain(|source| taken.insert(source.path.clone()));
    // Files that lie deeper come first, so that a chart's definitions replace those of its sub-charts.
    sources.sort_by_cached_key(|source| Reverse((source.path.matches('/').count(), source.path.clone())));

    let functions = functions::table();
    let mut templates = Templates::default();
    for source in &sources {
        let parsed = source
            .chart
            .parse(&source.path, &source.file.data.read()?, functions);
        templates.add(&parsed.map_err(|error| parse_error(&error))?);
    }
    let surroundings = Surroundings(run.environment);
    let missing_key = if run.options.strict {
        MissingKey::Error
    } else {
        MissingKey::Zero
    };
    let mut machine =
        Machine::new(functions, &templates, &surroundings, run.options.limits).missing_key(missing_key);
    let mut rendered = Vec::with_capacity(sources.len());
    for source in sources {
        if source
            .path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('_'))
        {
            continue;
        }
        source.data.set(
            b"Template".as_slice(),
            objects::template(&source.path, &source.base),
        );
        let data = Value::Map(source.data.retyped(&objects::VALUES));
        let printed = machine.execute(&source.path, &data);
        if let Some(error) = shared.unreadable.take() {
            return Err(error);
        }
        let printed = printed.map_err(|fault| exec_error(&fault))?;
        let text = String::from_utf8(printed).unwrap_or_else(|error| lossy(error.as_bytes()).into_owned());
        rendered.push((source.path, functions::without_no_value(text)));
    }
    Ok(rendered)
}

struct Shared {
    release: Value,
    capabilities: Value,
    unreadable: objects::Unreadable,
}

fn release_value(release: &Release) -> Value {
    let entries: [(&str, Value); 6] = [
        ("Name", release.name.as_str().into()),
        ("Namespace", release.namespace.as_str().into()),
        ("IsUpgrade", release.is_upgrade.into()),
        ("IsInstall", (!release.is_upgrade).into()),
        ("Revision", Value::int(release.revision)),
        ("Service", "Helm".into()),
    ];
    objects::table(entries)
}

/// Collects the templates of a chart and those below it, and gives the data of the chart.
fn collect<'a>(
    chart: &'a Chart,
    parent: Option<&Map>,
    place: &Place,
    values: &Map,
    shared: &Shared,
    sources: &mut Vec<Source<'a>>,
) -> Value {
    let own = match parent {
        None => Some(values.clone()),
        Some(parent) => parent
            .get(chart.name().as_bytes())
            .and_then(|own| own.as_map().cloned()),
    };
    let own = own.unwrap_or_else(|| Map::new(Entries::new()));
    let subcharts = Map::new(Entries::new());
    let data = Map::new(Entries::new());
    let entries: [(&str, Value); 6] = [
        ("Chart", objects::chart(&chart.metadata, parent.is_none())),
        ("Files", objects::files(&chart.files, &shared.unreadable)),
        ("Release", shared.release.clone()),
        ("Capabilities", shared.capabilities.clone()),
        ("Values", Value::Map(own.retyped(&objects::VALUES))),
        ("Subcharts", Value::Map(subcharts.clone())),
    ];
    for (key, value) in entries {
        data.set(key.as_bytes(), value);
    }
    for (subchart, place) in chart.places(place) {
        let scope = collect(subchart, Some(&own), &place, values, shared, sources);
        subcharts.set(subchart.name().as_bytes(), scope);
    }
    let path = &place.now;
    for file in chart.templates.iter() {
        let is_partial = file
            .name
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('_'));
        if chart.is_library() && !is_partial {
            continue;
        }
        sources.push(Source {
            path: format!("{path}/{}", file.name),
            base: format!("{path}/templates"),
            file,
            chart,
            data: data.clone(),
        });
    }
    Value::Map(data)
}

/// As Helm words it: where, and the last part of why.
fn parse_error(error: &ParseError) -> Error {
    let reason = error.message.rsplit(": ").next().unwrap_or_default();
    Error::Template(format!(
        "parse error at ({}:{}): {reason}",
        error.file, error.line
    ))
}

/// What `fail` and `required` say is for the user, without the way there.
fn exec_error(fault: &Fault) -> Error {
    if let Fault::Exec(error) = fault
        && let Some(message) = deliberate(error)
    {
        return Error::Template(format!("execution error at ({}): {message}", error.location));
    }
    Error::Template(fault.to_string())
}

fn deliberate(error: &ExecError) -> Option<&str> {
    let (_, rest) = error.message.split_once(functions::WARNING_START)?;
    let (message, _) = rest.rsplit_once(functions::WARNING_END)?;
    Some(message)
}
