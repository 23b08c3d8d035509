//! Type checking: finds the type of every expression, the overloads of every call, and mistakes before anything runs.

mod literals;
mod unify;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Call, Comprehension, Entry, Expr, ExprId, ExprKind, Literal};
use crate::decl::DeclType;
use crate::functions::{Library, Overload, REGISTRY};
use crate::source::{CompileError, error_at};
use crate::types::{OpaqueType, Type};
use unify::{Mapping, most_general};

/// More errors than this help nobody.
const MAX_ERRORS: usize = 100;

/// A variable of the environment.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) ty: Type,
    /// Size bounds for the cost estimate.
    pub(crate) decl: Option<Arc<DeclType>>,
}

/// What the checker needs to know beside the expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) variables: HashMap<Arc<str>, Variable>,
    pub(crate) libraries: Vec<Library>,
    /// Lists and maps with elements of several types are `list(dyn)`; Kubernetes refuses them.
    pub(crate) mixed_literals: bool,
}

/// What a name or a call was found to mean.
#[derive(Clone)]
pub(crate) enum Reference {
    /// A variable of the environment, perhaps with dots in its name.
    Variable(Arc<str>),
    /// A variable of a loop.
    Local,
    /// The name of a type.
    TypeName(&'static str),
    /// The overloads that the arguments may fit.
    Call {
        function: Arc<str>,
        overloads: Vec<&'static Overload>,
        namespaced: bool,
    },
}

/// The result of checking.
pub(crate) struct Checked {
    pub(crate) types: Vec<Type>,
    pub(crate) references: HashMap<ExprId, Reference>,
}

pub(crate) fn check(
    source: &str,
    root: &Expr,
    ids: u32,
    env: &Declarations,
) -> Result<Checked, Vec<CompileError>> {
    let mut checker = Checker {
        env,
        scopes: Vec::new(),
        mapping: Mapping::default(),
        next_param: FIRST_FREE_PARAM,
        types: vec![Type::Dyn; ids as usize],
        references: HashMap::new(),
        errors: Vec::new(),
    };
    checker.check(root);
    if checker.mapping.exhausted() {
        checker.errors.push((
            root.position,
            "expression is too complex to type-check".to_owned(),
        ));
    }
    let Checker {
        mapping,
        mut types,
        references,
        mut errors,
        ..
    } = checker;
    if errors.is_empty() {
        types.iter_mut().for_each(|ty| *ty = mapping.substitute(ty, true));
        literals::validate(root, &types, env.mixed_literals, &mut errors);
    }
    if errors.is_empty() {
        return Ok(Checked { types, references });
    }
    errors.sort_by_key(|(position, _)| *position);
    errors.truncate(MAX_ERRORS);
    Err(errors
        .into_iter()
        .map(|(position, message)| error_at(source, position, message))
        .collect())
}

/// Parameters of signatures are letters; those that checking invents are numbered from here.
const FIRST_FREE_PARAM: u32 = 32;

struct Checker<'e> {
    env: &'e Declarations,
    scopes: Vec<(Arc<str>, Type)>,
    mapping: Mapping,
    next_param: u32,
    types: Vec<Type>,
    references: HashMap<ExprId, Reference>,
    errors: Vec<(u32, String)>,
}

/// The types that an expression can name.
fn named_type(name: &str) -> Option<(&'static str, Type)> {
    Some(match name {
        "bool" => ("bool", Type::Bool),
        "bytes" => ("bytes", Type::Bytes),
        "double" => ("double", Type::Double),
        "int" => ("int", Type::Int),
        "uint" => ("uint", Type::Uint),
        "string" => ("string", Type::String),
        "null_type" => ("null_type", Type::Null),
        "list" => ("list", Type::list(Type::Dyn)),
        "map" => ("map", Type::map(Type::Dyn, Type::Dyn)),
        "type" => ("type", Type::type_of(Type::Dyn)),
        "optional_type" => ("optional_type", Type::optional(Type::Dyn)),
        "google.protobuf.Duration" => ("google.protobuf.Duration", Type::Duration),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", Type::Timestamp),
        _ => {
            let opaque = OpaqueType::ALL.into_iter().find(|opaque| opaque.name() == name)?;
            (opaque.name(), Type::Opaque(opaque))
        }
    })
}

impl Checker<'_> {
    fn error(&mut self, position: u32, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push((position, message.into()));
        }
    }

    fn fresh(&mut self) -> Type {
        self.next_param += 1;
        Type::Param(self.next_param - 1)
    }

    fn set(&mut self, expr: &Expr, ty: Type) {
        self.types[expr.id as usize] = ty;
    }

    fn get(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    fn shown(&self, ty: &Type) -> Type {
        self.mapping.substitute(ty, true)
    }

    fn check(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Literal(literal) => self.set(expr, literal_type(literal)),
            ExprKind::Ident(name) => self.check_ident(expr, name),
            ExprKind::Select { operand, field, test } => self.check_select(expr, operand, field, *test),
            ExprKind::Call(call) => self.check_call(expr, call),
            ExprKind::List { elements, optional } => self.check_list(expr, elements, optional),
            ExprKind::Map(entries) => self.check_map(expr, entries),
            ExprKind::Struct { type_name, fields } => {
                fields.iter().for_each(|(_, value, _)| self.check(value));
                self.error(
                    expr.position,
                    format!("undeclared reference to '{type_name}' (in container '')"),
                );
                self.set(expr, Type::Error);
            }
            ExprKind::Comprehension(comprehension) => self.check_comprehension(expr, comprehension),
        }
    }

    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let global = name.strip_prefix('.');
        if global.is_none()
            && let Some((_, ty)) = self.scopes.iter().rev().find(|(local, _)| &**local == name)
        {
            return Some((ty.clone(), Reference::Local));
        }
        let name = global.unwrap_or(name);
        if let Some((key, variable)) = self.env.variables.get_key_value(name) {
            return Some((variable.ty.clone(), Reference::Variable(key.clone())));
        }
        let (name, ty) = named_type(name)?;
        Some((Type::type_of(ty), Reference::TypeName(name)))
    }

    fn check_ident(&mut self, expr: &Expr, name: &str) {
        match self.lookup(name) {
            Some((ty, reference)) => {
                self.references.insert(expr.id, reference);
                self.set(expr, ty);
            }
            None => {
                self.error(
                    expr.position,
                    format!("undeclared reference to '{name}' (in container '')"),
                );
                self.set(expr, Type::Error);
            }
        }
    }

    /// Whether a dotted name starts with a loop variable, which hides everything of that name.
    fn starts_local(&self, name: &str) -> bool {
        let first = name.split('.').next().unwrap_or(name);
        self.scopes.iter().any(|(local, _)| &**local == first)
    }

    fn check_select(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) {
        if !test
            && let Some(name) = expr.qualified_name()
            && !self.starts_local(&name)
            && let Some((ty, reference)) = self.lookup(&name)
        {
            self.references.insert(expr.id, reference);
            self.set(expr, ty);
            return;
        }
        let result = self.field_type(expr, operand, field, false);
        self.set(expr, if test { Type::Bool } else { result });
    }

    fn field_type(&mut self, expr: &Expr, operand: &Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.mapping.substitute(self.get(operand), false);
        let (target, unwrapped) = match &operand {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let result = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(field) => field.ty.clone(),
                None => {
                    self.error(expr.position, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Param(_) => {
                self.mapping.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.error(
                    expr.position,
                    format!("type '{other}' does not support field selection"),
                );
                Type::Error
            }
        };
        if unwrapped || optional {
            Type::optional(result)
        } else {
            result
        }
    }

    fn check_call(&mut self, expr: &Expr, call: &Call) {
        if &*call.function == "_?._"
            && let [
                operand,
                Expr {
                    kind: ExprKind::Literal(Literal::String(field)),
                    ..
                },
            ] = &call.args[..]
        {
            let result = self.field_type(expr, operand, field, true);
            self.set(expr, result);
            return;
        }
        for arg in &call.args {
            self.check(arg);
        }
        if matches!(&*call.function, "_&&_" | "_||_") {
            self.check_logical(expr, call);
            return;
        }
        let Some(target) = &call.target else {
            let name = call.function.strip_prefix('.').unwrap_or(&call.function);
            self.resolve(expr, name, None, &call.args, false);
            return;
        };
        // `a.b.c()` may be the function `a.b.c`, or the method `c` of `a.b`.
        if let Some(prefix) = target.qualified_name()
            && !self.starts_local(&prefix)
        {
            let name = format!(
                "{}.{}",
                prefix.strip_prefix('.').unwrap_or(&prefix),
                call.function
            );
            if self.overloads(&name).next().is_some() {
                self.resolve(expr, &name, None, &call.args, true);
                return;
            }
        }
        self.check(target);
        self.resolve(expr, &call.function, Some(target), &call.args, false);
    }

    fn overloads(&self, name: &str) -> impl Iterator<Item = &'static Overload> + use<> {
        let libraries = self.env.libraries.clone();
        let all = REGISTRY.get(name).unwrap_or_default();
        all.iter().filter(move |overload| {
            overload
                .library
                .is_none_or(|library| libraries.contains(&library))
        })
    }

    fn check_logical(&mut self, expr: &Expr, call: &Call) {
        let mut valid = true;
        for arg in &call.args {
            let ty = self.get(arg).clone();
            if !self.mapping.assignable(&ty, &Type::Bool) {
                valid = false;
                self.mismatch(arg, &Type::Bool, &ty);
            }
        }
        self.set(expr, if valid { Type::Bool } else { Type::Error });
    }

    fn resolve(&mut self, expr: &Expr, name: &str, target: Option<&Expr>, args: &[Expr], namespaced: bool) {
        let mut known = false;
        let types: Vec<Type> = target
            .into_iter()
            .chain(args)
            .map(|arg| self.get(arg).clone())
            .collect();
        let mut matching: Vec<&'static Overload> = Vec::new();
        let mut result: Option<Type> = None;
        for overload in self.overloads(name) {
            known = true;
            if overload.member != target.is_some() || overload.params.len() != types.len() {
                continue;
            }
            let base = self.next_param;
            self.next_param += FIRST_FREE_PARAM;
            let params: Vec<Type> = overload
                .params
                .iter()
                .map(|param| instantiate(param, base))
                .collect();
            if !self.mapping.assignable_list(&types, &params) {
                continue;
            }
            matching.push(overload);
            let this = self
                .mapping
                .substitute(&instantiate(&overload.result, base), false);
            result = Some(match result {
                None => this,
                Some(first) if first.is_dyn() || first == this => first,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let message = if known {
                let shown: Vec<String> = types.iter().map(|ty| self.shown(ty).to_string()).collect();
                let signature = match target {
                    Some(_) => format!("{}.({})", shown[0], shown[1..].join(", ")),
                    None => format!("({})", shown.join(", ")),
                };
                format!("found no matching overload for '{name}' applied to '{signature}'")
            } else {
                format!("undeclared reference to '{name}' (in container '')")
            };
            self.error(expr.position, message);
            self.set(expr, Type::Error);
            return;
        };
        let reference = Reference::Call {
            function: name.into(),
            overloads: matching,
            namespaced,
        };
        self.references.insert(expr.id, reference);
        self.set(expr, result);
    }

    /// The element type of a literal so far, joined with that of its next element. Whether the mixture is allowed is
    /// decided later, because the arguments of `format` may be mixed.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.mapping.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        Type::Dyn
    }

    fn mismatch(&mut self, at: &Expr, expected: &Type, found: &Type) {
        let (expected, found) = (self.shown(expected), self.shown(found));
        self.error(
            at.position,
            format!("expected type '{expected}' but found '{found}'"),
        );
    }

    /// The type inside the optional that a `?` entry must be.
    fn unwrap_optional(&mut self, at: &Expr, ty: &Type) -> Type {
        match self.mapping.substitute(ty, false) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.mismatch(at, &Type::optional(other.clone()), &other);
                Type::Error
            }
        }
    }

    fn check_list(&mut self, expr: &Expr, elements: &[Expr], optional: &[bool]) {
        let mut element_type = None;
        for (index, element) in elements.iter().enumerate() {
            self.check(element);
            let mut ty = self.get(element).clone();
            if optional.get(index).copied().unwrap_or(false) {
                ty = self.unwrap_optional(element, &ty);
            }
            element_type = Some(self.join(element_type, ty));
        }
        let element_type = element_type.unwrap_or_else(|| self.fresh());
        self.set(expr, Type::list(element_type));
    }

    fn check_map(&mut self, expr: &Expr, entries: &[Entry]) {
        let (mut key_type, mut value_type) = (None, None);
        for entry in entries {
            self.check(&entry.key);
            let ty = self.get(&entry.key).clone();
            key_type = Some(self.join(key_type, ty));
            self.check(&entry.value);
            let mut ty = self.get(&entry.value).clone();
            if entry.optional {
                ty = self.unwrap_optional(&entry.value, &ty);
            }
            value_type = Some(self.join(value_type, ty));
        }
        let key_type = key_type.unwrap_or_else(|| self.fresh());
        let value_type = value_type.unwrap_or_else(|| self.fresh());
        self.set(expr, Type::map(key_type, value_type));
    }

    fn check_comprehension(&mut self, expr: &Expr, comprehension: &Comprehension) {
        let Comprehension {
            range,
            iter_var,
            iter_var2,
            accu_var,
            accu_init,
            condition,
            step,
            result,
        } = comprehension;
        self.check(range);
        self.check(accu_init);
        let accu_type = self.get(accu_init).clone();
        let range_type = self.mapping.substitute(self.get(range), false);
        let two = iter_var2.is_some();
        let (first, second) = match &range_type {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assignable(&Type::Dyn, &range_type);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.error(range.position, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scopes.len();
        self.scopes.push((accu_var.clone(), accu_type.clone()));
        self.scopes.push((iter_var.clone(), first));
        if let Some(name) = iter_var2 {
            self.scopes.push((name.clone(), second));
        }
        self.check(condition);
        self.assert_type(condition, &Type::Bool);
        self.check(step);
        self.assert_type(step, &accu_type);
        self.scopes.truncate(depth + 1);
        self.check(result);
        self.scopes.truncate(depth);
        let result = self.mapping.substitute(self.get(result), false);
        self.set(expr, result);
    }

    fn assert_type(&mut self, expr: &Expr, expected: &Type) {
        let found = self.get(expr).clone();
        if !self.mapping.assignable(expected, &found) {
            self.mismatch(expr, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Gives the parameters of a signature fresh names.
fn instantiate(ty: &Type, base: u32) -> Type {
    match ty {
        Type::Param(index) => Type::Param(base + index),
        Type::List(element) => Type::list(instantiate(element, base)),
        Type::Map(pair) => Type::map(instantiate(&pair.0, base), instantiate(&pair.1, base)),
        Type::Optional(inner) => Type::optional(instantiate(inner, base)),
        Type::TypeOf(inner) => Type::type_of(instantiate(inner, base)),
        other => other.clone(),
    }
}
