//! Named formats: `format.dns1123Label().validate(name)` gives the reasons why a name is not valid.

use super::{Opaque, arg, base64, opaque, url};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::{Function, Registry};
use crate::meter::Meter;
use crate::value::{Timestamp, Value};

/// A format: its name, how to check a string, and the length of regular expression that its price is computed from.
#[derive(Debug)]
pub struct NamedFormat {
    pub(crate) name: &'static str,
    function: &'static str,
    check: fn(&str) -> Vec<String>,
    pub(crate) regex_size: u64,
}

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const fn format(
    name: &'static str,
    function: &'static str,
    regex_size: u64,
    check: fn(&str) -> Vec<String>,
) -> NamedFormat {
    NamedFormat {
        name,
        function,
        check,
        regex_size,
    }
}

static FORMATS: [NamedFormat; 13] = [
    format("DNS1123Label", "format.dns1123Label", 30, dns1123_label),
    format(
        "DNS1123Subdomain",
        "format.dns1123Subdomain",
        60,
        dns1123_subdomain,
    ),
    format("DNS1035Label", "format.dns1035Label", 30, dns1035_label),
    format("QualifiedName", "format.qualifiedName", 60, qualified_name),
    format("DNS1123LabelPrefix", "format.dns1123LabelPrefix", 30, |s| {
        dns1123_label(&mask_trailing_dash(s))
    }),
    format(
        "DNS1123SubdomainPrefix",
        "format.dns1123SubdomainPrefix",
        60,
        |s| dns1123_subdomain(&mask_trailing_dash(s)),
    ),
    format("DNS1035LabelPrefix", "format.dns1035LabelPrefix", 30, |s| {
        dns1035_label(&mask_trailing_dash(s))
    }),
    format("LabelValue", "format.labelValue", 40, label_value),
    format("URI", "format.uri", 1103, |s| {
        url::validate(s).err().into_iter().collect()
    }),
    format("uuid", "format.uuid", 70, |s| {
        unless(is_uuid(s), "does not match the UUID format")
    }),
    format("byte", "format.byte", 84, |s| {
        unless(!s.is_empty() && base64::decode(s).is_some(), "invalid base64")
    }),
    format("date", "format.date", 71, |s| {
        unless(Timestamp::parse_date(s).is_some(), "invalid date")
    }),
    format("datetime", "format.datetime", 71, |s| {
        unless(is_date_time(s), "invalid datetime")
    }),
];

pub(super) fn register(r: &mut Registry) {
    let constants: [Function; 13] = [
        constant::<0>,
        constant::<1>,
        constant::<2>,
        constant::<3>,
        constant::<4>,
        constant::<5>,
        constant::<6>,
        constant::<7>,
        constant::<8>,
        constant::<9>,
        constant::<10>,
        constant::<11>,
        constant::<12>,
    ];
    for (format, call) in FORMATS.iter().zip(constants) {
        r.add(format.function, "() -> format", Cost::Fixed(1), call);
    }
    r.add(
        "format.named",
        "(string) -> optional<format>",
        Cost::Fixed(1),
        |_, args| {
            let name = arg!(args, 0, String);
            let format = FORMATS
                .iter()
                .find(|f| f.function.strip_prefix("format.") == Some(name.as_str()));
            Ok(format.map_or_else(Value::none, |format| {
                Value::some(Value::opaque(Opaque::Format(format)))
            }))
        },
    );
    r.add(
        "validate",
        "format.(string) -> optional<list<string>>",
        Cost::Validate,
        |_, args| {
            let reasons = (opaque!(args, 0, Format).check)(arg!(args, 1, String));
            if reasons.is_empty() {
                return Ok(Value::none());
            }
            Ok(Value::some(Value::list(
                reasons.into_iter().map(Value::string).collect(),
            )))
        },
    );
}

fn constant<'a, const INDEX: usize>(_: &Meter, _: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::opaque(Opaque::Format(&FORMATS[INDEX])))
}

fn unless(valid: bool, reason: &str) -> Vec<String> {
    if valid {
        Vec::new()
    } else {
        vec![reason.to_owned()]
    }
}

/// A prefix may end in a dash, since more is to follow.
fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => name.to_owned(),
    }
}

fn mismatch(what: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!(
        "{what} (e.g. {}regex used for validation is '{regex}')",
        examples.join(" or ")
    )
}

/// The shape that the DNS formats share: inner dashes, alphanumeric ends.
fn is_label(text: &str, first: fn(u8) -> bool) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let (Some(&start), Some(&end)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    first(start) && lower(end) && bytes.iter().all(|b| lower(*b) || *b == b'-')
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| is_label(label, lower_or_digit))
}

fn too_long(text: &str, limit: usize, unit: &str) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} {unit}"))
}

fn dns1123_label(text: &str) -> Vec<String> {
    let mut reasons: Vec<String> = too_long(text, LABEL_MAX, "characters").into_iter().collect();
    if !is_label(text, lower_or_digit) {
        reasons.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                        start and end with an alphanumeric character";
            mismatch(what, DNS1123_LABEL, &["my-name", "123-abc"])
        });
    }
    reasons
}

fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut reasons: Vec<String> = too_long(text, SUBDOMAIN_MAX, "characters").into_iter().collect();
    if !is_subdomain(text) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                    must start and end with an alphanumeric character";
        reasons.push(mismatch(what, DNS1123_SUBDOMAIN, &["example.com"]));
    }
    reasons
}

fn dns1035_label(text: &str) -> Vec<String> {
    let mut reasons: Vec<String> = too_long(text, LABEL_MAX, "characters").into_iter().collect();
    if !is_label(text, |b| b.is_ascii_lowercase()) {
        let what = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character";
        reasons.push(mismatch(what, DNS1035_LABEL, &["my-name", "abc-123"]));
    }
    reasons
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(start), Some(end)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let inner = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    start.is_ascii_alphanumeric() && end.is_ascii_alphanumeric() && bytes.iter().all(inner)
}

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";
const NAME_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

fn qualified_name(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut reasons = Vec::new();
    let name = match parts[..] {
        [name] => name,
        ["", name] => {
            reasons.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            reasons.extend(
                dns1123_subdomain(prefix)
                    .into_iter()
                    .map(|why| format!("prefix part {why}")),
            );
            name
        }
        _ => {
            let rule = mismatch(NAME_RULE, LABEL_KEY, &NAME_EXAMPLES);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    } else if let Some(why) = too_long(name, LABEL_MAX, "bytes") {
        reasons.push(format!("name part {why}"));
    }
    if !is_name(name) {
        reasons.push(format!(
            "name part {}",
            mismatch(NAME_RULE, LABEL_KEY, &NAME_EXAMPLES)
        ));
    }
    reasons
}

fn label_value(text: &str) -> Vec<String> {
    let mut reasons: Vec<String> = too_long(text, LABEL_MAX, "bytes").into_iter().collect();
    if !text.is_empty() && !is_name(text) {
        let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                    must start and end with an alphanumeric character";
        reasons.push(mismatch(what, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    reasons
}

/// Eight, four, four, four and twelve hexadecimal digits; each dash may be missing.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, count) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..count) {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => rest = &rest[count..],
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else {
        return false;
    };
    let zoned = time.ends_with('z')
        || time
            .len()
            .checked_sub(6)
            .and_then(|at| time.get(at..))
            .is_some_and(|t| t.starts_with(['+', '-']));
    zoned && Timestamp::parse_date(date).is_some() && Timestamp::parse_lenient(&lower).is_some()
}

pub(super) fn is_dns1123_label(text: &str) -> bool {
    dns1123_label(text).is_empty()
}

pub(super) fn is_dns1123_subdomain(text: &str) -> bool {
    dns1123_subdomain(text).is_empty()
}
