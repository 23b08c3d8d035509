//! Turns a checked tree into nodes that the evaluator walks: names resolved, constants folded, patterns compiled.

use std::sync::Arc;

use regex::Regex;

use crate::ast::{ACCUMULATOR, Call, Comprehension, Entry, Expr, ExprKind, Literal};
use crate::checker::{Checked, Reference};
use crate::cost::Cost;
use crate::functions::Overload;
use crate::library::regex::{PATTERN_FUNCTIONS, compile};
use crate::limits::PER_CALL_LIMIT;
use crate::meter::Meter;
use crate::value::{MapBuilder, Str, Value};

/// One step of evaluation.
pub(crate) enum Node {
    Const(Value<'static>),
    /// Index into the program's variables.
    Variable(usize),
    /// A loop variable, an accumulator or a bound value, by slot.
    Local(usize),
    Select {
        operand: Box<Node>,
        field: Arc<str>,
        cost: u64,
    },
    Has {
        operand: Box<Node>,
        field: Arc<str>,
    },
    OptionalSelect {
        operand: Box<Node>,
        field: Arc<str>,
        cost: u64,
    },
    Index {
        container: Box<Node>,
        key: Box<Node>,
        overloads: Overloads,
        cost: u64,
        key_discount: bool,
    },
    Call {
        overloads: Overloads,
        args: Box<[Node]>,
    },
    /// `matches`, `find` or `findAll` with a literal pattern.
    Pattern {
        function: &'static str,
        regex: Box<Regex>,
        overloads: Overloads,
        args: Box<[Node]>,
    },
    /// Membership in a list of literals, which is free.
    InLiterals {
        needle: Box<Node>,
        list: Value<'static>,
        overload: &'static Overload,
    },
    And(Box<[Node]>),
    Or(Box<[Node]>),
    NotStrictlyFalse(Box<Node>),
    /// Condition and branches; a branch that is a mere reference costs one less, as upstream counts.
    Ternary {
        parts: Box<[Node; 3]>,
        discounts: [bool; 2],
    },
    /// `optional.or(other)`, or `optional.orValue(other)` with `value`.
    OptionalOr {
        target: Box<Node>,
        other: Box<Node>,
        value: bool,
    },
    List {
        elements: Box<[Node]>,
        optional: Box<[bool]>,
    },
    Map(Box<[(Node, Node, bool)]>),
    /// A value that is computed when it is first read.
    Bind {
        slot: usize,
        init: Box<Node>,
        result: Box<Node>,
    },
    Loop(Box<Loop>),
    /// `accumulator + [element]` inside a loop, without copying the accumulator.
    Append {
        slot: usize,
        element: Box<Node>,
    },
    /// `cel.@mapInsert(accumulator, ...)` inside a loop, without copying the accumulator.
    Insert {
        slot: usize,
        key: Option<Box<Node>>,
        value: Box<Node>,
    },
}

pub(crate) type Overloads = Box<[&'static Overload]>;

pub(crate) struct Loop {
    pub(crate) range: Node,
    pub(crate) first: usize,
    pub(crate) second: Option<usize>,
    pub(crate) accu: usize,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// The nodes of a program and what they refer to.
pub(crate) struct Plan {
    pub(crate) root: Node,
    pub(crate) variables: Vec<Arc<str>>,
    pub(crate) slots: usize,
}

/// A literal that fails whenever it is evaluated: position and reason.
pub(crate) type PlanError = (u32, String);

pub(crate) fn plan(root: &Expr, checked: &Checked) -> Result<Plan, PlanError> {
    let mut planner = Planner {
        checked,
        variables: Vec::new(),
        locals: Vec::new(),
        slots: 0,
    };
    let root = planner.node(root)?;
    Ok(Plan {
        root,
        variables: planner.variables,
        slots: planner.slots,
    })
}

struct Planner<'c> {
    checked: &'c Checked,
    variables: Vec<Arc<str>>,
    locals: Vec<(Arc<str>, usize)>,
    slots: usize,
}

const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// Whether upstream sees the node as a reference, to which selections attach at the price of one each.
fn is_reference(node: &Node) -> bool {
    matches!(
        node,
        Node::Variable(_)
            | Node::Local(_)
            | Node::Select { .. }
            | Node::OptionalSelect { .. }
            | Node::Index { .. }
            | Node::Ternary { .. }
    )
}

/// A reference whose own price of one is not counted where it is only resolved, not evaluated.
fn is_discounted(node: &Node) -> bool {
    is_reference(node) && !matches!(node, Node::Ternary { .. })
}

/// Selections from anything but a reference make a new one first.
fn selection_cost(operand: &Node) -> u64 {
    if is_reference(operand) { 1 } else { 2 }
}

impl Planner<'_> {
    fn node(&mut self, expr: &Expr) -> Result<Node, PlanError> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Node::Const(constant(literal))),
            ExprKind::Ident(name) => Ok(self.reference(expr, name)),
            ExprKind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List { elements, optional } => self.list(elements, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { type_name, .. } => {
                Err((expr.position, format!("'{type_name}' is not a type")))
            }
            ExprKind::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Node>, PlanError> {
        self.node(expr).map(Box::new)
    }

    fn nodes(&mut self, exprs: &[Expr]) -> Result<Box<[Node]>, PlanError> {
        let mut nodes = Vec::with_capacity(exprs.len());
        for expr in exprs {
            nodes.push(self.node(expr)?);
        }
        Ok(nodes.into())
    }

    fn variable(&mut self, name: &Arc<str>) -> Node {
        let index = self
            .variables
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                self.variables.push(name.clone());
                self.variables.len() - 1
            });
        Node::Variable(index)
    }

    fn local(&self, name: &str) -> Option<usize> {
        self.locals
            .iter()
            .rev()
            .find(|(local, _)| &**local == name)
            .map(|(_, slot)| *slot)
    }

    fn declare(&mut self, name: &Arc<str>) -> usize {
        // Slots are never reused: a bound value is computed late, while inner loops are running.
        self.locals.push((name.clone(), self.slots));
        self.slots += 1;
        self.slots - 1
    }

    fn reference(&mut self, expr: &Expr, name: &Arc<str>) -> Node {
        match self.checked.references.get(&expr.id) {
            Some(Reference::TypeName(name)) => Node::Const(Value::Type(name)),
            Some(Reference::Local) => self.local(name).map_or_else(|| self.variable(name), Node::Local),
            Some(Reference::Variable(name)) => {
                let name = name.clone();
                self.variable(&name)
            }
            _ => self.variable(name),
        }
    }

    fn select(
        &mut self,
        expr: &Expr,
        operand: &Expr,
        field: &Arc<str>,
        test: bool,
    ) -> Result<Node, PlanError> {
        if !test && self.checked.references.contains_key(&expr.id) {
            return Ok(self.reference(expr, field));
        }
        let operand = self.boxed(operand)?;
        let field = field.clone();
        if test {
            return Ok(Node::Has { operand, field });
        }
        let cost = selection_cost(&operand);
        Ok(Node::Select { operand, field, cost })
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Result<Node, PlanError> {
        match (&*call.function, &call.args[..]) {
            ("_&&_", args) => return self.nodes(args).map(Node::And),
            ("_||_", args) => return self.nodes(args).map(Node::Or),
            ("_?_:_", [condition, then, otherwise]) => {
                let parts = Box::new([self.node(condition)?, self.node(then)?, self.node(otherwise)?]);
                let discounts = [is_discounted(&parts[1]), is_discounted(&parts[2])];
                return Ok(Node::Ternary { parts, discounts });
            }
            ("@not_strictly_false", [arg]) => return self.boxed(arg).map(Node::NotStrictlyFalse),
            (
                "_?._",
                [
                    operand,
                    Expr {
                        kind: ExprKind::Literal(Literal::String(field)),
                        ..
                    },
                ],
            ) => {
                let operand = self.boxed(operand)?;
                let cost = selection_cost(&operand);
                return Ok(Node::OptionalSelect {
                    operand,
                    field: field.clone(),
                    cost,
                });
            }
            _ => {}
        }
        let Some(Reference::Call {
            function,
            overloads,
            namespaced,
        }) = self.checked.references.get(&expr.id)
        else {
            return Err((
                expr.position,
                format!("call of '{}' was not checked", call.function),
            ));
        };
        let overloads: Overloads = overloads.clone().into();
        let target = call.target.as_deref().filter(|_| !*namespaced);
        if let (Some(target), "or" | "orValue", [other]) = (target, &**function, &call.args[..]) {
            let (target, other) = (self.boxed(target)?, self.boxed(other)?);
            return Ok(Node::OptionalOr {
                target,
                other,
                value: &**function == "orValue",
            });
        }
        if target.is_none()
            && let Some(node) = self.accumulation(function, &call.args)?
        {
            return Ok(node);
        }
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in target.into_iter().chain(&call.args) {
            args.push(self.node(arg)?);
        }
        self.specialize(expr, function, overloads, args.into())
    }

    /// Replaces calls that have a cheaper form.
    fn specialize(
        &self,
        expr: &Expr,
        function: &str,
        overloads: Overloads,
        args: Box<[Node]>,
    ) -> Result<Node, PlanError> {
        if matches!(function, "_[_]" | "_[?_]") {
            let mut args = args.into_iter();
            let (Some(container), Some(key)) = (args.next(), args.next()) else {
                return Err((expr.position, "index without container".to_owned()));
            };
            let (cost, key_discount) = (selection_cost(&container), is_discounted(&key));
            return Ok(Node::Index {
                container: Box::new(container),
                key: Box::new(key),
                overloads,
                cost,
                key_discount,
            });
        }
        if let Some(name) = PATTERN_FUNCTIONS.into_iter().find(|name| *name == function)
            && let Some(Node::Const(Value::String(pattern))) = args.get(1)
        {
            let regex = compile(pattern).map_err(|error| (expr.position, error.to_string()))?;
            return Ok(Node::Pattern {
                function: name,
                regex: Box::new(regex),
                overloads,
                args,
            });
        }
        match (&args[..], &overloads[..]) {
            ([_, Node::Const(Value::List(list))], [overload]) if overload.cost == Cost::InList => {
                if list.is_empty() {
                    return Ok(Node::Const(Value::Bool(false)));
                }
                let primitive = |value: Result<Value<'_>, _>| {
                    matches!(
                        value,
                        Ok(Value::Bool(_)
                            | Value::Int(_)
                            | Value::Uint(_)
                            | Value::Double(_)
                            | Value::String(_)
                            | Value::Null)
                    )
                };
                if list.iter().all(primitive) {
                    let (list, overload) = (Value::List(list.clone()), *overload);
                    let needle = args.into_iter().next().map(Box::new);
                    let needle =
                        needle.ok_or_else(|| (expr.position, "membership without element".to_owned()))?;
                    return Ok(Node::InLiterals {
                        needle,
                        list,
                        overload,
                    });
                }
            }
            ([Node::Const(value)], _) if CONVERSIONS.contains(&function) => {
                let args = [value.clone()];
                if let Some(overload) = overloads.iter().find(|overload| overload.admits(&args)) {
                    let folded = (overload.call)(&Meter::new(PER_CALL_LIMIT), &args);
                    return folded
                        .map(Node::Const)
                        .map_err(|error| (expr.position, error.to_string()));
                }
            }
            _ => {}
        }
        Ok(Node::Call { overloads, args })
    }

    /// Recognises the step of a loop that adds to its accumulator; without it, collecting n elements copies n² of them.
    fn accumulation(&mut self, function: &str, args: &[Expr]) -> Result<Option<Node>, PlanError> {
        let Some(Expr {
            kind: ExprKind::Ident(name),
            ..
        }) = args.first()
        else {
            return Ok(None);
        };
        if &**name != ACCUMULATOR {
            return Ok(None);
        }
        let Some(slot) = self.local(name) else {
            return Ok(None);
        };
        Ok(match (function, &args[1..]) {
            (
                "_+_",
                [
                    Expr {
                        kind: ExprKind::List { elements, optional },
                        ..
                    },
                ],
            ) if optional.is_empty() => match &elements[..] {
                [element] => Some(Node::Append {
                    slot,
                    element: self.boxed(element)?,
                }),
                _ => None,
            },
            ("cel.@mapInsert", [key, value]) => Some(Node::Insert {
                slot,
                key: Some(self.boxed(key)?),
                value: self.boxed(value)?,
            }),
            ("cel.@mapInsert", [entries]) => Some(Node::Insert {
                slot,
                key: None,
                value: self.boxed(entries)?,
            }),
            _ => None,
        })
    }

    fn list(&mut self, elements: &[Expr], optional: &[bool]) -> Result<Node, PlanError> {
        let elements = self.nodes(elements)?;
        if optional.is_empty() && elements.iter().all(|element| matches!(element, Node::Const(_))) {
            return Ok(Node::Const(Value::list(constants(&elements))));
        }
        Ok(Node::List {
            elements,
            optional: optional.into(),
        })
    }

    fn map(&mut self, entries: &[Entry]) -> Result<Node, PlanError> {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            nodes.push((self.node(&entry.key)?, self.node(&entry.value)?, entry.optional));
        }
        let mut folded = MapBuilder::default();
        for (key, value, optional) in &nodes {
            let (Node::Const(key), Node::Const(value), false) = (key, value, optional) else {
                return Ok(Node::Map(nodes.into()));
            };
            // Keys that clash or cannot be keys fail when the map is built.
            if folded.insert(key.clone(), value.clone()).is_err() {
                return Ok(Node::Map(nodes.into()));
            }
        }
        Ok(Node::Const(Value::Map(folded.finish())))
    }

    fn comprehension(&mut self, comprehension: &Comprehension) -> Result<Node, PlanError> {
        let depth = self.locals.len();
        let init = self.node(&comprehension.accu_init)?;
        if comprehension.is_bind() {
            let slot = self.declare(&comprehension.accu_var);
            let result = self.boxed(&comprehension.result)?;
            self.locals.truncate(depth);
            return Ok(Node::Bind {
                slot,
                init: Box::new(init),
                result,
            });
        }
        let range = self.node(&comprehension.range)?;
        let accu = self.declare(&comprehension.accu_var);
        let first = self.declare(&comprehension.iter_var);
        let second = comprehension.iter_var2.as_ref().map(|name| self.declare(name));
        let condition = self.node(&comprehension.condition)?;
        let step = self.node(&comprehension.step)?;
        self.locals.truncate(depth + 1);
        let result = self.node(&comprehension.result)?;
        self.locals.truncate(depth);
        Ok(Node::Loop(Box::new(Loop {
            range,
            first,
            second,
            accu,
            init,
            condition,
            step,
            result,
        })))
    }
}

fn constants(nodes: &[Node]) -> Vec<Value<'static>> {
    let value = |node: &Node| match node {
        Node::Const(value) => Some(value.clone()),
        _ => None,
    };
    nodes.iter().filter_map(value).collect()
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Str::Shared(text.clone())),
        Literal::Bytes(bytes) => Value::Bytes(bytes.clone()),
    }
}
