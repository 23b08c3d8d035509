//! Equality, order, membership, indexing and size.

use std::cmp::Ordering;

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::{List, MapBuilder, Value, compare, equals};

pub(super) fn register(r: &mut Registry) {
    r.add("_==_", "(A, A) -> bool", Cost::Equality, equal);
    r.add("_!=_", "(A, A) -> bool", Cost::Inequality, not_equal);
    type Order = for<'a> fn(&Meter, &[Value<'a>]) -> Result<Value<'a>, Error>;
    let orders: [(&str, Order); 4] = [
        ("_<_", less),
        ("_<=_", less_or_equal),
        ("_>_", greater),
        ("_>=_", greater_or_equal),
    ];
    for (name, call) in orders {
        for ty in [
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "timestamp",
            "duration",
        ] {
            let cost = if matches!(ty, "string" | "bytes") {
                Cost::Smaller
            } else {
                Cost::Fixed(1)
            };
            r.add(name, &format!("({ty}, {ty}) -> bool"), cost, call);
        }
        for pair in [
            "int, uint",
            "int, double",
            "uint, int",
            "uint, double",
            "double, int",
            "double, uint",
        ] {
            r.add(name, &format!("({pair}) -> bool"), Cost::Fixed(1), call);
        }
    }
    r.add("@in", "(A, list<A>) -> bool", Cost::InList, in_list);
    r.add("@in", "(A, map<A, B>) -> bool", Cost::Fixed(1), in_map);
    r.add("_[_]", "(list<A>, int) -> A", Cost::IndexList, index);
    r.add("_[_]", "(map<A, B>, A) -> B", Cost::IndexMap, index);
    r.add(
        "_[_]",
        "(optional<list<A>>, int) -> optional<A>",
        Cost::IndexList,
        optional_index,
    );
    r.add(
        "_[_]",
        "(optional<map<A, B>>, A) -> optional<B>",
        Cost::IndexMap,
        optional_index,
    );
    r.add(
        "_[?_]",
        "(list<A>, int) -> optional<A>",
        Cost::IndexList,
        optional_index,
    );
    r.add(
        "_[?_]",
        "(map<A, B>, A) -> optional<B>",
        Cost::IndexMap,
        optional_index,
    );
    r.add(
        "_[?_]",
        "(optional<list<A>>, int) -> optional<A>",
        Cost::IndexList,
        optional_index,
    );
    r.add(
        "_[?_]",
        "(optional<map<A, B>>, A) -> optional<B>",
        Cost::IndexMap,
        optional_index,
    );
    r.add("!_", "(bool) -> bool", Cost::Fixed(1), not);
    // Planned as nodes of their own, since they do not evaluate all their arguments; declared for the checker.
    r.add("_?_:_", "(bool, A, A) -> A", Cost::Conditional, no_call);
    r.add("_&&_", "(bool, bool) -> bool", Cost::Logical, no_call);
    r.add("_||_", "(bool, bool) -> bool", Cost::Logical, no_call);
    r.add("@not_strictly_false", "(bool) -> bool", Cost::Fixed(1), no_call);
    for ty in ["string", "bytes", "list<A>", "map<A, B>"] {
        r.add("size", &format!("({ty}) -> int"), Cost::Fixed(1), size);
        r.add("size", &format!("{ty}.() -> int"), Cost::Fixed(1), size);
    }
    r.add("type", "(A) -> type<A>", Cost::Fixed(1), |_, args| {
        Ok(Value::Type(args[0].type_name()))
    });
    r.add("dyn", "(A) -> dyn", Cost::Fixed(1), |_, args| Ok(args[0].clone()));
    r.add(
        "cel.@mapInsert",
        "(map<K, V>, K, V) -> map<K, V>",
        Cost::Fixed(1),
        map_insert,
    );
    r.add(
        "cel.@mapInsert",
        "(map<K, V>, map<K, V>) -> map<K, V>",
        Cost::Fixed(1),
        map_insert_all,
    );
}

fn no_call<'a>(_: &Meter, _: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Err(Error::NoSuchOverload)
}

fn equal<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    equals(meter, &args[0], &args[1]).map(Value::Bool)
}

fn not_equal<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    equals(meter, &args[0], &args[1]).map(|equal| Value::Bool(!equal))
}

/// NaN has no order, so every comparison with it is false.
fn ordered<'a>(args: &[Value<'_>], holds: fn(Ordering) -> bool) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(compare(&args[0], &args[1])?.is_some_and(holds)))
}

fn less<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, Ordering::is_lt)
}

fn less_or_equal<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, Ordering::is_le)
}

fn greater<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, Ordering::is_gt)
}

fn greater_or_equal<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, Ordering::is_ge)
}

fn not<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(!*arg!(args, 0, Bool)))
}

fn in_list<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    for element in arg!(args, 1, List).iter() {
        if equals(meter, &element?, &args[0])? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn in_map<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(arg!(args, 1, Map).get(&args[0])?.is_some()))
}

fn size<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Int(args[0].size() as i64))
}

/// The position that an index means; doubles and unsigned numbers count if they are whole.
fn position(list: &List<'_>, index: &Value<'_>) -> Result<Option<usize>, Error> {
    let index = match index {
        Value::Int(index) => *index,
        Value::Uint(index) => i64::try_from(*index).unwrap_or(i64::MAX),
        Value::Double(index) if index.fract() == 0.0 => *index as i64,
        other => {
            return Err(Error::invalid(format!(
                "unsupported index type '{}' in list",
                other.type_name()
            )));
        }
    };
    Ok(usize::try_from(index).ok().filter(|index| *index < list.len()))
}

fn shown_index(index: &Value<'_>) -> i64 {
    match index {
        Value::Int(index) => *index,
        Value::Uint(index) => i64::try_from(*index).unwrap_or(i64::MAX),
        Value::Double(index) => *index as i64,
        _ => -1,
    }
}

/// `container[key]`
pub(crate) fn index<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::List(list) => match position(list, &args[1])? {
            Some(index) => list.get(index),
            None => Err(Error::IndexOutOfBounds(shown_index(&args[1]))),
        },
        Value::Map(map) => match map.get(&args[1])? {
            Some(value) => Ok(value),
            None => Err(Error::NoSuchKey(shown_key(&args[1]).into())),
        },
        Value::Optional(_) => optional_lookup(&args[0], &args[1]),
        _ => Err(Error::NoSuchOverload),
    }
}

fn shown_key(key: &Value<'_>) -> String {
    match key {
        Value::String(text) => text.as_str().to_owned(),
        other => super::conversion::display(other),
    }
}

fn optional_index<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    optional_lookup(&args[0], &args[1])
}

fn optional_lookup<'a>(container: &Value<'a>, key: &Value<'a>) -> Result<Value<'a>, Error> {
    match container {
        Value::Optional(None) => Ok(Value::none()),
        Value::Optional(Some(inner)) => optional_lookup(inner, key),
        Value::List(list) => match position(list, key)? {
            Some(index) => list.get(index).map(Value::some),
            None => Ok(Value::none()),
        },
        Value::Map(map) => Ok(map.get(key)?.map_or_else(Value::none, Value::some)),
        _ => Err(Error::NoSuchOverload),
    }
}

fn map_insert<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let map = arg!(args, 0, Map);
    meter.work(map.len() * 32)?;
    let mut builder = MapBuilder::extend(map.clone())?;
    builder.insert(args[1].clone(), args[2].clone())?;
    Ok(Value::Map(builder.finish()))
}

fn map_insert_all<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (map, more) = (arg!(args, 0, Map), arg!(args, 1, Map));
    meter.work((map.len() + more.len()) * 32)?;
    let mut builder = MapBuilder::extend(map.clone())?;
    for key in more.keys() {
        if let Some(value) = more.get(&key)? {
            builder.insert(key, value)?;
        }
    }
    Ok(Value::Map(builder.finish()))
}
