//! Functions on texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_text_gotemplate::Value;

use crate::expr::eval::{Evaluator, items};
use crate::expr::numbers::number;
use crate::expr::operators::{text, type_name};
use crate::expr::{ExprError, error};

/// Where a text begins within another.
pub(in crate::expr) fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    // Linear, whatever the texts are.
    let searcher = regex::bytes::Regex::new(&regex::escape(&String::from_utf8_lossy(part))).ok()?;
    searcher.find(whole).map(|found| found.start())
}

/// Nothing if there is no such function.
pub(super) fn call(
    evaluator: &mut Evaluator<'_>,
    name: &'static str,
    values: &[Value],
) -> Option<Result<Value, ExprError>> {
    const NAMES: [&str; 16] = [
        "trim",
        "trimPrefix",
        "trimSuffix",
        "upper",
        "lower",
        "split",
        "splitAfter",
        "replace",
        "repeat",
        "join",
        "indexOf",
        "lastIndexOf",
        "hasPrefix",
        "hasSuffix",
        "toBase64",
        "fromBase64",
    ];
    NAMES.contains(&name).then(|| made(evaluator, name, values))
}

fn made(evaluator: &mut Evaluator<'_>, name: &'static str, values: &[Value]) -> Result<Value, ExprError> {
    let word = |at: usize| -> Result<String, ExprError> {
        let value = values.get(at).unwrap_or(&Value::Nil);
        text(value, name).map(|text| String::from_utf8_lossy(text).into_owned())
    };
    let count = |at: usize| -> Result<Option<i64>, ExprError> {
        match values.get(at) {
            None => Ok(None),
            Some(value) => match number(value) {
                Some(number) => Ok(Some(number.int())),
                None => error(format!("invalid operation: int({})", type_name(value))),
            },
        }
    };
    let has_second = values.len() > 1;
    let place = |found: Option<usize>| {
        let found = found.and_then(|at| i64::try_from(at).ok());
        Ok(Value::int(found.unwrap_or(-1)))
    };
    match name {
        "join" => join(evaluator, values),
        "trim" if has_second => {
            let letters = word(1)?;
            Ok(word(0)?.trim_matches(|c| letters.contains(c)).into())
        }
        "trim" => Ok(word(0)?.trim().into()),
        "trimPrefix" | "trimSuffix" => {
            let part = if has_second { word(1)? } else { " ".to_owned() };
            let whole = word(0)?;
            let cut = match name {
                "trimPrefix" => whole.strip_prefix(&part),
                _ => whole.strip_suffix(&part),
            };
            Ok(cut.unwrap_or(&whole).into())
        }
        "upper" => Ok(word(0)?.to_uppercase().into()),
        "lower" => Ok(word(0)?.to_lowercase().into()),
        "split" | "splitAfter" => {
            let parts = split(&word(0)?, &word(1)?, count(2)?, name == "splitAfter");
            evaluator.budget.spend(parts.len())?;
            Ok(Value::strings(parts))
        }
        "replace" => {
            let (whole, old, new) = (word(0)?, word(1)?, word(2)?);
            let most = usize::try_from(count(3)?.unwrap_or(-1)).unwrap_or(usize::MAX);
            // Before each letter and at the end, if the text that is replaced is empty.
            let found = whole.matches(&old).count().min(most);
            evaluator.budget.spend_bytes(found.saturating_mul(new.len()))?;
            Ok(whole.replacen(&old, &new, most).into())
        }
        "repeat" => {
            let times = count(1)?.unwrap_or(0);
            let Ok(times) = usize::try_from(times) else {
                return error(format!(
                    "invalid argument for repeat (expected positive integer, got {times})"
                ));
            };
            let whole = word(0)?;
            evaluator.budget.spend_bytes(whole.len().saturating_mul(times))?;
            evaluator.budget.spend(times / 16)?;
            Ok(whole.repeat(times).into())
        }
        "indexOf" => place(find(word(0)?.as_bytes(), word(1)?.as_bytes())),
        "lastIndexOf" => place(word(0)?.rfind(&word(1)?)),
        "hasPrefix" => Ok(word(0)?.starts_with(&word(1)?).into()),
        "hasSuffix" => Ok(word(0)?.ends_with(&word(1)?).into()),
        "toBase64" => Ok(STANDARD.encode(word(0)?).into()),
        _ => match STANDARD.decode(word(0)?) {
            Ok(bytes) => Ok(bytes.into()),
            Err(why) => error(format!("illegal base64 data: {why}")),
        },
    }
}

fn join(evaluator: &mut Evaluator<'_>, values: &[Value]) -> Result<Value, ExprError> {
    let list = items(values.first().unwrap_or(&Value::Nil), "join")?;
    let glue = match values.get(1) {
        Some(glue) => text(glue, "join")?,
        None => b"",
    };
    evaluator
        .budget
        .spend_bytes(glue.len().saturating_mul(list.items.len()))?;
    let mut out = Vec::new();
    for (at, item) in list.items.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(glue);
        }
        out.extend_from_slice(text(item, "join")?);
    }
    Ok(out.into())
}

/// At most so many parts; none for 0, all for less.
fn split(whole: &str, by: &str, most: Option<i64>, keeps: bool) -> Vec<String> {
    let most = match most {
        Some(0) => return Vec::new(),
        Some(most) => usize::try_from(most).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    if by.is_empty() {
        // Letter by letter, and the rest.
        let mut parts: Vec<String> = whole
            .chars()
            .take(most.saturating_sub(1))
            .map(String::from)
            .collect();
        let taken: usize = parts.iter().map(String::len).sum();
        if taken < whole.len() {
            parts.push(whole[taken..].to_owned());
        }
        return parts;
    }
    let count = whole.matches(by).count() + 1;
    let parts = whole.splitn(most, by).map(str::to_owned);
    let last = count.min(most) - 1;
    parts
        .enumerate()
        .map(|(at, part)| if keeps && at < last { part + by } else { part })
        .collect()
}
