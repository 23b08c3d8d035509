//! The estimated price of calls.

use super::{Estimator, Place, Range};
use crate::ast::{Call, Expr, ExprKind, Literal};
use crate::checker::Reference;
use crate::cost::{Cost, LIST_CREATE, REGEX_LENGTH, STRUCT_CREATE, TRAVERSAL};
use crate::functions::Overload;
use crate::types::{OpaqueType, Type};

/// The longest regular expression and name of a format.
const FORMAT_REGEX_SIZE: f64 = 128.0;
const FORMAT_NAME_SIZE: u64 = 64;

/// A call to be estimated: its parts, and what the arguments (without the receiver) cost.
struct Site<'x> {
    expr: &'x Expr,
    target: Option<&'x Expr>,
    args: &'x [Expr],
    costs: Vec<Range>,
}

impl Site<'_> {
    fn args_cost(&self) -> Range {
        self.costs
            .iter()
            .fold(Range::fixed(0), |sum, cost| sum.add(*cost))
    }
}

/// What a call costs, and how large its result is if that is known.
struct CallEstimate {
    cost: Range,
    size: Option<Range>,
}

impl Estimator<'_> {
    pub(super) fn call_cost(&mut self, expr: &Expr, call: &Call) -> Range {
        if matches!(&*call.function, "_&&_" | "_||_") {
            // The first term is always evaluated, the others perhaps.
            let costs = self.costs(&call.args);
            let max = costs.iter().fold(0u64, |sum, cost| sum.saturating_add(cost.max));
            return Range {
                min: costs.first().map_or(0, |cost| cost.min),
                max,
            };
        }
        if &*call.function == "_?._" {
            let operand = call
                .args
                .first()
                .map_or(Range::fixed(0), |operand| self.cost(operand));
            return operand.add(Range::fixed(1));
        }
        let Some(Reference::Call {
            function,
            overloads,
            namespaced,
        }) = self.checked.references.get(&expr.id)
        else {
            return Range::fixed(0);
        };
        if let ("dyn", [arg]) = (&**function, &call.args[..]) {
            let cost = self.cost(arg).add(Range::fixed(1));
            self.copy_sizes(expr, arg);
            return cost;
        }
        let costs = self.costs(&call.args);
        let target = call.target.as_deref().filter(|_| !*namespaced);
        let mut receiver = Range::fixed(0);
        if let Some(target) = target {
            receiver = self.cost(target);
        }
        let own = self.overloads_cost(
            &Site {
                expr,
                target,
                args: &call.args,
                costs,
            },
            overloads,
        );
        receiver.add(own)
    }

    /// A loop and not an iterator: this is part of the recursion, and every adapter would take stack.
    fn costs(&mut self, exprs: &[Expr]) -> Vec<Range> {
        let mut costs = Vec::with_capacity(exprs.len());
        for expr in exprs {
            costs.push(self.cost(expr));
        }
        costs
    }

    /// A range that covers all overloads that the call may turn out to be.
    fn overloads_cost(&mut self, site: &Site<'_>, overloads: &[&'static Overload]) -> Range {
        let mut cost = Range::EMPTY;
        let mut size: Option<Range> = None;
        for overload in overloads {
            let estimate = self.overload_cost(site, overload);
            cost = cost.union(estimate.cost);
            if let Some(this) = estimate.size {
                size = Some(size.map_or(this, |size| size.union(this)));
            }
            if let (Cost::IndexList | Cost::IndexMap, Some(container)) = (overload.cost, site.args.first()) {
                size = self.entry(container).map(|entry| entry.value);
                let place = self.place(container).elements(self.root);
                self.places.insert(site.expr.id, place);
            }
            if size.is_none() {
                size = self.size(site.expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(site.expr.id, size);
        }
        cost
    }

    fn target_size(&mut self, site: &Site<'_>) -> Range {
        site.target
            .map_or(Range::UNKNOWN, |target| self.size_or_unknown(target))
    }

    fn arg_size(&mut self, site: &Site<'_>, index: usize) -> Range {
        site.args
            .get(index)
            .map_or(Range::UNKNOWN, |arg| self.size_or_unknown(arg))
    }

    fn overload_cost(&mut self, site: &Site<'_>, overload: &Overload) -> CallEstimate {
        if overload.cost == Cost::Conditional && site.args.len() == 3 {
            return self.conditional_cost(site);
        }
        let (cost, size) = self.own_cost(site, overload);
        CallEstimate {
            cost: cost.add(site.args_cost()),
            size,
        }
    }

    fn conditional_cost(&mut self, site: &Site<'_>) -> CallEstimate {
        let (then, otherwise) = (&site.args[1], &site.args[2]);
        let size = self.size_or_unknown(then).union(self.size_or_unknown(otherwise));
        if let (Some(a), Some(b)) = (self.entry(then), self.entry(otherwise)) {
            self.entries.insert(site.expr.id, a.union(b));
        }
        let cost = site.costs[0].add(site.costs[1].union(site.costs[2]));
        CallEstimate {
            cost,
            size: Some(size),
        }
    }

    /// The price of the function itself and the size of its result.
    fn own_cost(&mut self, site: &Site<'_>, overload: &Overload) -> (Range, Option<Range>) {
        let one = Range::fixed(1);
        match overload.cost {
            Cost::Fixed(cost) => (Range::fixed(cost), None),
            Cost::IndexList | Cost::IndexMap | Cost::Logical | Cost::Conditional => (one, None),
            Cost::Equality => (self.equality_cost(site), None),
            Cost::Inequality | Cost::Smaller => (self.comparison_cost(site), None),
            Cost::InList => (self.arg_size(site, 1), None),
            Cost::Concat | Cost::ConcatLists => self.concat_cost(site, overload.cost),
            Cost::StringToBytes => {
                let size = self.arg_size(site, 0);
                (
                    size.scale(TRAVERSAL),
                    Some(Range {
                        min: size.min,
                        max: size.max.saturating_mul(4),
                    }),
                )
            }
            Cost::BytesToString => {
                let size = self.arg_size(site, 0);
                (
                    size.scale(TRAVERSAL),
                    Some(Range {
                        min: size.min / 4,
                        max: size.max,
                    }),
                )
            }
            Cost::Quote => {
                let size = self.arg_size(site, 0);
                let result = Range {
                    min: size.min.saturating_add(2),
                    max: size.max.saturating_mul(2).saturating_add(2),
                };
                (size.scale(TRAVERSAL), Some(result))
            }
            Cost::Format => (self.target_size(site).scale(TRAVERSAL), None),
            Cost::Affix => (self.arg_size(site, 0).scale(TRAVERSAL), None),
            Cost::Contains => {
                let part = self.arg_size(site, 0).scale(TRAVERSAL);
                (self.target_size(site).scale(TRAVERSAL).multiply(part), None)
            }
            Cost::Traverse => (self.traverse_cost(site), None),
            Cost::ScanTarget => {
                let size = self.target_size(site);
                (size.scale(TRAVERSAL), Some(size))
            }
            Cost::ScanUrl => {
                let size = self.arg_size(site, 0);
                (size.scale(TRAVERSAL), Some(size))
            }
            Cost::ScanArgument => (self.arg_size(site, 0).scale(TRAVERSAL), None),
            Cost::ScanArgumentTwice => (self.arg_size(site, 0).scale(2.0 * TRAVERSAL), None),
            Cost::Replace => self.replace_cost(site),
            Cost::Split => {
                let size = self.target_size(site);
                let parts = int_literal(site.args.get(1)).map_or(size.max, |limit| limit as u64);
                (size.scale(2.0 * TRAVERSAL), Some(Range { min: 0, max: parts }))
            }
            Cost::Join => self.join_cost(site),
            // The global form of `matches` has no estimate of its own upstream.
            Cost::Matches if site.target.is_none() => (one, None),
            Cost::Matches | Cost::Regex => {
                let size = self.target_size(site);
                let cost = size
                    .add(one)
                    .scale(TRAVERSAL)
                    .multiply(self.arg_size(site, 0).scale(REGEX_LENGTH));
                (
                    cost,
                    (overload.cost == Cost::Regex).then_some(Range {
                        min: 0,
                        max: size.max,
                    }),
                )
            }
            Cost::Slice => {
                let size = self.target_size(site);
                let start = int_literal(site.args.first()).map_or(0, |start| start.max(0) as u64);
                let end = int_literal(site.args.get(1)).map_or(size.max, |end| end.max(0) as u64);
                // Upstream wraps when the end lies before the start, which makes such a slice too dear.
                allocating(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            Cost::Range => {
                let length = int_literal(site.args.first()).map_or(u64::MAX, |length| length.max(0) as u64);
                allocating(1.0, Range::fixed(length))
            }
            Cost::Reverse => allocating(1.0, self.target_size(site)),
            Cost::Flatten => {
                let depth = match site.args.first() {
                    None => 1,
                    depth => int_literal(depth).map_or(u64::MAX, |depth| depth.max(0) as u64),
                };
                allocating(depth as f64, self.target_size(site))
            }
            Cost::Distinct => {
                let size = self.target_size(site);
                allocating(2.0, size.multiply(size))
            }
            Cost::SelfCompare(index) => {
                let size = if index == 0 {
                    self.target_size(site)
                } else {
                    self.arg_size(site, index - 1)
                };
                let text = matches!(&overload.params[index], Type::List(e) if matches!(**e, Type::String | Type::Bytes));
                allocating(if text { 2.0 + TRAVERSAL } else { 2.0 }, size.multiply(size))
            }
            Cost::Sets(factor) => {
                let pairs = self.arg_size(site, 0).multiply(self.arg_size(site, 1));
                (pairs.scale(factor as f64).add(one), None)
            }
            Cost::ContainsIp { text } => (self.address_cost(site, text, false), None),
            Cost::ContainsCidr { text } => (self.address_cost(site, text, true), None),
            Cost::Validate => {
                let text = self.arg_size(site, 0).scale(TRAVERSAL);
                (text.scale(FORMAT_REGEX_SIZE * REGEX_LENGTH), None)
            }
            Cost::Selector => {
                let length = self.arg_size(site, 0);
                let requirements = length.scale(0.5).scale((LIST_CREATE + STRUCT_CREATE) as f64);
                (
                    Range::fixed(LIST_CREATE)
                        .add(length.scale(TRAVERSAL))
                        .add(requirements),
                    None,
                )
            }
        }
    }

    fn equality_cost(&mut self, site: &Site<'_>) -> Range {
        let [left, right] = site.args else {
            return Range::fixed(1);
        };
        let (left_type, right_type) = (self.type_of(left), self.type_of(right));
        let Type::Opaque(opaque) = left_type else {
            return self.comparison_cost(site);
        };
        if left_type != right_type {
            return self.comparison_cost(site);
        }
        match opaque {
            OpaqueType::Format => Range {
                min: 1,
                max: FORMAT_NAME_SIZE,
            }
            .scale(TRAVERSAL),
            OpaqueType::Url => {
                let size = self.size(right).unwrap_or(Range::fixed(1));
                Range {
                    min: 1,
                    max: size.max,
                }
                .scale(TRAVERSAL)
            }
            _ => Range::fixed(1),
        }
    }

    fn comparison_cost(&mut self, site: &Site<'_>) -> Range {
        let max = self.arg_size(site, 0).max.min(self.arg_size(site, 1).max);
        Range { min: max.min(1), max }.scale(TRAVERSAL)
    }

    fn concat_cost(&mut self, site: &Site<'_>, cost: Cost) -> (Range, Option<Range>) {
        let size = self.arg_size(site, 0).add(self.arg_size(site, 1));
        if let [left, right] = site.args
            && let (Some(a), Some(b)) = (self.entry(left), self.entry(right))
        {
            self.entries.insert(site.expr.id, a.union(b));
        }
        let price = if cost == Cost::ConcatLists {
            Range::fixed(1)
        } else {
            size.scale(TRAVERSAL)
        };
        (price, Some(size))
    }

    /// The size of one element of a list, as its schema bounds it.
    fn element_size(&mut self, list: &Expr) -> Range {
        match self.place(list) {
            Place::Nowhere => Range::UNKNOWN,
            place => place.elements(self.root).size().unwrap_or(Range::UNKNOWN),
        }
    }

    fn traverse_cost(&mut self, site: &Site<'_>) -> Range {
        let Some(target) = site.target else {
            return Range::fixed(1);
        };
        let size = self.size_or_unknown(target);
        match self.type_of(target) {
            Type::List(element) => {
                let mut each = Range::fixed(1);
                if matches!(**element, Type::String | Type::Bytes) {
                    each = each.add(self.element_size(target).scale(TRAVERSAL));
                }
                size.multiply(each)
            }
            _ => size.scale(TRAVERSAL),
        }
    }

    fn replace_cost(&mut self, site: &Site<'_>) -> (Range, Option<Range>) {
        let (size, old, new) = (
            self.target_size(site),
            self.arg_size(site, 0),
            self.arg_size(site, 1),
        );
        let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
        // The longest result: an empty pattern surrounds every character, a short one is replaced most often.
        if old.min == 0 {
            (count.max, kept.max) = (size.max.saturating_add(1), size.max);
        } else if new.max <= old.min {
            kept.max = size.max;
        } else {
            count.max = (size.max as f64 / old.min as f64).ceil() as u64;
        }
        // The shortest result.
        if old.max == 0 {
            (count.min, kept.min) = (size.min.saturating_add(1), size.min);
        } else if old.max <= new.min {
            kept.min = size.min;
        } else {
            count.min = (size.min as f64 / old.max as f64).ceil() as u64;
        }
        (size.scale(2.0 * TRAVERSAL), Some(count.multiply(new).add(kept)))
    }

    fn join_cost(&mut self, site: &Site<'_>) -> (Range, Option<Range>) {
        let Some(target) = site.target else {
            return (Range::fixed(1), None);
        };
        let count = self.size_or_unknown(target);
        let mut size = match self.type_of(target) {
            Type::List(_) => count.multiply(self.element_size(target)),
            _ => Range::fixed(0),
        };
        if !site.args.is_empty() {
            let gaps = Range {
                min: count.min.saturating_sub(1),
                max: count.max.saturating_sub(1),
            };
            size = size.add(self.arg_size(site, 0).multiply(gaps));
        }
        (size.scale(TRAVERSAL), Some(size))
    }

    fn address_cost(&mut self, site: &Site<'_>, text: bool, prefix: bool) -> Range {
        let bytes = Range { min: 4, max: 16 };
        let mut cost = bytes.add(bytes).scale(TRAVERSAL);
        if prefix {
            cost = cost.add(bytes.scale(TRAVERSAL)).add(Range::fixed(1));
        }
        if text {
            cost = cost.add(self.arg_size(site, 0).scale(TRAVERSAL));
        }
        cost
    }
}

/// The price of a function that allocates its result.
fn allocating(factor: f64, size: Range) -> (Range, Option<Range>) {
    (size.scale(factor).add(Range::fixed(1 + LIST_CREATE)), Some(size))
}

fn int_literal(expr: Option<&Expr>) -> Option<i64> {
    match expr.map(|expr| &expr.kind) {
        Some(ExprKind::Literal(Literal::Int(value))) => Some(*value),
        _ => None,
    }
}
