//! Estimating costs before anything runs, from the size bounds of schemas.
//!
//! The estimate decides which rules a CRD may have, so it follows upstream's arithmetic step by step, including where
//! that is coarse: an integer field counts as of size zero, a map's keys as well.

mod calls;
mod range;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Comprehension, Entry, Expr, ExprId, ExprKind, Literal};
use crate::checker::{Checked, Declarations, Reference};
use crate::cost::{LIST_CREATE, MAP_CREATE, STRUCT_CREATE};
use crate::decl::DeclType;
use crate::types::Type;

pub use range::CostEstimate;
use range::Range;

pub(crate) fn estimate(root: &Expr, checked: &Checked, declarations: &Declarations) -> CostEstimate {
    let mut estimator = Estimator {
        checked,
        declarations,
        root: declared(declarations, "self"),
        places: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    let cost = estimator.cost(root);
    CostEstimate {
        min: cost.min,
        max: cost.max,
    }
}

/// Where in a schema the value of an expression lies.
#[derive(Clone, Copy)]
enum Place<'d> {
    Declared(&'d DeclType),
    /// The keys of a map, which have no bound of their own.
    Keys,
    /// Something that no variable leads to.
    Nowhere,
    /// A path from a variable that its schema does not have.
    Unknown,
}

impl<'d> Place<'d> {
    fn size(self) -> Option<Range> {
        match self {
            Place::Declared(decl) => Some(Range {
                min: 0,
                max: decl.max_elements(),
            }),
            Place::Keys => Some(Range::fixed(0)),
            Place::Nowhere | Place::Unknown => None,
        }
    }

    /// Upstream drops the first part of a path, taking it for the variable's name. A path that starts at no variable
    /// loses its first step instead and so means the root: its size bounds what comes out of literals and calls.
    fn or_root(self, root: Place<'d>, step: impl FnOnce(&'d DeclType) -> Option<Place<'d>>) -> Place<'d> {
        match self {
            Place::Declared(decl) => step(decl).unwrap_or(Place::Unknown),
            Place::Nowhere => root,
            Place::Keys | Place::Unknown => Place::Unknown,
        }
    }

    fn elements(self, root: Place<'d>) -> Place<'d> {
        self.or_root(root, |decl| {
            Some(Place::Declared(decl.items().or(decl.additional_properties())?))
        })
    }

    fn keys(self, root: Place<'d>) -> Place<'d> {
        self.or_root(root, |decl| decl.additional_properties().map(|_| Place::Keys))
    }

    fn field(self, root: Place<'d>, identifier: &str) -> Place<'d> {
        self.or_root(root, |decl| {
            let name = crate::escaping::unescape(identifier)?;
            Some(Place::Declared(decl.field(&name)?))
        })
    }
}

/// The sizes of a container's keys and values.
#[derive(Clone, Copy)]
struct EntrySize {
    list: bool,
    key: Range,
    value: Range,
}

impl EntrySize {
    fn union(self, other: EntrySize) -> EntrySize {
        EntrySize {
            list: self.list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

struct Local<'d> {
    name: Arc<str>,
    place: Place<'d>,
    size: Option<Range>,
    entry: Option<EntrySize>,
}

struct Estimator<'c> {
    checked: &'c Checked,
    declarations: &'c Declarations,
    /// The variable that upstream's estimator knows.
    root: Place<'c>,
    places: HashMap<ExprId, Place<'c>>,
    sizes: HashMap<ExprId, Range>,
    entries: HashMap<ExprId, EntrySize>,
    locals: Vec<Local<'c>>,
}

impl<'c> Estimator<'c> {
    fn cost(&mut self, expr: &Expr) -> Range {
        match &expr.kind {
            ExprKind::Literal(_) => Range::fixed(0),
            ExprKind::Ident(name) => {
                let place = self.ident_place(expr, name);
                self.places.insert(expr.id, place);
                Range::fixed(1)
            }
            ExprKind::Select { operand, field, test } => self.select_cost(expr, operand, field, *test),
            ExprKind::Call(call) => self.call_cost(expr, call),
            ExprKind::List { elements, .. } => self.list_cost(expr, elements),
            ExprKind::Map(entries) => self.map_cost(expr, entries),
            ExprKind::Struct { fields, .. } => {
                let mut cost = Range::fixed(STRUCT_CREATE);
                for (_, value, _) in fields {
                    cost = cost.add(self.cost(value));
                }
                cost
            }
            ExprKind::Comprehension(comprehension) => self.comprehension_cost(expr, comprehension),
        }
    }

    fn local(&self, name: &str) -> Option<&Local<'c>> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn ident_place(&self, expr: &Expr, name: &str) -> Place<'c> {
        if let Some(local) = self.local(name) {
            return local.place;
        }
        match self.checked.references.get(&expr.id) {
            Some(Reference::Variable(name)) => declared(self.declarations, name),
            Some(Reference::TypeName(_)) => self.root,
            _ => Place::Nowhere,
        }
    }

    fn place(&self, expr: &Expr) -> Place<'c> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.place;
        }
        self.places.get(&expr.id).copied().unwrap_or(Place::Nowhere)
    }

    fn type_of(&self, expr: &Expr) -> &'c Type {
        &self.checked.types[expr.id as usize]
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        let literal = match &expr.kind {
            ExprKind::Literal(Literal::String(text)) => Some(text.chars().count()),
            ExprKind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            ExprKind::Literal(_) => Some(1),
            ExprKind::List { elements, .. } => Some(elements.len()),
            ExprKind::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = literal {
            return Some(Range::fixed(size as u64));
        }
        if let Some(size) = self.place(expr).size() {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.type_of(expr)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn entry(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    fn select_cost(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) -> Range {
        if !test && self.checked.references.contains_key(&expr.id) {
            let place = self.ident_place(expr, "");
            self.places.insert(expr.id, place);
            return Range::fixed(1);
        }
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        let place = self.place(operand).field(self.root, field);
        self.places.insert(expr.id, place);
        match self.type_of(operand) {
            Type::Map(_) | Type::Object(_) | Type::Param(_) => cost.add(Range::fixed(1)),
            _ => cost,
        }
    }

    fn list_cost(&mut self, expr: &Expr, elements: &[Expr]) -> Range {
        let mut cost = Range::fixed(LIST_CREATE);
        let mut value = Range::EMPTY;
        if elements.is_empty() {
            value.min = 0;
        }
        for element in elements {
            cost = cost.add(self.cost(element));
            value = value.union(self.size_or_unknown(element));
        }
        self.entries.insert(
            expr.id,
            EntrySize {
                list: true,
                key: Range::fixed(1),
                value,
            },
        );
        cost
    }

    fn map_cost(&mut self, expr: &Expr, entries: &[Entry]) -> Range {
        let mut cost = Range::fixed(MAP_CREATE);
        let (mut key, mut value) = (Range::EMPTY, Range::EMPTY);
        if entries.is_empty() {
            (key.min, value.min) = (0, 0);
        }
        for entry in entries {
            cost = cost.add(self.cost(&entry.key)).add(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(
            expr.id,
            EntrySize {
                list: false,
                key,
                value,
            },
        );
        cost
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entry) = self.entry(from) {
            self.entries.insert(to.id, entry);
        }
    }

    fn push_value(&mut self, name: &Arc<str>, expr: &Expr) {
        let local = Local {
            name: name.clone(),
            place: self.place(expr),
            size: self.size(expr),
            entry: self.entry(expr),
        };
        self.locals.push(local);
    }

    /// Declares a loop variable: the keys (or indexes) of the range, or its values.
    fn push_iteration(&mut self, name: &Arc<str>, range: &Expr, keys: bool) {
        let entry = self.entry(range);
        let list = entry.map_or(matches!(self.type_of(range), Type::List(_)), |entry| entry.list);
        let place = self.place(range);
        let (place, size) = match (keys, list) {
            (true, true) => (place.or_root(self.root, |_| None), entry.map(|entry| entry.key)),
            (true, false) => (place.keys(self.root), entry.map(|entry| entry.key)),
            (false, _) => (place.elements(self.root), entry.map(|entry| entry.value)),
        };
        self.locals.push(Local {
            name: name.clone(),
            place,
            size,
            entry: None,
        });
    }

    fn comprehension_cost(&mut self, expr: &Expr, comprehension: &Comprehension) -> Range {
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
        let depth = self.locals.len();
        let mut cost = self.cost(range).add(self.cost(accu_init));
        self.push_value(accu_var, accu_init);
        if comprehension.is_bind() {
            cost = cost.add(self.cost(result));
            self.locals.truncate(depth);
            self.copy_sizes(expr, result);
            return cost;
        }
        match iter_var2 {
            Some(second) => {
                self.push_iteration(iter_var, range, true);
                self.push_iteration(second, range, false);
            }
            None => {
                let list = self
                    .entry(range)
                    .map_or(matches!(self.type_of(range), Type::List(_)), |entry| entry.list);
                self.push_iteration(iter_var, range, !list);
            }
        }
        let turn = self.cost(condition).add(self.cost(step));
        self.locals.truncate(depth + 1);
        cost = cost.add(self.cost(result));
        self.locals.truncate(depth);
        let count = self.size_or_unknown(range);
        cost = cost.add(count.multiply(turn));
        match &accu_init.kind {
            ExprKind::Literal(_) => {
                if let Some(size) = self.size(accu_init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            ExprKind::List { .. } | ExprKind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entry) = self.entry(step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        cost
    }
}

fn declared<'d>(declarations: &'d Declarations, name: &str) -> Place<'d> {
    let variable = declarations.variables.get(name);
    variable
        .and_then(|variable| variable.decl.as_deref())
        .map_or(Place::Nowhere, Place::Declared)
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
