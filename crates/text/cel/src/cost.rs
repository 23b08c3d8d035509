//! What calls cost when they run: CEL's price list with Kubernetes' additions.
//!
//! Prices are part of the API: which rules fit the budget must not differ from Kubernetes.

pub(crate) mod estimate;

use crate::error::Error;
use crate::library::Opaque;
use crate::meter::Meter;
use crate::value::Value;

/// Building a list.
pub(crate) const LIST_CREATE: u64 = 10;
/// Building a map.
pub(crate) const MAP_CREATE: u64 = 30;
/// Building an object.
pub(crate) const STRUCT_CREATE: u64 = 40;
/// Reading one character.
const TRAVERSAL: f64 = 0.1;
/// One character of a regular expression.
const REGEX_LENGTH: f64 = 0.25;

/// How a function is priced. `size` is code points of text, elements of lists, entries of maps, else 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    Fixed(u64),
    /// Of `==`; Kubernetes' own types compare at the price of 1.
    Equality,
    Inequality,
    /// A tenth of the smaller argument.
    Smaller,
    /// The size of the list that is searched.
    InList,
    IndexList,
    IndexMap,
    /// `&&`, `||`, `?:` are free; their estimate depends on their arguments.
    Logical,
    Conditional,
    /// A tenth of both arguments.
    Concat,
    ConcatLists,
    StringToBytes,
    BytesToString,
    Contains,
    /// `startsWith`, `endsWith`
    Affix,
    /// One visit of all parts of the first argument.
    Traverse,
    /// A tenth of the receiver, which the result is at most as long as.
    ScanTarget,
    /// A tenth of the first argument.
    ScanArgument,
    ScanArgumentTwice,
    ScanUrl,
    Replace,
    Split,
    Join,
    Format,
    Quote,
    Regex,
    Matches,
    Slice,
    Flatten,
    Range,
    Reverse,
    /// Each element of the given argument with each.
    SelfCompare(usize),
    Distinct,
    Sets(u64),
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    Validate,
    Selector,
}

fn tenth(size: u64) -> u64 {
    factor(size, TRAVERSAL)
}

fn factor(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

impl Cost {
    /// Charges a call, before it runs where the arguments tell the price.
    pub(crate) fn charge(self, meter: &Meter, args: &[Value<'_>]) -> Result<(), Error> {
        let price = match self {
            Cost::Traverse => return traverse(meter, args.first()),
            Cost::Join => return Ok(()),
            _ => self.price(args),
        };
        meter.charge(price)
    }

    /// Charges what only the result tells.
    pub(crate) fn charge_result(self, meter: &Meter, result: &Value<'_>) -> Result<(), Error> {
        match self {
            Cost::Join => meter.charge(factor(result.size(), 2.0 * TRAVERSAL)),
            _ => Ok(()),
        }
    }

    fn price(self, args: &[Value<'_>]) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, Value::size);
        match self {
            Cost::Fixed(cost) => cost,
            Cost::Logical | Cost::Conditional | Cost::Traverse | Cost::Join => 0,
            Cost::Equality if matches!(args.first(), Some(Value::Opaque(_))) => 1,
            Cost::Equality | Cost::Inequality | Cost::Smaller => tenth(size(0).min(size(1))),
            Cost::InList => size(1),
            Cost::IndexList | Cost::IndexMap | Cost::ConcatLists => 1,
            Cost::Concat => tenth(size(0) + size(1)),
            Cost::StringToBytes
            | Cost::BytesToString
            | Cost::Affix
            | Cost::ScanTarget
            | Cost::ScanArgument
            | Cost::ScanUrl
            | Cost::Format
            | Cost::Quote => tenth(size(0)),
            Cost::Contains => tenth(size(0)).saturating_mul(tenth(size(1))),
            Cost::ScanArgumentTwice | Cost::Replace | Cost::Split => factor(size(0), 2.0 * TRAVERSAL),
            Cost::Regex | Cost::Matches => regex_price(size(0), size(1)),
            Cost::Slice => {
                let end = args.get(2).and_then(Value::as_int).unwrap_or(0);
                let start = args.get(1).and_then(Value::as_int).unwrap_or(0);
                // A slice that fails is priced by its error, which has the size of one.
                let valid = 0 <= start && start <= end && end as u64 <= size(0);
                let length = if valid { (end - start) as u64 } else { 1 };
                length + 1 + LIST_CREATE
            }
            Cost::Range => {
                let length = args.first().and_then(Value::as_int).unwrap_or(0);
                u64::try_from(length).unwrap_or(0).saturating_add(1 + LIST_CREATE)
            }
            Cost::Reverse => size(0) + 1 + LIST_CREATE,
            Cost::Flatten => {
                let depth = args.get(1).and_then(Value::as_int).unwrap_or(1).max(0);
                size(0)
                    .saturating_mul(depth as u64)
                    .saturating_add(1 + LIST_CREATE)
            }
            Cost::SelfCompare(_) | Cost::Distinct => {
                let index = if let Cost::SelfCompare(index) = self {
                    index
                } else {
                    0
                };
                let count = size(index);
                let text = match args.get(index) {
                    Some(Value::List(list)) if !list.is_empty() => {
                        matches!(list.get(0), Ok(Value::String(_) | Value::Bytes(_)))
                    }
                    _ => false,
                };
                let each = if text { 2.0 + TRAVERSAL } else { 2.0 };
                (count.saturating_mul(count) as f64 * each) as u64 + 1 + LIST_CREATE
            }
            Cost::Sets(times) => 1 + size(0).saturating_mul(size(1)).saturating_mul(times),
            Cost::ContainsIp { text } => tenth(2 * size(0)) + if text { tenth(size(1)) } else { 0 },
            Cost::ContainsCidr { text } => {
                tenth(2 * size(0)) + tenth(size(0)) + 1 + if text { tenth(size(1)) } else { 0 }
            }
            Cost::Validate => {
                let regex = match args.first() {
                    Some(Value::Opaque(opaque)) => match &**opaque {
                        Opaque::Format(format) => format.regex_size,
                        _ => 1,
                    },
                    _ => 1,
                };
                regex_price(size(1), regex)
            }
            Cost::Selector => {
                let length = size(1);
                LIST_CREATE
                    + tenth(length)
                    + factor(factor(length, 0.5), (LIST_CREATE + STRUCT_CREATE) as f64)
            }
        }
    }
}

/// One is added to the text, or matching the empty string would be free whatever the pattern.
fn regex_price(text: u64, pattern: u64) -> u64 {
    tenth(text + 1).saturating_mul(factor(pattern, REGEX_LENGTH))
}

/// Charges a visit of every part of a value, bit by bit, so that a large one cannot outrun the budget.
fn traverse(meter: &Meter, value: Option<&Value<'_>>) -> Result<(), Error> {
    match value {
        Some(Value::String(text)) => meter.charge((text.len() as f64 * TRAVERSAL) as u64),
        Some(Value::Bytes(bytes)) => meter.charge((bytes.len() as f64 * TRAVERSAL) as u64),
        Some(Value::List(list)) => {
            meter.work(list.len())?;
            list.iter()
                .try_for_each(|element| traverse(meter, Some(&element?)))
        }
        Some(Value::Map(map)) => {
            meter.work(map.len())?;
            for key in map.keys() {
                traverse(meter, Some(&key))?;
                if let Some(value) = map.get(&key)? {
                    traverse(meter, Some(&value))?;
                }
            }
            Ok(())
        }
        _ => meter.charge(1),
    }
}
