//! Named formats: `format.dns1123Label().validate(name)` gives the reasons why a name is not valid.

use fairway_kernel_scalar::names::{
    is_dns1035_label, is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name,
};

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
    format("DNS1123Label", "format.dns1123Label", 30, is_dns1123_label),
    format(
        "DNS1123Subdomain",
        "format.dns1123Subdomain",
        60,
        is_dns1123_subdomain,
    ),
    format("DNS1035Label", "format.dns1035Label", 30, is_dns1035_label),
    format("QualifiedName", "format.qualifiedName", 60, is_qualified_name),
    format("DNS1123LabelPrefix", "format.dns1123LabelPrefix", 30, |s| {
        is_dns1123_label(&mask_trailing_dash(s))
    }),
    format(
        "DNS1123SubdomainPrefix",
        "format.dns1123SubdomainPrefix",
        60,
        |s| is_dns1123_subdomain(&mask_trailing_dash(s)),
    ),
    format("DNS1035LabelPrefix", "format.dns1035LabelPrefix", 30, |s| {
        is_dns1035_label(&mask_trailing_dash(s))
    }),
    format("LabelValue", "format.labelValue", 40, is_label_value),
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
