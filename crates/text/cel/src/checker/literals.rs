//! What can be seen to be wrong in literals: durations, timestamps, regular expressions, format strings, and lists and
//! maps of mixed types.

use crate::ast::{Call, Entry, Expr, ExprKind, Literal};
use crate::library::{format_string, regex};
use crate::types::Type;
use crate::value::{Duration, Timestamp};

type Errors = Vec<(u32, String)>;

/// `mixed` allows lists and maps of several types everywhere; the arguments of `format` may always be mixed.
pub(super) fn validate(root: &Expr, types: &[Type], mixed: bool, errors: &mut Errors) {
    Validator { types, errors }.visit(root, mixed);
}

struct Validator<'c> {
    types: &'c [Type],
    errors: &'c mut Errors,
}

impl Validator<'_> {
    fn visit(&mut self, expr: &Expr, mixed: bool) {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select { operand, .. } => self.visit(operand, mixed),
            ExprKind::Call(call) => {
                let mixed = mixed || &*call.function == "format";
                if let Some(target) = &call.target {
                    self.visit(target, mixed);
                }
                for arg in &call.args {
                    self.visit(arg, mixed);
                }
                self.argument(call);
                self.format(expr, call);
            }
            ExprKind::List { elements, optional } => {
                if !mixed {
                    self.same_types(elements, optional);
                }
                for element in elements {
                    self.visit(element, mixed);
                }
            }
            ExprKind::Map(entries) => self.map(entries, mixed),
            ExprKind::Struct { fields, .. } => {
                for (_, value, _) in fields {
                    self.visit(value, mixed);
                }
            }
            ExprKind::Comprehension(c) => {
                let parts = [&c.range, &c.accu_init, &c.condition, &c.step, &c.result];
                for part in parts {
                    self.visit(part, mixed);
                }
            }
        }
    }

    fn argument(&mut self, call: &Call) {
        let Some(Expr {
            kind: ExprKind::Literal(Literal::String(text)),
            position,
            ..
        }) = call.args.last()
        else {
            return;
        };
        let pattern_at = if call.target.is_some() { 1 } else { 2 };
        let valid = match &*call.function {
            "duration" if call.args.len() == 1 => Duration::parse(text).is_some(),
            "timestamp" if call.args.len() == 1 => Timestamp::parse(text).is_some(),
            "matches" if call.args.len() == pattern_at => regex::compile(text).is_ok(),
            _ => true,
        };
        if !valid {
            self.errors
                .push((*position, format!("invalid {} argument", call.function)));
        }
    }

    /// A literal format string with a literal list of arguments is checked against their types.
    fn format(&mut self, expr: &Expr, call: &Call) {
        let Some(target) = &call.target else { return };
        let (ExprKind::Literal(Literal::String(template)), "format") = (&target.kind, &*call.function) else {
            return;
        };
        let [
            Expr {
                kind: ExprKind::List { elements, .. },
                ..
            },
        ] = &call.args[..]
        else {
            return;
        };
        let mut rest = &**template;
        let mut used = 0;
        loop {
            let verb = match format_string::next_clause(&mut rest, &mut String::new()) {
                Ok(Some((_, verb))) => verb,
                Ok(None) => break,
                Err(error) => return self.errors.push((expr.position, error.to_string())),
            };
            let Some(element) = elements.get(used) else {
                return self
                    .errors
                    .push((expr.position, format!("index {used} out of range")));
            };
            used += 1;
            if let Err((position, message)) = self.clause(verb, element) {
                let position = position.unwrap_or(expr.position);
                return self.errors.push((position, message));
            }
        }
        if elements.len() > used {
            let given = elements.len();
            let message =
                format!("too many arguments supplied to string.format (expected {used}, got {given})");
            self.errors.push((expr.position, message));
        }
    }

    fn clause(&self, verb: char, element: &Expr) -> Result<(), (Option<u32>, String)> {
        let ty = &self.types[element.id as usize];
        let message = format_string::refusal(verb, ty.runtime_name())
            .ok_or_else(|| (None, format_string::unknown_clause(verb)))?;
        let valid = ty.is_dyn()
            || match verb {
                's' => printable(ty),
                'd' | 'o' => matches!(ty, Type::Int | Type::Uint),
                'f' | 'e' => matches!(ty, Type::Double | Type::String),
                'b' => matches!(ty, Type::Int | Type::Uint | Type::Bool),
                _ => matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
            };
        if !valid {
            return Err((Some(element.position), message));
        }
        match (&element.kind, verb) {
            (ExprKind::List { elements, .. }, 's') => {
                elements.iter().try_for_each(|inner| self.clause('s', inner))
            }
            (ExprKind::Map(entries), 's') => entries.iter().try_for_each(|entry| {
                self.clause('s', &entry.key)?;
                self.clause('s', &entry.value)
            }),
            _ => Ok(()),
        }
    }

    /// Elements must have one type; of a list only the first that differs is reported.
    fn same_types(&mut self, elements: &[Expr], optional: &[bool]) {
        let type_of = |index: usize| {
            let ty = elements
                .get(index)
                .map(|element| &self.types[element.id as usize]);
            unwrap(ty, optional.get(index).copied().unwrap_or(false))
        };
        let Some(first) = type_of(0) else { return };
        let other = (1..elements.len())
            .find_map(|index| Some((index, type_of(index)?)).filter(|(_, ty)| *ty != first));
        if let Some((index, ty)) = other {
            let message = format!("expected type '{first}' but found '{ty}'");
            self.errors.push((elements[index].position, message));
        }
    }

    fn map(&mut self, entries: &[Entry], mixed: bool) {
        for entry in entries {
            self.visit(&entry.key, mixed);
            self.visit(&entry.value, mixed);
        }
        let [first, others @ ..] = entries else { return };
        if mixed {
            return;
        }
        for entry in others {
            for (expected, found, optional) in [
                (&first.key, &entry.key, (false, false)),
                (&first.value, &entry.value, (first.optional, entry.optional)),
            ] {
                let expected = unwrap(self.types.get(expected.id as usize), optional.0);
                let ty = unwrap(self.types.get(found.id as usize), optional.1);
                if let (Some(expected), Some(ty)) = (expected, ty)
                    && expected != ty
                {
                    self.errors.push((
                        found.position,
                        format!("expected type '{expected}' but found '{ty}'"),
                    ));
                }
            }
        }
    }
}

fn unwrap(ty: Option<&Type>, optional: bool) -> Option<Type> {
    match ty? {
        Type::Optional(inner) if optional => Some((**inner).clone()),
        other => Some(other.clone()),
    }
}

fn printable(ty: &Type) -> bool {
    !matches!(ty, Type::Optional(_) | Type::Opaque(_) | Type::Object(_))
}
