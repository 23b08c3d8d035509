//! Macro expansion: quantifiers, transformations, `has`, `cel.bind`, `sortBy` and optional mapping become loops.

use std::sync::Arc;

use super::{Parse, ParseError, Parser};
use crate::ast::{ACCUMULATOR, Call, Comprehension, Entry, Expr, ExprKind, Literal};

/// A loop variable that no expression can name, for loops that bind a value instead of iterating.
const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";

/// Builds the nodes of one expansion, all at the position of the macro call.
struct Expansion<'p, 't> {
    parser: &'p mut Parser<'t>,
    position: u32,
}

/// The parts of a loop that differ between macros.
struct Loop {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

impl Parser<'_> {
    pub(super) fn global_call(&mut self, position: u32, name: Arc<str>, args: Vec<Expr>) -> Parse<Expr> {
        if &*name == "has" && args.len() == 1 {
            return self.presence_test(position, args);
        }
        self.node(
            position,
            ExprKind::Call(Call {
                function: name,
                target: None,
                args,
            }),
        )
    }

    fn presence_test(&mut self, position: u32, mut args: Vec<Expr>) -> Parse<Expr> {
        let at = args.first().map_or(position, |arg| arg.position);
        match args.pop().map(|arg| arg.kind) {
            Some(ExprKind::Select {
                operand,
                field,
                test: false,
            }) => self.node(
                position,
                ExprKind::Select {
                    operand,
                    field,
                    test: true,
                },
            ),
            _ => Err(ParseError {
                position: at,
                message: "invalid argument to has() macro".into(),
            }),
        }
    }

    pub(super) fn member_call(
        &mut self,
        position: u32,
        name: Arc<str>,
        target: Expr,
        args: Vec<Expr>,
    ) -> Parse<Expr> {
        let namespace = match &target.kind {
            ExprKind::Ident(name) => Some(name.clone()),
            _ => None,
        };
        let options = self.options;
        let mut expansion = Expansion {
            parser: self,
            position,
        };
        match (namespace.as_deref(), &*name, args.len()) {
            (Some("cel"), "bind", 3) if options.bindings => expansion.bind(args),
            (Some("math"), "greatest" | "least", 1..) if options.math => expansion.extremum(
                if &*name == "greatest" {
                    "math.@max"
                } else {
                    "math.@min"
                },
                args,
            ),
            (_, "optMap", 2) => expansion.optional_map(target, args, false),
            (_, "optFlatMap", 2) => expansion.optional_map(target, args, true),
            (_, "sortBy", 2) => expansion.sort_by(target, args),
            (_, "map" | "filter" | "all" | "exists" | "exists_one" | "existsOne", 2) | (_, "map", 3) => {
                expansion.one_variable(&name, target, args)
            }
            (_, "all" | "exists" | "exists_one" | "existsOne", 3)
            | (_, "transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
                expansion.two_variables(&name, target, args)
            }
            _ => {
                let call = Call {
                    function: name,
                    target: Some(Box::new(target)),
                    args,
                };
                expansion.parser.node(position, ExprKind::Call(call))
            }
        }
    }
}

/// Takes the next argument; callers have checked the number before.
fn take(args: &mut std::vec::IntoIter<Expr>, position: u32) -> Parse<Expr> {
    args.next().ok_or_else(|| ParseError {
        position,
        message: "missing macro argument".into(),
    })
}

impl Expansion<'_, '_> {
    fn accumulator(&mut self) -> Parse<Expr> {
        self.ident(ACCUMULATOR)
    }

    fn ident(&mut self, name: &str) -> Parse<Expr> {
        self.parser.node(self.position, ExprKind::Ident(name.into()))
    }

    fn literal(&mut self, literal: Literal) -> Parse<Expr> {
        self.parser.literal(self.position, literal)
    }

    fn list(&mut self, elements: Vec<Expr>) -> Parse<Expr> {
        self.parser.node(
            self.position,
            ExprKind::List {
                elements,
                optional: Vec::new(),
            },
        )
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Parse<Expr> {
        self.parser.call(self.position, function, args)
    }

    fn variable(&self, expr: &Expr, what: &str) -> Parse<Arc<str>> {
        match &expr.kind {
            ExprKind::Ident(name) if &**name == ACCUMULATOR || name.starts_with('.') => Err(ParseError {
                position: expr.position,
                message: "iteration variable overwrites accumulator variable".into(),
            }),
            ExprKind::Ident(name) => Ok(name.clone()),
            _ => Err(ParseError {
                position: expr.position,
                message: what.into(),
            }),
        }
    }

    fn comprehension(&mut self, range: Expr, vars: (Arc<str>, Option<Arc<str>>), parts: Loop) -> Parse<Expr> {
        let comprehension = Comprehension {
            range,
            iter_var: vars.0,
            iter_var2: vars.1,
            accu_var: ACCUMULATOR.into(),
            accu_init: parts.init,
            condition: parts.condition,
            step: parts.step,
            result: parts.result,
        };
        self.parser
            .node(self.position, ExprKind::Comprehension(Box::new(comprehension)))
    }

    fn one_variable(&mut self, name: &str, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
        let filtered = args.len() == 3;
        let mut args = args.into_iter();
        let variable = take(&mut args, self.position)?;
        let variable = self.variable(&variable, "argument is not an identifier")?;
        let body = take(&mut args, self.position)?;
        let parts = match name {
            "map" if filtered => {
                let transform = take(&mut args, self.position)?;
                self.collect(Some(body), transform)?
            }
            "map" => self.collect(None, body)?,
            "filter" => {
                let element = self.ident(&variable)?;
                self.collect(Some(body), element)?
            }
            _ => self.quantifier(name, body)?,
        };
        self.comprehension(range, (variable, None), parts)
    }

    fn two_variables(&mut self, name: &str, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
        let filtered = args.len() == 4;
        let mut args = args.into_iter();
        let (first, second) = (take(&mut args, self.position)?, take(&mut args, self.position)?);
        let what = "argument must be a simple name";
        let vars = (self.variable(&first, what)?, self.variable(&second, what)?);
        if vars.0 == vars.1 {
            let message = format!("duplicate variable name: {}", vars.0);
            return Err(ParseError {
                position: second.position,
                message,
            });
        }
        let filter = if filtered {
            Some(take(&mut args, self.position)?)
        } else {
            None
        };
        let body = take(&mut args, self.position)?;
        let parts = match name {
            "transformList" => self.collect(filter, body)?,
            "transformMap" | "transformMapEntry" => {
                let mut insert = vec![self.accumulator()?];
                if name == "transformMap" {
                    insert.push(self.ident(&vars.0)?);
                }
                insert.push(body);
                let insert = self.call("cel.@mapInsert", insert)?;
                let init = self
                    .parser
                    .node(self.position, ExprKind::Map(Vec::<Entry>::new()))?;
                self.accumulate(init, filter, insert)?
            }
            _ => self.quantifier(name, body)?,
        };
        self.comprehension(range, (vars.0, Some(vars.1)), parts)
    }

    /// The loop that appends `element` to a list, where `filter` holds.
    fn collect(&mut self, filter: Option<Expr>, element: Expr) -> Parse<Loop> {
        let element = self.list(vec![element])?;
        let step = vec![self.accumulator()?, element];
        let step = self.call("_+_", step)?;
        let init = self.list(Vec::new())?;
        self.accumulate(init, filter, step)
    }

    fn accumulate(&mut self, init: Expr, filter: Option<Expr>, step: Expr) -> Parse<Loop> {
        let step = match filter {
            None => step,
            Some(filter) => {
                let keep = self.accumulator()?;
                self.call("_?_:_", vec![filter, step, keep])?
            }
        };
        Ok(Loop {
            init,
            condition: self.literal(Literal::Bool(true))?,
            step,
            result: self.accumulator()?,
        })
    }

    fn quantifier(&mut self, name: &str, predicate: Expr) -> Parse<Loop> {
        let accumulator = self.accumulator()?;
        Ok(match name {
            "all" => {
                let condition = vec![self.accumulator()?];
                Loop {
                    init: self.literal(Literal::Bool(true))?,
                    condition: self.call("@not_strictly_false", condition)?,
                    step: self.call("_&&_", vec![accumulator, predicate])?,
                    result: self.accumulator()?,
                }
            }
            "exists" => {
                let condition = vec![self.accumulator()?];
                let condition = vec![self.call("!_", condition)?];
                Loop {
                    init: self.literal(Literal::Bool(false))?,
                    condition: self.call("@not_strictly_false", condition)?,
                    step: self.call("_||_", vec![accumulator, predicate])?,
                    result: self.accumulator()?,
                }
            }
            _ => {
                let one = self.literal(Literal::Int(1))?;
                let more = self.call("_+_", vec![accumulator, one])?;
                let same = self.accumulator()?;
                let result = vec![self.accumulator()?, self.literal(Literal::Int(1))?];
                Loop {
                    init: self.literal(Literal::Int(0))?,
                    condition: self.literal(Literal::Bool(true))?,
                    step: self.call("_?_:_", vec![predicate, more, same])?,
                    result: self.call("_==_", result)?,
                }
            }
        })
    }

    fn bound(&mut self, variable: Arc<str>, value: Expr, result: Expr) -> Parse<Expr> {
        let comprehension = Comprehension {
            range: self.list(Vec::new())?,
            iter_var: UNUSED.into(),
            iter_var2: None,
            accu_init: value,
            condition: self.literal(Literal::Bool(false))?,
            step: self.ident(&variable)?,
            accu_var: variable,
            result,
        };
        self.parser
            .node(self.position, ExprKind::Comprehension(Box::new(comprehension)))
    }

    fn bind(&mut self, args: Vec<Expr>) -> Parse<Expr> {
        let mut args = args.into_iter();
        let variable = take(&mut args, self.position)?;
        let variable = self.variable(&variable, "cel.bind() variable names must be simple identifiers")?;
        let (value, result) = (take(&mut args, self.position)?, take(&mut args, self.position)?);
        self.bound(variable, value, result)
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
        if matches!(
            target.kind,
            ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. }
        ) {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(ParseError {
                position: target.position,
                message: message.into(),
            });
        }
        let range = self.ident(SORT_INPUT)?;
        let keys = self.one_variable("map", range, args)?;
        let receiver = Some(Box::new(self.ident(SORT_INPUT)?));
        let call = Call {
            function: "@sortByAssociatedKeys".into(),
            target: receiver,
            args: vec![keys],
        };
        let sorted = self.parser.node(self.position, ExprKind::Call(call))?;
        self.bound(SORT_INPUT.into(), target, sorted)
    }

    /// `target.optMap(v, f)`: the mapped value if there is one. The target is evaluated twice, as upstream prices it.
    fn optional_map(&mut self, target: Expr, args: Vec<Expr>, flat: bool) -> Parse<Expr> {
        let mut args = args.into_iter();
        let variable = take(&mut args, self.position)?;
        let what = if flat {
            "optFlatMap() variable name must be a simple identifier"
        } else {
            "optMap() variable name must be a simple identifier"
        };
        let variable = self.variable(&variable, what)?;
        let body = take(&mut args, self.position)?;
        let copy = self.parser.copy(&target)?;
        let present = self.member("hasValue", target)?;
        let value = self.member("value", copy)?;
        let mapped = self.bound(variable, value, body)?;
        let mapped = if flat {
            mapped
        } else {
            self.call("optional.of", vec![mapped])?
        };
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![present, mapped, none])
    }

    fn member(&mut self, function: &str, target: Expr) -> Parse<Expr> {
        let call = Call {
            function: function.into(),
            target: Some(Box::new(target)),
            args: Vec::new(),
        };
        self.parser.node(self.position, ExprKind::Call(call))
    }

    /// `math.greatest(a, b, c)` takes a list when there are more than two.
    fn extremum(&mut self, function: &str, args: Vec<Expr>) -> Parse<Expr> {
        let numeric = |kind: &ExprKind| match kind {
            ExprKind::Literal(l) => matches!(l, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)),
            ExprKind::Map(_) | ExprKind::Struct { .. } => false,
            ExprKind::List { .. } => args.len() == 1,
            _ => true,
        };
        if let Some(bad) = args.iter().find(|arg| !numeric(&arg.kind)) {
            let message = format!(
                "{} simple literal arguments must be numeric",
                function.replace('@', "")
            );
            return Err(ParseError {
                position: bad.position,
                message,
            });
        }
        if args.len() <= 2 {
            return self.call(function, args);
        }
        let list = self.list(args)?;
        self.call(function, vec![list])
    }
}
