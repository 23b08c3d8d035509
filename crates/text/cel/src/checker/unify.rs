//! Assignability with type parameters: which types may stand for each other, and what that says about the unknown ones.

use std::cell::Cell;
use std::collections::HashMap;

use crate::types::Type;

/// Types can grow exponentially (`map(T, T)` of itself), so the work is bounded.
const MAX_STEPS: u32 = 5_000_000;

/// What is known of the type parameters.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    known: HashMap<u32, Type>,
    /// What to restore when an attempt fails.
    trail: Vec<(u32, Option<Type>)>,
    steps: Cell<u32>,
}

impl Mapping {
    /// Whether the bound on work was hit; results are not to be trusted then.
    pub(super) fn exhausted(&self) -> bool {
        self.steps.get() >= MAX_STEPS
    }

    fn step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        !self.exhausted()
    }

    /// Whether a value of `from` may be used where `to` is wanted; if so, what that teaches is kept.
    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|mapping| mapping.unify(from, to))
    }

    pub(super) fn assignable_list(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.attempt(|mapping| {
            from.len() == to.len() && from.iter().zip(to).all(|(a, b)| mapping.unify(a, b))
        })
    }

    fn attempt(&mut self, unify: impl FnOnce(&mut Mapping) -> bool) -> bool {
        self.trail.clear();
        if unify(self) {
            return true;
        }
        while let Some((param, previous)) = self.trail.pop() {
            match previous {
                Some(ty) => self.known.insert(param, ty),
                None => self.known.remove(&param),
            };
        }
        false
    }

    fn learn(&mut self, param: u32, ty: Type) {
        let previous = self.known.insert(param, ty);
        self.trail.push((param, previous));
    }

    fn unify(&mut self, a: &Type, b: &Type) -> bool {
        if !self.step() {
            return false;
        }
        if let Type::Param(param) = b {
            match self.stands_for(a, *param) {
                Fit::Yes => return true,
                Fit::Contradiction => return false,
                Fit::Unknown => {}
            }
        }
        if let Type::Param(param) = a {
            return matches!(self.stands_for(b, *param), Fit::Yes);
        }
        match (a, b) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => nullable(other),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.unify(a, b),
            (Type::Map(a), Type::Map(b)) => self.unify(&a.0, &b.0) && self.unify(&a.1, &b.1),
            (Type::TypeOf(_), Type::TypeOf(_)) => true,
            _ => a == b,
        }
    }

    /// Whether `ty` may be what the parameter stands for.
    fn stands_for(&mut self, ty: &Type, param: u32) -> Fit {
        if matches!(ty, Type::Param(other) if *other == param) {
            return Fit::Yes;
        }
        if let Some(known) = self.known.get(&param).cloned() {
            if *ty == known {
                return Fit::Yes;
            }
            if !self.unify(ty, &known) {
                return Fit::Contradiction;
            }
            let general = most_general(ty, &known).clone();
            if !self.occurs(param, &general) {
                self.learn(param, general);
            }
            return Fit::Yes;
        }
        if self.occurs(param, ty) {
            return Fit::Unknown;
        }
        self.learn(param, ty.clone());
        Fit::Yes
    }

    fn occurs(&self, param: u32, ty: &Type) -> bool {
        if !self.step() {
            return true;
        }
        match ty {
            Type::Param(other) if *other == param => true,
            Type::Param(other) => self
                .known
                .get(other)
                .is_some_and(|known| self.occurs(param, known)),
            Type::List(inner) | Type::Optional(inner) | Type::TypeOf(inner) => self.occurs(param, inner),
            Type::Map(pair) => self.occurs(param, &pair.0) || self.occurs(param, &pair.1),
            _ => false,
        }
    }

    /// The type with its parameters replaced by what is known; unknown ones become `dyn` if asked.
    pub(super) fn substitute(&self, ty: &Type, unknown_is_dyn: bool) -> Type {
        if !self.step() {
            return Type::Dyn;
        }
        match ty {
            Type::Param(param) => match self.known.get(param) {
                Some(known) => self.substitute(known, unknown_is_dyn),
                None if unknown_is_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(inner) => Type::list(self.substitute(inner, unknown_is_dyn)),
            Type::Optional(inner) => Type::optional(self.substitute(inner, unknown_is_dyn)),
            Type::TypeOf(inner) => Type::type_of(self.substitute(inner, unknown_is_dyn)),
            Type::Map(pair) => Type::map(
                self.substitute(&pair.0, unknown_is_dyn),
                self.substitute(&pair.1, unknown_is_dyn),
            ),
            other => other.clone(),
        }
    }
}

enum Fit {
    Yes,
    /// The parameter is known to be something else.
    Contradiction,
    /// Nothing is known that helps.
    Unknown,
}

fn nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null | Type::Optional(_) | Type::Object(_) | Type::Opaque(_) | Type::Duration | Type::Timestamp
    )
}

/// The more general of two types that fit each other.
pub(super) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if less_specific(a, b) { a } else { b }
}

fn less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => less_specific(a, b),
        (Type::Map(a), Type::Map(b)) => less_specific(&a.0, &b.0) && less_specific(&a.1, &b.1),
        (Type::TypeOf(_), Type::TypeOf(_)) => true,
        _ => a == b,
    }
}
