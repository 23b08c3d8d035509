//! Kubernetes quantities: `500m`, `1Gi`, `1.5e3`, with exact decimal arithmetic.

use fairway_kernel_scalar::quantity::Quantity;

use super::{Opaque, arg, opaque};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

pub(super) fn register(r: &mut Registry) {
    r.add(
        "quantity",
        "(string) -> quantity",
        Cost::ScanArgument,
        |_, args| {
            let quantity = arg!(args, 0, String)
                .parse::<Quantity>()
                .map_err(|error| Error::invalid(error.to_string()))?;
            Ok(Value::opaque(Opaque::Quantity(quantity)))
        },
    );
    r.add("isQuantity", "(string) -> bool", Cost::ScanArgument, |_, args| {
        Ok(Value::Bool(Quantity::parse(arg!(args, 0, String)).is_some()))
    });
    r.add("sign", "(quantity) -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(opaque!(args, 0, Quantity).sign().into()))
    });
    r.add(
        "isGreaterThan",
        "quantity.(quantity) -> bool",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Quantity).cmp(opaque!(args, 1, Quantity)).is_gt(),
            ))
        },
    );
    r.add(
        "isLessThan",
        "quantity.(quantity) -> bool",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Quantity).cmp(opaque!(args, 1, Quantity)).is_lt(),
            ))
        },
    );
    r.add(
        "compareTo",
        "quantity.(quantity) -> int",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Int(
                opaque!(args, 0, Quantity).cmp(opaque!(args, 1, Quantity)) as i64,
            ))
        },
    );
    r.add(
        "asApproximateFloat",
        "quantity.() -> double",
        Cost::Fixed(1),
        |_, args| Ok(Value::Double(opaque!(args, 0, Quantity).approximate())),
    );
    r.add(
        "asInteger",
        "quantity.() -> int",
        Cost::Fixed(1),
        |_, args| match opaque!(args, 0, Quantity).as_integer() {
            Some(value) => Ok(Value::Int(value)),
            None => Err(Error::invalid("cannot convert value to integer")),
        },
    );
    r.add("isInteger", "quantity.() -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(opaque!(args, 0, Quantity).as_integer().is_some()))
    });
    r.add(
        "add",
        "quantity.(quantity) -> quantity",
        Cost::Fixed(1),
        |_, args| sum(opaque!(args, 0, Quantity), *opaque!(args, 1, Quantity)),
    );
    r.add("add", "quantity.(int) -> quantity", Cost::Fixed(1), |_, args| {
        sum(
            opaque!(args, 0, Quantity),
            Quantity::from_int(*arg!(args, 1, Int)),
        )
    });
    r.add(
        "sub",
        "quantity.(quantity) -> quantity",
        Cost::Fixed(1),
        |_, args| sum(opaque!(args, 0, Quantity), opaque!(args, 1, Quantity).negated()),
    );
    r.add("sub", "quantity.(int) -> quantity", Cost::Fixed(1), subtract_int);
}

fn subtract_int<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    sum(
        opaque!(args, 0, Quantity),
        Quantity::from_int(*arg!(args, 1, Int)).negated(),
    )
}

fn sum<'a>(left: &Quantity, right: Quantity) -> Result<Value<'a>, Error> {
    let sum = left.checked_add(right).ok_or(Error::Overflow("quantity"))?;
    Ok(Value::opaque(Opaque::Quantity(sum)))
}
