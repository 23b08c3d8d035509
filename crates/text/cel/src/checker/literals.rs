//! Literal arguments that can be seen to fail: durations, timestamps and regular expressions.

use crate::ast::{Expr, ExprKind, Literal};
use crate::library::regex;
use crate::value::{Duration, Timestamp};

pub(super) fn validate(expr: &Expr, errors: &mut Vec<(u32, String)>) {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } => validate(operand, errors),
        ExprKind::Call(call) => {
            call.target.iter().for_each(|target| validate(target, errors));
            call.args.iter().for_each(|arg| validate(arg, errors));
            let Some(Expr {
                kind: ExprKind::Literal(Literal::String(text)),
                position,
                ..
            }) = call.args.last()
            else {
                return;
            };
            let expected = if call.target.is_some() { 1 } else { 2 };
            let valid = match &*call.function {
                "duration" if call.args.len() == 1 => Duration::parse(text).is_some(),
                "timestamp" if call.args.len() == 1 => Timestamp::parse(text).is_some(),
                "matches" if call.args.len() == expected => regex::compile(text).is_ok(),
                _ => true,
            };
            if !valid {
                errors.push((*position, format!("invalid {} argument", call.function)));
            }
        }
        ExprKind::List { elements, .. } => elements.iter().for_each(|element| validate(element, errors)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            validate(&entry.key, errors);
            validate(&entry.value, errors);
        }),
        ExprKind::Struct { fields, .. } => fields.iter().for_each(|(_, value, _)| validate(value, errors)),
        ExprKind::Comprehension(c) => {
            [&c.range, &c.accu_init, &c.condition, &c.step, &c.result]
                .into_iter()
                .for_each(|part| validate(part, errors));
        }
    }
}
