//! The functions that conditions and templates are given: `time`, `strings`, `repo`. A condition says `time.Now()`, a template
//! `call .time.Now`; both mean an entry of a map, so a function is a value.

use std::rc::Rc;

use fairway_text_gotemplate::time::{Time, Zone, parse_layout};
use fairway_text_gotemplate::value::{Entries, FieldType, StructType};
use fairway_text_gotemplate::{Map, Value};

use crate::facts::{Commit, Facts};
use crate::git_url::GitUrl;

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const SECOND: i128 = 1_000_000_000;

const fn field(name: &'static str) -> FieldType {
    FieldType {
        name,
        json: name,
        omit_empty: false,
    }
}

const fn structure(name: &'static str, fields: &'static [FieldType]) -> StructType {
    StructType {
        name,
        pointer: false,
        fields,
        methods: &[],
        display: None,
        is_text: false,
        embedded: None,
    }
}

/// A function: its name is its only field.
static FUNCTION: StructType = structure("func", &[field("name")]);

static COMMIT: StructType = structure(
    "shared.CommitMetadata",
    &[field("Message"), field("Author"), field("Date"), field("Tags")],
);

const FUNCTIONS: [(&str, &str); 10] = [
    ("time", "Parse"),
    ("time", "Now"),
    ("strings", "ReplaceAll"),
    ("strings", "ToUpper"),
    ("strings", "ToLower"),
    ("repo", "RepoURLToHTTPS"),
    ("repo", "FullNameByRepoURL"),
    ("repo", "QueryEscape"),
    ("repo", "GetCommitMetadata"),
    ("repo", "GetAppDetails"),
];

const SPANS: [(&str, i64); 6] = [
    ("Nanosecond", 1),
    ("Microsecond", 1_000),
    ("Millisecond", 1_000_000),
    ("Second", 1_000_000_000),
    ("Minute", 60_000_000_000),
    ("Hour", 3_600_000_000_000),
];

/// Go's names of layouts.
const LAYOUTS: [(&str, &str); 16] = [
    ("Layout", "01/02 03:04:05PM '06 -0700"),
    ("ANSIC", "Mon Jan _2 15:04:05 2006"),
    ("UnixDate", "Mon Jan _2 15:04:05 MST 2006"),
    ("RubyDate", "Mon Jan 02 15:04:05 -0700 2006"),
    ("RFC822", "02 Jan 06 15:04 MST"),
    ("RFC822Z", "02 Jan 06 15:04 -0700"),
    ("RFC850", "Monday, 02-Jan-06 15:04:05 MST"),
    ("RFC1123", "Mon, 02 Jan 2006 15:04:05 MST"),
    ("RFC1123Z", "Mon, 02 Jan 2006 15:04:05 -0700"),
    ("RFC3339", RFC3339),
    ("RFC3339Nano", "2006-01-02T15:04:05.999999999Z07:00"),
    ("Kitchen", "3:04PM"),
    ("Stamp", "Jan _2 15:04:05"),
    ("StampMilli", "Jan _2 15:04:05.000"),
    ("StampMicro", "Jan _2 15:04:05.000000"),
    ("StampNano", "Jan _2 15:04:05.000000000"),
];

/// Puts `time`, `strings` and `repo` among variables.
pub(crate) fn add(variables: &Map) {
    let mut time = Entries::new();
    for (name, nanos) in SPANS {
        time.insert(name.as_bytes().into(), Value::Duration(nanos));
    }
    for (name, layout) in LAYOUTS {
        time.insert(name.as_bytes().into(), Value::str(layout));
    }
    variables.set(*b"time", Value::map(time));
    for (group, name) in FUNCTIONS {
        if !variables.contains(group.as_bytes()) {
            variables.set(group.as_bytes(), Value::map(Entries::new()));
        }
        let function = Value::structure(&FUNCTION, vec![Value::str(name)]);
        if let Some(Value::Map(group)) = variables.get(group.as_bytes()) {
            group.set(name.as_bytes(), function);
        }
    }
}

/// The name of a function, if a value is one.
pub(crate) fn name_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Struct(it) if std::ptr::eq(it.ty, &FUNCTION) => {
            let name = it.fields.first().and_then(Value::as_str)?;
            FUNCTIONS
                .iter()
                .find(|(_, known)| known.as_bytes() == &**name)
                .map(|(_, known)| *known)
        }
        _ => None,
    }
}

/// Calls a function.
pub(crate) fn call(name: &str, arguments: &[Value], facts: &Facts) -> Result<Value, String> {
    let wanted = match name {
        "Now" | "GetAppDetails" => 0,
        "ReplaceAll" => 3,
        _ => 1,
    };
    if arguments.len() != wanted {
        return Err(format!(
            "{name} wants {wanted} arguments and got {}",
            arguments.len()
        ));
    }
    let text = |at: usize| match arguments.get(at) {
        Some(Value::Str(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
        // As Go's reflection has it.
        None | Some(Value::Nil | Value::Invalid) => Ok(String::new()),
        Some(other) => Err(format!(
            "{name} wants a text and got a value of type {}",
            other.type_name()
        )),
    };
    Ok(match name {
        "Now" => Value::Time(Rc::new(Time::utc(facts.now))),
        "Parse" => Value::Time(Rc::new(parse_layout(RFC3339, &text(0)?, &Zone::Utc)?)),
        "ToUpper" => text(0)?.to_uppercase().into(),
        "ToLower" => text(0)?.to_lowercase().into(),
        "ReplaceAll" => replaced(&text(0)?, &text(1)?, &text(2)?)?,
        "RepoURLToHTTPS" => GitUrl::parse(&text(0)?).https().into(),
        "FullNameByRepoURL" => GitUrl::parse(&text(0)?).full_name().into(),
        "QueryEscape" => {
            let text = text(0)?;
            let escaped: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
            // Go leaves the tilde alone and takes the star.
            escaped.replace('*', "%2A").replace("%7E", "~").into()
        }
        "GetCommitMetadata" => commit(facts.commit(&text(0)?)?),
        other => return Err(format!("{other} is not served")),
    })
}

fn replaced(text: &str, old: &str, new: &str) -> Result<Value, String> {
    const MOST: usize = 1 << 20;
    let grown = text.matches(old).count().saturating_mul(new.len());
    match text.len().saturating_add(grown) > MOST {
        true => Err(format!("ReplaceAll makes a text of more than {MOST} bytes")),
        false => Ok(text.replace(old, new).into()),
    }
}

fn commit(commit: &Commit) -> Value {
    Value::structure(
        &COMMIT,
        vec![
            Value::str(&commit.message),
            Value::str(&commit.author),
            Value::Time(Rc::new(Time::utc(i128::from(commit.date) * SECOND))),
            Value::strings(&commit.tags),
        ],
    )
}
