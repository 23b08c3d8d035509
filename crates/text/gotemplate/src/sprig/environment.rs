//! `env` and `expandenv`, which look at the environment of the process. Helm and Argo CD take them away, so they are added
//! only by who asks for them, and it is the host that knows the variables.

use crate::arg;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::text::lossy;
use crate::value::Value;

/// The question that the host is asked, with the name of a variable.
pub const QUESTION: &str = "env";

/// The functions.
pub const TABLE: &[Func] = &[
    Func::new("env", &[Param::Str], |machine, args| machine.ask(QUESTION, args)),
    Func::new("expandenv", &[Param::Str], |machine, args| {
        let text = arg::text(args, 0);
        machine.spend_bytes(text.len())?;
        Ok(expand(machine, &text).into())
    }),
];

fn variable(machine: &Machine<'_>, name: &str) -> String {
    match machine.ask(QUESTION, &[Value::from(name)]) {
        Ok(Value::Str(text)) => lossy(&text).into_owned(),
        _ => String::new(),
    }
}

/// Replaces `$NAME` and `${NAME}`.
fn expand(machine: &Machine<'_>, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some((name, after)) = rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            out.push_str(&variable(machine, name));
            rest = after;
            continue;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        match end {
            0 => out.push('$'),
            end => out.push_str(&variable(machine, &rest[..end])),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
