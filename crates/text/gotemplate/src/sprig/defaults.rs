//! Emptiness, choices and types.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::sprig::equal::deep_equal;
use crate::value::Value;

use Param::{Any, Bool, Str};

pub(super) const TABLE: &[Func] = &[
    Func::variadic("default", &[Any, Any], |_, args| {
        let given = args.get(1).filter(|given| !is_empty(given));
        Ok(given.unwrap_or(arg::any(args, 0)).clone())
    }),
    Func::new("empty", &[Any], |_, args| {
        Ok(Value::Bool(is_empty(arg::any(args, 0))))
    }),
    Func::variadic("coalesce", &[Any], |_, args| {
        Ok(args
            .iter()
            .find(|value| !is_empty(value))
            .cloned()
            .unwrap_or(Value::Nil))
    }),
    Func::variadic("all", &[Any], |_, args| {
        Ok(Value::Bool(!args.iter().any(is_empty)))
    }),
    Func::variadic("any", &[Any], |_, args| {
        Ok(Value::Bool(!args.iter().all(is_empty)))
    }),
    Func::new("ternary", &[Any, Any, Bool], |_, args| {
        Ok(arg::any(args, usize::from(!arg::boolean(args, 2))).clone())
    }),
    Func::new("typeOf", &[Any], |_, args| Ok(type_of(arg::any(args, 0)).into())),
    Func::new("typeIs", &[Str, Any], |_, args| {
        Ok(Value::Bool(arg::text(args, 0) == type_of(arg::any(args, 1))))
    }),
    Func::new("typeIsLike", &[Str, Any], |_, args| {
        let (target, found) = (arg::text(args, 0), type_of(arg::any(args, 1)));
        Ok(Value::Bool(
            target == found || found.strip_prefix('*') == Some(&target),
        ))
    }),
    Func::new("kindOf", &[Any], |_, args| Ok(arg::any(args, 0).kind().into())),
    Func::new("kindIs", &[Str, Any], |_, args| {
        Ok(Value::Bool(arg::text(args, 0) == arg::any(args, 1).kind()))
    }),
    Func::new("deepEqual", &[Any, Any], |_, args| {
        Ok(Value::Bool(deep_equal(arg::any(args, 0), arg::any(args, 1))?))
    }),
    Func::new("fail", &[Str], |_, args| Err(Fault::new(arg::text(args, 0)))),
    // Without a network there is no answer, and Helm does not ask either unless it is told to.
    Func::new("getHostByName", &[Str], |_, _| Ok("".into())),
];

/// sprig's `empty`: what has no content.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Struct(_) | Value::Time(_) => false,
        other => !other.truth(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Invalid | Value::Nil => "<nil>",
        other => other.type_name(),
    }
}
