//! The expression tree that the parser builds, after macro expansion.
//!
//! Every node has an id (an index into side tables such as the checker's types) and the position of the token that
//! upstream reports errors at: the operator of a call, the dot of a selection.

use std::sync::Arc;

/// Identifies a node within one expression.
pub(crate) type ExprId = u32;

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: ExprId,
    /// Offset into the source, in code points.
    pub(crate) position: u32,
    /// Height of this subtree; bounded so that later passes may recurse.
    pub(crate) depth: u16,
    pub(crate) kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Ident(Arc<str>),
    /// `operand.field`, or with `test` the presence test `has(operand.field)`.
    Select {
        operand: Box<Expr>,
        field: Arc<str>,
        test: bool,
    },
    Call(Call),
    List {
        elements: Vec<Expr>,
        optional: Vec<bool>,
    },
    Map(Vec<Entry>),
    Struct {
        type_name: Arc<str>,
        fields: Vec<(Arc<str>, Expr, bool)>,
    },
    Comprehension(Box<Comprehension>),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// `_&&_` and `_||_` carry all terms of a chain, every other operator its fixed number.
    pub(crate) function: Arc<str>,
    pub(crate) target: Option<Box<Expr>>,
    pub(crate) args: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// The one looping construct, into which `all`, `exists`, `map`, `filter` and their kin expand.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) iter_var: Arc<str>,
    pub(crate) iter_var2: Option<Arc<str>>,
    pub(crate) accu_var: Arc<str>,
    pub(crate) accu_init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Comprehension {
    /// `cel.bind` and `sortBy` expand to a loop over nothing whose accumulator is the bound variable.
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.range.kind, ExprKind::List { elements, .. } if elements.is_empty())
            && matches!(self.condition.kind, ExprKind::Literal(Literal::Bool(false)))
            && &*self.accu_var != ACCUMULATOR
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// The name of every macro's accumulator; not an identifier, so no expression can name it.
pub(crate) const ACCUMULATOR: &str = "@result";

impl Expr {
    /// `a.b.c` as a dotted name, if the expression is nothing but selections from an identifier.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name.to_string()),
            ExprKind::Select {
                operand,
                field,
                test: false,
            } => {
                let mut name = operand.qualified_name()?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }
}
