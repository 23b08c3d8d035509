//! Numbers: whole ones and others. Where both meet, both are taken for others.

use std::cmp::Ordering;

use fairway_text_gotemplate::Value;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

/// The number that a value is. Spans are none: they have a unit.
pub(super) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Int(_, int) => Some(Number::Int(*int)),
        Value::Uint(_, uint) => Some(Number::Int(*uint as i64)),
        Value::Float(float) => Some(Number::Float(*float)),
        _ => None,
    }
}

impl Number {
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    pub(super) fn int(self) -> i64 {
        match self {
            Self::Int(int) => int,
            Self::Float(float) => float as i64,
        }
    }

    /// Their order; none if one is not a number at all.
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(&other)),
            _ => self.float().partial_cmp(&other.float()),
        }
    }
}
