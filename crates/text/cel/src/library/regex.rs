//! Regular expressions: RE2 syntax, linear time, bounded size.

use regex::{Regex, RegexBuilder};

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::limits::REGEX_SIZE_LIMIT;
use crate::meter::Meter;
use crate::value::Value;

pub(super) fn register(r: &mut Registry) {
    r.add("matches", "string.(string) -> bool", Cost::Matches, matches);
    r.add("matches", "(string, string) -> bool", Cost::Matches, matches);
    r.add("find", "string.(string) -> string", Cost::Regex, find);
    r.add(
        "findAll",
        "string.(string) -> list<string>",
        Cost::Regex,
        find_all,
    );
    r.add(
        "findAll",
        "string.(string, int) -> list<string>",
        Cost::Regex,
        find_all,
    );
}

/// The functions whose second argument is a pattern; a literal one is compiled with the program.
pub(crate) const PATTERN_FUNCTIONS: [&str; 3] = ["matches", "find", "findAll"];

/// Compiles a pattern within the size limit.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Error> {
    let regex = RegexBuilder::new(pattern)
        .size_limit(REGEX_SIZE_LIMIT)
        .dfa_size_limit(REGEX_SIZE_LIMIT)
        .build();
    regex.map_err(|error| {
        // The crate's message draws the pattern over several lines; its last line has the reason.
        let message = error.to_string();
        let reason = message
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        Error::invalid(format!("error parsing regexp: {reason}: `{pattern}`"))
    })
}

/// Applies a pattern function with its pattern already compiled.
pub(crate) fn apply<'a>(
    meter: &Meter,
    function: &str,
    regex: &Regex,
    args: &[Value<'a>],
) -> Result<Value<'a>, Error> {
    let text = arg!(args, 0, String);
    Ok(match function {
        "matches" => Value::Bool(regex.is_match(text)),
        "find" => Value::string(regex.find(text).map_or("", |found| found.as_str())),
        _ => {
            let limit = args.get(2).and_then(Value::as_int).unwrap_or(-1);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let mut found = Vec::new();
            for part in regex.find_iter(text).take(limit) {
                meter.work(32)?;
                found.push(Value::string(part.as_str()));
            }
            Value::list(found)
        }
    })
}

fn matches<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    apply(meter, "matches", &dynamic(meter, args)?, args)
}

fn find<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    apply(meter, "find", &dynamic(meter, args)?, args)
}

fn find_all<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    apply(meter, "findAll", &dynamic(meter, args)?, args)
}

/// A pattern that is computed costs a compilation each time, which the price of the function does not show.
fn dynamic(meter: &Meter, args: &[Value<'_>]) -> Result<Regex, Error> {
    let pattern = arg!(args, 1, String);
    meter.work(2000 + pattern.len() * 500)?;
    compile(pattern)
}
