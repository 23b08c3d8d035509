//! Copying expressions, for macros that use an argument twice: every copy gets ids of its own.

use std::sync::Arc;

use super::{Parse, Parser};
use crate::ast::{Call, Comprehension, Entry, Expr, ExprKind};

impl Parser<'_> {
    /// A copy with ids of its own, for macros that use an argument twice.
    pub(super) fn copy(&mut self, expr: &Expr) -> Parse<Expr> {
        let kind = match &expr.kind {
            kind @ (ExprKind::Literal(_) | ExprKind::Ident(_)) => kind.clone(),
            ExprKind::Select { operand, field, test } => ExprKind::Select {
                operand: Box::new(self.copy(operand)?),
                field: field.clone(),
                test: *test,
            },
            ExprKind::Call(call) => ExprKind::Call(Call {
                function: call.function.clone(),
                target: call
                    .target
                    .as_ref()
                    .map(|target| self.copy(target).map(Box::new))
                    .transpose()?,
                args: call.args.iter().map(|arg| self.copy(arg)).collect::<Parse<_>>()?,
            }),
            ExprKind::List { elements, optional } => ExprKind::List {
                elements: elements
                    .iter()
                    .map(|element| self.copy(element))
                    .collect::<Parse<_>>()?,
                optional: optional.clone(),
            },
            ExprKind::Map(entries) => {
                let copy = |p: &mut Self, e: &Entry| -> Parse<Entry> {
                    Ok(Entry {
                        key: p.copy(&e.key)?,
                        value: p.copy(&e.value)?,
                        optional: e.optional,
                    })
                };
                ExprKind::Map(
                    entries
                        .iter()
                        .map(|entry| copy(self, entry))
                        .collect::<Parse<_>>()?,
                )
            }
            ExprKind::Struct { type_name, fields } => {
                let copy = |p: &mut Self, f: &(Arc<str>, Expr, bool)| Ok((f.0.clone(), p.copy(&f.1)?, f.2));
                let fields = fields
                    .iter()
                    .map(|field| copy(self, field))
                    .collect::<Parse<_>>()?;
                ExprKind::Struct {
                    type_name: type_name.clone(),
                    fields,
                }
            }
            ExprKind::Comprehension(c) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&c.range)?,
                iter_var: c.iter_var.clone(),
                iter_var2: c.iter_var2.clone(),
                accu_var: c.accu_var.clone(),
                accu_init: self.copy(&c.accu_init)?,
                condition: self.copy(&c.condition)?,
                step: self.copy(&c.step)?,
                result: self.copy(&c.result)?,
            })),
        };
        self.node(expr.position, kind)
    }
}
