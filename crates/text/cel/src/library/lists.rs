//! Lists: Kubernetes' own functions (`isSorted`, `sum`, `min`, `max`, `indexOf`) and CEL's lists extension.

use std::cmp::Ordering;

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::{Duration, List, Value, compare, equals};

/// What copying one element counts for.
const WORK_PER_ELEMENT: usize = 32;

const COMPARABLE: [&str; 8] = [
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "string",
    "bytes",
];

pub(super) fn register(r: &mut Registry) {
    for ty in COMPARABLE {
        r.add(
            "isSorted",
            &format!("list<{ty}>.() -> bool"),
            Cost::Traverse,
            is_sorted,
        );
        r.add(
            "max",
            &format!("list<{ty}>.() -> {ty}"),
            Cost::Traverse,
            |_, args| extreme(args, "max", Ordering::Less),
        );
        r.add(
            "min",
            &format!("list<{ty}>.() -> {ty}"),
            Cost::Traverse,
            |_, args| extreme(args, "min", Ordering::Greater),
        );
        r.add(
            "sort",
            &format!("list<{ty}>.() -> list<{ty}>"),
            Cost::SelfCompare(0),
            sort,
        );
        r.add(
            "@sortByAssociatedKeys",
            &format!("list<T>.(list<{ty}>) -> list<T>"),
            Cost::SelfCompare(1),
            sort_by_keys,
        );
    }
    r.add("sum", "list<int>.() -> int", Cost::Traverse, sum_int);
    r.add("sum", "list<uint>.() -> uint", Cost::Traverse, sum_uint);
    r.add("sum", "list<double>.() -> double", Cost::Traverse, sum_double);
    r.add(
        "sum",
        "list<duration>.() -> duration",
        Cost::Traverse,
        sum_duration,
    );
    r.add("indexOf", "list<A>.(A) -> int", Cost::Traverse, index_of);
    r.add("lastIndexOf", "list<A>.(A) -> int", Cost::Traverse, last_index_of);
    r.add("slice", "list<T>.(int, int) -> list<T>", Cost::Slice, slice);
    r.add("flatten", "list<list<T>>.() -> list<T>", Cost::Flatten, flatten);
    r.add("flatten", "list<dyn>.(int) -> list<dyn>", Cost::Flatten, flatten);
    r.add("lists.range", "(int) -> list<int>", Cost::Range, range);
    r.add("reverse", "list<T>.() -> list<T>", Cost::Reverse, reverse);
    r.add("distinct", "list<T>.() -> list<T>", Cost::Distinct, distinct);
}

fn is_sorted<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = arg!(args, 0, List);
    let mut previous: Option<Value<'a>> = None;
    for element in list.iter() {
        let element = element?;
        if let Some(previous) = &previous
            && compare(previous, &element)? == Some(Ordering::Greater)
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(element);
    }
    Ok(Value::Bool(true))
}

fn sum_int<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut total = 0i64;
    for element in arg!(args, 0, List).iter() {
        let Value::Int(value) = element? else {
            return Err(Error::NoSuchOverload);
        };
        total = total.checked_add(value).ok_or(Error::Overflow("integer"))?;
    }
    Ok(Value::Int(total))
}

fn sum_uint<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut total = 0u64;
    for element in arg!(args, 0, List).iter() {
        let Value::Uint(value) = element? else {
            return Err(Error::NoSuchOverload);
        };
        total = total
            .checked_add(value)
            .ok_or(Error::Overflow("unsigned integer"))?;
    }
    Ok(Value::Uint(total))
}

fn sum_double<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut total = 0.0;
    for element in arg!(args, 0, List).iter() {
        let Value::Double(value) = element? else {
            return Err(Error::NoSuchOverload);
        };
        total += value;
    }
    Ok(Value::Double(total))
}

fn sum_duration<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut total = 0i64;
    for element in arg!(args, 0, List).iter() {
        let Value::Duration(value) = element? else {
            return Err(Error::NoSuchOverload);
        };
        total = total.checked_add(value.0).ok_or(Error::Overflow("duration"))?;
    }
    Ok(Value::Duration(Duration(total)))
}

/// The element that all others compare to with anything but `worse`.
fn extreme<'a>(args: &[Value<'a>], name: &str, worse: Ordering) -> Result<Value<'a>, Error> {
    let mut best: Option<Value<'a>> = None;
    for element in arg!(args, 0, List).iter() {
        let element = element?;
        let better = match &best {
            None => true,
            Some(best) => compare(best, &element)? == Some(worse),
        };
        if better {
            best = Some(element);
        }
    }
    best.ok_or_else(|| Error::invalid(format!("{name} called on empty list")))
}

fn index_of<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    for (index, element) in arg!(args, 0, List).iter().enumerate() {
        if equals(meter, &element?, &args[1])? {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn last_index_of<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = arg!(args, 0, List);
    for index in (0..list.len()).rev() {
        if equals(meter, &list.get(index)?, &args[1])? {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (list, start, end) = (arg!(args, 0, List), *arg!(args, 1, Int), *arg!(args, 2, Int));
    let refuse = |why: &str| Err(Error::invalid(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refuse("negative indexes not supported");
    };
    if from > to {
        return refuse("start index must be less than or equal to end index");
    }
    if to > list.len() {
        return refuse(&format!("list is length {}", list.len()));
    }
    meter.work((to - from) * WORK_PER_ELEMENT)?;
    Ok(Value::list(
        (from..to)
            .map(|index| list.get(index))
            .collect::<Result<_, _>>()?,
    ))
}

fn flatten<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let depth = args.get(1).and_then(Value::as_int).unwrap_or(1);
    if depth < 0 {
        return Err(Error::invalid("level must be non-negative"));
    }
    let mut out = Vec::new();
    flatten_into(meter, arg!(args, 0, List), depth, &mut out)?;
    Ok(Value::list(out))
}

fn flatten_into<'a>(
    meter: &Meter,
    list: &List<'a>,
    depth: i64,
    out: &mut Vec<Value<'a>>,
) -> Result<(), Error> {
    for element in list.iter() {
        meter.work(WORK_PER_ELEMENT)?;
        match element? {
            Value::List(inner) if depth > 0 => flatten_into(meter, &inner, depth - 1, out)?,
            other => out.push(other),
        }
    }
    Ok(())
}

fn range<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let count = (*arg!(args, 0, Int)).max(0);
    meter.work((count as usize).saturating_mul(WORK_PER_ELEMENT))?;
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn reverse<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = arg!(args, 0, List);
    meter.work(list.len().saturating_mul(WORK_PER_ELEMENT))?;
    let mut elements = list.to_vec()?;
    elements.reverse();
    Ok(Value::list(elements))
}

fn distinct<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for element in arg!(args, 0, List).iter() {
        let element = element?;
        let mut seen = false;
        for other in &unique {
            if equals(meter, &element, other)? {
                seen = true;
                break;
            }
        }
        if !seen {
            meter.work(WORK_PER_ELEMENT)?;
            unique.push(element);
        }
    }
    Ok(Value::list(unique))
}

fn sort<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let keys = arg!(args, 0, List).to_vec()?;
    sorted(meter, keys.clone(), &keys)
}

fn sort_by_keys<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (list, keys) = (arg!(args, 0, List), arg!(args, 1, List));
    if list.len() != keys.len() {
        return Err(Error::invalid(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    sorted(meter, list.to_vec()?, &keys.to_vec()?)
}

fn sorted<'a>(meter: &Meter, elements: Vec<Value<'a>>, keys: &[Value<'a>]) -> Result<Value<'a>, Error> {
    meter.work(elements.len().saturating_mul(WORK_PER_ELEMENT))?;
    let Some(first) = keys.first() else {
        return Ok(Value::list(elements));
    };
    if compare(first, first).is_err() {
        return Err(Error::invalid("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Error::invalid("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..elements.len()).collect();
    // NaN compares to nothing; it stays where it is.
    order.sort_by(|&a, &b| {
        compare(&keys[a], &keys[b])
            .ok()
            .flatten()
            .unwrap_or(Ordering::Equal)
    });
    Ok(Value::list(
        order.into_iter().map(|index| elements[index].clone()).collect(),
    ))
}
