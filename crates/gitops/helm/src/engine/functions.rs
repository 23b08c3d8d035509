//! The functions that Helm adds to sprig's.

use std::sync::{Arc, LazyLock};

use fairway_text_gotemplate::text::{lossy, quote};
use fairway_text_gotemplate::{
    Fault, Func, Functions, Machine, Param, TextFault, Value, arg, formats, sprig,
};

use Param::{Any, Str};

type Answer = Result<Value, Fault>;

/// The question that `lookup` asks.
pub(super) const LOOKUP: &str = "lookup";
/// What is between these was said by the chart's author to the user.
pub(super) const WARNING_START: &str = "HELM_ERR_START";
pub(super) const WARNING_END: &str = "HELM_ERR_END";

/// Every function that a chart may call.
pub(super) fn table() -> &'static Functions {
    static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
        let mut functions = Functions::builtin();
        sprig::add(&mut functions);
        functions.add(formats::TABLE);
        functions.add(&[
            Func::new("include", &[Str, Any], include),
            Func::new("tpl", &[Str, Any], tpl),
            Func::new("required", &[Str, Any], required),
            Func::new("fail", &[Str], |_, args| Err(warning(&arg::text(args, 0)))),
            Func::new("lookup", &[Str, Str, Str, Str], |machine, args| {
                machine.ask(LOOKUP, args)
            }),
        ]);
        functions
    });
    &FUNCTIONS
}

fn warning(message: &str) -> Fault {
    Fault::new(format!("{WARNING_START}{message}{WARNING_END}"))
}

fn include(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    machine.include(&arg::text(args, 0), arg::any(args, 1))
}

fn required(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let value = arg::any(args, 1);
    let missing = match value {
        Value::Str(text) => text.is_empty(),
        other => other.is_nil(),
    };
    match missing {
        true => Err(warning(&arg::text(args, 0))),
        false => Ok(value.clone()),
    }
}

/// A text without what Go prints for a missing value.
pub(super) fn without_no_value(text: String) -> String {
    match memchr::memmem::find(text.as_bytes(), b"<no value>").is_some() {
        true => text.replace("<no value>", ""),
        false => text,
    }
}

fn tpl(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    static NAME: LazyLock<Arc<str>> = LazyLock::new(|| "gotpl".into());
    let text = arg::shared(args, 0);
    // Many values are plain text, which is its own result.
    if memchr::memmem::find(&text, b"{{").is_none() {
        return Ok(Value::from(without_no_value(lossy(&text).into_owned())));
    }
    let printed = machine
        .execute_text(&NAME, &text, arg::any(args, 1))
        .map_err(|fault| match fault {
            TextFault::Parse(error) => Fault::new(format!("cannot parse template {}: {error}", quote(&text))),
            TextFault::Exec(limit @ Fault::Limit(_)) => limit,
            TextFault::Exec(fault) => Fault::new(format!(
                "error during tpl function execution for {}: {fault}",
                quote(&text)
            )),
        })?;
    Ok(match memchr::memmem::find(&printed, b"<no value>").is_some() {
        true => without_no_value(lossy(&printed).into_owned()).into(),
        false => printed.into(),
    })
}
