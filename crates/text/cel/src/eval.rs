//! The evaluator: walks a plan, spends the budget, and follows CEL's rules for errors.

use std::sync::Arc;

use crate::activation::Activation;
use crate::cost::{LIST_CREATE, MAP_CREATE};
use crate::error::Error;
use crate::functions::Overload;
use crate::library::regex;
use crate::meter::Meter;
use crate::plan::{Loop, Node, Plan};
use crate::value::{List, Map, MapBuilder, Value};

type Outcome<'a> = Result<Value<'a>, Error>;

pub(crate) fn run<'a>(plan: &Plan, activation: &Activation<'a>, meter: &Meter) -> Outcome<'a> {
    let mut slots = Vec::new();
    slots.resize_with(plan.slots, || Slot::Empty);
    Evaluator {
        plan,
        activation,
        meter,
        slots,
    }
    .eval(&plan.root)
}

/// What a local variable holds.
enum Slot<'p, 'a> {
    Empty,
    /// A bound value that nobody has read yet.
    Late(&'p Node),
    /// Errors are values of accumulators: `all` and `exists` may still absorb them.
    Ready(Outcome<'a>),
}

struct Evaluator<'p, 'a, 'e> {
    plan: &'p Plan,
    activation: &'e Activation<'a>,
    meter: &'e Meter,
    slots: Vec<Slot<'p, 'a>>,
}

impl<'p, 'a> Evaluator<'p, 'a, '_> {
    /// Recursion is bounded by the depth of the tree; arms with many locals live in functions of their own so that
    /// a frame stays small.
    fn eval(&mut self, node: &'p Node) -> Outcome<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Variable(index) => self.variable(*index),
            Node::Local(slot) => self.local(*slot),
            Node::Select { operand, field, cost } => self.select(operand, field, *cost),
            Node::Has { operand, field } => self.has(operand, field),
            Node::OptionalSelect { operand, field, cost } => self.optional_select(operand, field, *cost),
            Node::Index {
                container,
                key,
                overloads,
                cost,
                key_discount,
            } => self.index(container, key, overloads, *cost, *key_discount),
            Node::Call { overloads, args } => self.call(overloads, args),
            Node::Pattern {
                function,
                regex,
                overloads,
                args,
            } => self.pattern(function, regex, overloads, args),
            Node::InLiterals {
                needle,
                list,
                overload,
            } => self.in_literals(needle, list, overload),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::NotStrictlyFalse(arg) => self.not_strictly_false(arg),
            Node::Ternary { parts, discounts } => self.ternary(parts, *discounts),
            Node::OptionalOr { target, other, value } => self.optional_or(target, other, *value),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map(entries) => self.map(entries),
            Node::Bind { slot, init, result } => {
                self.slots[*slot] = Slot::Late(init);
                self.eval(result)
            }
            Node::Loop(body) => self.run_loop(body),
            Node::Append { slot, element } => self.append(*slot, element),
            Node::Insert { slot, key, value } => self.insert(*slot, key.as_deref(), value),
        }
    }

    #[inline(never)]
    fn variable(&mut self, index: usize) -> Outcome<'a> {
        self.meter.charge(1)?;
        self.activation.get(&self.plan.variables[index])
    }

    #[inline(never)]
    fn local(&mut self, slot: usize) -> Outcome<'a> {
        self.meter.charge(1)?;
        if let Slot::Late(init) = self.slots[slot] {
            let value = self.eval(init);
            self.slots[slot] = Slot::Ready(value);
        }
        match &self.slots[slot] {
            Slot::Ready(value) => value.clone(),
            _ => Err(Error::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn select(&mut self, operand: &'p Node, field: &Arc<str>, cost: u64) -> Outcome<'a> {
        let operand = self.eval(operand)?;
        self.meter.charge(cost)?;
        match operand {
            Value::Map(map) => map
                .get_field(field)?
                .ok_or_else(|| Error::NoSuchKey(field.clone())),
            Value::Optional(_) => optional_field(&operand, field),
            _ => Err(Error::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn has(&mut self, operand: &'p Node, field: &str) -> Outcome<'a> {
        let operand = self.eval(operand)?;
        match &operand {
            Value::Map(map) => Ok(Value::Bool(map.get_field(field)?.is_some())),
            Value::Optional(_) => match optional_field(&operand, field)? {
                Value::Optional(inner) => Ok(Value::Bool(inner.is_some())),
                _ => Err(Error::NoSuchOverload),
            },
            _ => Err(Error::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn optional_select(&mut self, operand: &'p Node, field: &str, cost: u64) -> Outcome<'a> {
        let operand = self.eval(operand)?;
        let value = optional_field(&operand, field)?;
        // Upstream observes the selection only when the field is there.
        let cost = if matches!(value, Value::Optional(Some(_))) {
            cost
        } else {
            cost - 1
        };
        self.meter.charge(cost)?;
        Ok(value)
    }

    #[inline(never)]
    fn index(
        &mut self,
        container: &'p Node,
        key: &'p Node,
        overloads: &[&'static Overload],
        cost: u64,
        key_discount: bool,
    ) -> Outcome<'a> {
        let container = self.eval(container)?;
        if key_discount {
            self.meter.credit(1);
        }
        let args = [container, self.eval(key)?];
        let overload = find(overloads, &args);
        // Mixed numeric keys (`list[1u]`, `map[1.0]`) are a matter of the container, not of the signature.
        let call = overload
            .or(overloads.first().copied())
            .ok_or(Error::NoSuchOverload)?
            .call;
        let value = call(self.meter, &args);
        // As with optional selections, what is not there is not observed.
        let absent = matches!(value, Ok(Value::Optional(None)));
        self.meter.charge(if absent { cost - 1 } else { cost })?;
        value
    }

    /// Evaluates all arguments, even after one has failed, because upstream does and charges for it.
    fn args(&mut self, nodes: &'p [Node]) -> Result<Vec<Value<'a>>, Error> {
        let mut args = Vec::with_capacity(nodes.len());
        let mut failure = None;
        for node in nodes {
            match self.eval(node) {
                Ok(value) => args.push(value),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            None => Ok(args),
            Some(error) => {
                self.meter.charge(1)?;
                Err(error)
            }
        }
    }

    #[inline(never)]
    fn call(&mut self, overloads: &[&'static Overload], nodes: &'p [Node]) -> Outcome<'a> {
        // The common cases need no heap.
        if let [left, right] = nodes {
            let args = match (self.eval(left), self.eval(right)) {
                (Ok(left), Ok(right)) => [left, right],
                (_, Err(error)) if error.is_fatal() => return Err(error),
                (Err(error), _) | (_, Err(error)) => {
                    self.meter.charge(1)?;
                    return Err(error);
                }
            };
            return self.invoke(overloads, &args);
        }
        let args = self.args(nodes)?;
        self.invoke(overloads, &args)
    }

    fn invoke(&self, overloads: &[&'static Overload], args: &[Value<'a>]) -> Outcome<'a> {
        let Some(overload) = find(overloads, args) else {
            self.meter.charge(1)?;
            return Err(Error::NoSuchOverload);
        };
        overload.cost.charge(self.meter, args)?;
        let result = (overload.call)(self.meter, args)?;
        overload.cost.charge_result(self.meter, &result)?;
        Ok(result)
    }

    #[inline(never)]
    fn pattern(
        &mut self,
        function: &str,
        compiled: &::regex::Regex,
        overloads: &[&'static Overload],
        nodes: &'p [Node],
    ) -> Outcome<'a> {
        let args = self.args(nodes)?;
        let overload = find(overloads, &args).ok_or(Error::NoSuchOverload)?;
        overload.cost.charge(self.meter, &args)?;
        regex::apply(self.meter, function, compiled, &args)
    }

    #[inline(never)]
    fn in_literals(&mut self, needle: &'p Node, list: &Value<'static>, overload: &Overload) -> Outcome<'a> {
        let args = [self.eval(needle)?, list.clone()];
        (overload.call)(self.meter, &args)
    }

    /// `decisive` ends the evaluation whatever else fails: `true` for `||`, `false` for `&&`.
    #[inline(never)]
    fn logical(&mut self, terms: &'p [Node], decisive: bool) -> Outcome<'a> {
        let mut failure = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(Error::NoSuchOverload)),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    #[inline(never)]
    fn not_strictly_false(&mut self, arg: &'p Node) -> Outcome<'a> {
        let value = self.eval(arg);
        self.meter.charge(1)?;
        match value {
            Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
            Err(error) if error.is_fatal() => Err(error),
            _ => Ok(Value::Bool(true)),
        }
    }

    #[inline(never)]
    fn ternary(&mut self, parts: &'p [Node; 3], discounts: [bool; 2]) -> Outcome<'a> {
        let [condition, then, otherwise] = parts;
        let (branch, discount) = match self.eval(condition)? {
            Value::Bool(true) => (then, discounts[0]),
            Value::Bool(false) => (otherwise, discounts[1]),
            _ => return Err(Error::NoSuchOverload),
        };
        if discount {
            self.meter.credit(1);
        }
        self.eval(branch)
    }

    #[inline(never)]
    fn optional_or(&mut self, target: &'p Node, other: &'p Node, value: bool) -> Outcome<'a> {
        match self.eval(target)? {
            Value::Optional(Some(inner)) if value => Ok(Arc::unwrap_or_clone(inner)),
            present @ Value::Optional(Some(_)) => Ok(present),
            Value::Optional(None) => self.eval(other),
            _ => Err(Error::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn list(&mut self, nodes: &'p [Node], optional: &[bool]) -> Outcome<'a> {
        let mut elements = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let element = self.eval(node)?;
            if !optional.get(index).copied().unwrap_or(false) {
                elements.push(element);
                continue;
            }
            match element {
                Value::Optional(Some(inner)) => elements.push(Arc::unwrap_or_clone(inner)),
                Value::Optional(None) => {}
                other => {
                    let message = format!(
                        "cannot initialize optional list element from non-optional value {}",
                        other.type_name()
                    );
                    return Err(Error::invalid(message));
                }
            }
        }
        self.meter.charge(LIST_CREATE)?;
        Ok(Value::list(elements))
    }

    #[inline(never)]
    fn map(&mut self, nodes: &'p [(Node, Node, bool)]) -> Outcome<'a> {
        let mut map = MapBuilder::default();
        for (key, value, optional) in nodes {
            let (key, mut value) = (self.eval(key)?, self.eval(value)?);
            if *optional {
                value = match value {
                    Value::Optional(Some(inner)) => Arc::unwrap_or_clone(inner),
                    Value::Optional(None) => continue,
                    other => {
                        let message = format!(
                            "cannot initialize optional entry from non-optional value {}",
                            other.type_name()
                        );
                        return Err(Error::invalid(message));
                    }
                };
            }
            map.insert(key, value)?;
        }
        self.meter.charge(MAP_CREATE)?;
        Ok(Value::Map(map.finish()))
    }

    #[inline(never)]
    fn run_loop(&mut self, body: &'p Loop) -> Outcome<'a> {
        let range = self.eval(&body.range)?;
        let init = self.eval(&body.init);
        self.slots[body.accu] = Slot::Ready(init);
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let element = list.get(index);
                    let proceed = match body.second {
                        Some(_) => self.turn(body, Ok(Value::Int(index as i64)), Some(element))?,
                        None => self.turn(body, element, None)?,
                    };
                    if !proceed {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let value = body
                        .second
                        .map(|_| map.get(&key).and_then(|v| v.ok_or(Error::NoSuchOverload)));
                    if !self.turn(body, Ok(key), value)? {
                        break;
                    }
                }
            }
            _ => return Err(Error::NoSuchOverload),
        }
        self.eval(&body.result)
    }

    /// One turn of a loop; `false` when the condition ends it.
    fn turn(
        &mut self,
        body: &'p Loop,
        first: Outcome<'a>,
        second: Option<Outcome<'a>>,
    ) -> Result<bool, Error> {
        self.meter.work(1)?;
        self.slots[body.first] = Slot::Ready(first);
        if let (Some(slot), Some(value)) = (body.second, second) {
            self.slots[slot] = Slot::Ready(value);
        }
        match self.eval(&body.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
        let step = self.eval(&body.step);
        if let Err(error) = &step
            && (error.is_fatal() || matches!(body.condition, Node::Const(_)))
        {
            // Without a condition to absorb it, the error is the result.
            return Err(error.clone());
        }
        self.slots[body.accu] = Slot::Ready(step);
        Ok(true)
    }

    /// Takes the accumulator out of its slot, so that it can be changed without a copy.
    fn take(&mut self, slot: usize) -> Outcome<'a> {
        self.meter.charge(1)?;
        match std::mem::replace(&mut self.slots[slot], Slot::Empty) {
            Slot::Ready(value) => value,
            _ => Err(Error::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn append(&mut self, slot: usize, element: &'p Node) -> Outcome<'a> {
        let element = self.eval(element)?;
        let Value::List(List::Owned(mut elements)) = self.take(slot)? else {
            return Err(Error::NoSuchOverload);
        };
        self.meter.charge(LIST_CREATE + 1)?;
        Arc::make_mut(&mut elements).push(element);
        Ok(Value::List(List::Owned(elements)))
    }

    #[inline(never)]
    fn insert(&mut self, slot: usize, key: Option<&'p Node>, value: &'p Node) -> Outcome<'a> {
        let key = key.map(|key| self.eval(key)).transpose()?;
        let value = self.eval(value)?;
        let Value::Map(map) = self.take(slot)? else {
            return Err(Error::NoSuchOverload);
        };
        self.meter.charge(1)?;
        let mut builder = MapBuilder::extend(map)?;
        match (key, value) {
            (Some(key), value) => builder.insert(key, value)?,
            (None, Value::Map(entries)) => {
                self.meter.work(entries.len() * 32)?;
                for key in entries.keys() {
                    if let Some(value) = entries.get(&key)? {
                        builder.insert(key, value)?;
                    }
                }
            }
            _ => return Err(Error::NoSuchOverload),
        }
        Ok(Value::Map(builder.finish()))
    }
}

fn find(overloads: &[&'static Overload], args: &[Value<'_>]) -> Option<&'static Overload> {
    overloads.iter().copied().find(|overload| overload.admits(args))
}

/// A field as an optional: absent if the operand is absent or lacks it.
fn optional_field<'a>(operand: &Value<'a>, field: &str) -> Outcome<'a> {
    match operand {
        Value::Optional(None) => Ok(Value::none()),
        Value::Optional(Some(inner)) => optional_field(inner, field),
        Value::Map(map) => field_of(map, field),
        _ => Err(Error::NoSuchOverload),
    }
}

fn field_of<'a>(map: &Map<'a>, field: &str) -> Outcome<'a> {
    Ok(map.get_field(field)?.map_or_else(Value::none, Value::some))
}
