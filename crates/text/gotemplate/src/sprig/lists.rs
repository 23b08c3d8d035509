//! Lists. Nothing changes a list in place: each function gives a new one.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::sprig::cast::to_int;
use crate::sprig::equal::deep_equal;
use crate::sprig::strings::texts;
use crate::value::{LIST_OF_LISTS, UintType, Value};

use Param::{Any, Int};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::variadic("tuple", &[Any], |_, args| Ok(Value::list(args.to_vec()))),
    Func::variadic("list", &[Any], |_, args| Ok(Value::list(args.to_vec()))),
    Func::new("append", &[Any, Any], push),
    Func::new("push", &[Any, Any], push),
    Func::new("mustAppend", &[Any, Any], push),
    Func::new("mustPush", &[Any, Any], push),
    Func::new("prepend", &[Any, Any], prepend),
    Func::new("mustPrepend", &[Any, Any], prepend),
    Func::new("first", &[Any], first),
    Func::new("mustFirst", &[Any], first),
    Func::new("last", &[Any], last),
    Func::new("mustLast", &[Any], last),
    Func::new("rest", &[Any], rest),
    Func::new("mustRest", &[Any], rest),
    Func::new("initial", &[Any], initial),
    Func::new("mustInitial", &[Any], initial),
    Func::new("reverse", &[Any], reverse),
    Func::new("mustReverse", &[Any], reverse),
    Func::new("compact", &[Any], compact),
    Func::new("mustCompact", &[Any], compact),
    Func::new("uniq", &[Any], uniq),
    Func::new("mustUniq", &[Any], uniq),
    Func::variadic("without", &[Any, Any], without),
    Func::variadic("mustWithout", &[Any, Any], without),
    Func::new("has", &[Any, Any], has),
    Func::new("mustHas", &[Any, Any], has),
    Func::variadic("slice", &[Any, Any], slice),
    Func::variadic("mustSlice", &[Any, Any], slice),
    Func::variadic("concat", &[Any], concat),
    Func::new("chunk", &[Int, Any], chunk),
    Func::new("mustChunk", &[Int, Any], chunk),
    Func::new("sortAlpha", &[Any], sort_alpha),
];

/// The elements of a list, or the refusal of anything else.
fn elements(machine: &mut Machine<'_>, value: &Value, refusal: &str) -> Result<Vec<Value>, Fault> {
    let items = match value {
        Value::List(list) => list.items.clone(),
        Value::Bytes(bytes) => bytes
            .iter()
            .map(|byte| Value::Uint(UintType::Uint8, u64::from(*byte)))
            .collect(),
        Value::Invalid | Value::Nil => {
            return Err("runtime error: invalid memory address or nil pointer dereference".into());
        }
        other => return Err(format!("{refusal} {}", other.kind()).into()),
    };
    machine.spend(items.len() as u64)?;
    Ok(items)
}

fn push(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut items = elements(machine, arg::any(args, 0), "Cannot push on type")?;
    items.push(arg::any(args, 1).clone());
    Ok(Value::list(items))
}

fn prepend(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut items = elements(machine, arg::any(args, 0), "Cannot prepend on type")?;
    items.insert(0, arg::any(args, 1).clone());
    Ok(Value::list(items))
}

fn first(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let items = elements(machine, arg::any(args, 0), "Cannot find first on type")?;
    Ok(items.into_iter().next().unwrap_or(Value::Nil))
}

fn last(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let items = elements(machine, arg::any(args, 0), "Cannot find last on type")?;
    Ok(items.into_iter().next_back().unwrap_or(Value::Nil))
}

fn rest(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let items = elements(machine, arg::any(args, 0), "Cannot find rest on type")?;
    Ok(Value::list(items.into_iter().skip(1).collect()))
}

fn initial(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut items = elements(machine, arg::any(args, 0), "Cannot find initial on type")?;
    items.pop();
    Ok(Value::list(items))
}

fn reverse(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut items = elements(machine, arg::any(args, 0), "Cannot find reverse on type")?;
    items.reverse();
    Ok(Value::list(items))
}

fn compact(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut items = elements(machine, arg::any(args, 0), "Cannot compact on type")?;
    items.retain(Value::truth);
    Ok(Value::list(items))
}

fn contains(machine: &mut Machine<'_>, items: &[Value], needle: &Value) -> Result<bool, Fault> {
    machine.spend(items.len() as u64 / 4)?;
    for item in items {
        if deep_equal(needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let items = elements(machine, arg::any(args, 0), "Cannot find uniq on type")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !contains(machine, &kept, &item)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn without(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let items = elements(machine, arg::any(args, 0), "Cannot find without on type")?;
    let mut kept = Vec::new();
    for item in items {
        if !contains(machine, &args[1..], &item)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn has(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let haystack = arg::any(args, 1);
    if haystack.is_nil() {
        return Ok(Value::Bool(false));
    }
    let items = elements(machine, haystack, "Cannot find has on type")?;
    Ok(Value::Bool(contains(machine, &items, arg::any(args, 0))?))
}

fn slice(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let list = arg::any(args, 0);
    let items = elements(machine, list, "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = args.get(1).map_or(0, to_int);
    let end = args.get(2).map_or(items.len() as i64, to_int);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let Some(part) = range.and_then(|(start, end)| items.get(start..end)) else {
        return Err("reflect.Value.Slice: slice index out of bounds".into());
    };
    Ok(match list {
        Value::List(list) => Value::typed_list(list.ty, part.to_vec()),
        Value::Bytes(bytes) => Value::Bytes(bytes[start as usize..end as usize].into()),
        _ => Value::list(part.to_vec()),
    })
}

fn concat(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut all = Vec::new();
    for list in args {
        if !matches!(
            list,
            Value::List(_) | Value::Bytes(_) | Value::Invalid | Value::Nil
        ) {
            return Err(format!("Cannot concat type {} as list", list.kind()).into());
        }
        all.append(&mut elements(machine, list, "Cannot concat type")?);
    }
    Ok(Value::list(all))
}

fn chunk(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let items = elements(machine, arg::any(args, 1), "Cannot chunk type")?;
    let Some(size) = arg::count(args, 0).filter(|size| *size > 0) else {
        return Err("runtime error: makeslice: len out of range".into());
    };
    let chunks = items
        .chunks(size)
        .map(|chunk| Value::list(chunk.to_vec()))
        .collect();
    Ok(Value::typed_list(&LIST_OF_LISTS, chunks))
}

fn sort_alpha(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut sorted = texts(arg::any(args, 0))?;
    machine.spend(sorted.len() as u64)?;
    if matches!(arg::any(args, 0), Value::Invalid | Value::Nil) {
        sorted.push(b"<nil>".to_vec());
    }
    sorted.sort();
    Ok(Value::strings(sorted))
}
