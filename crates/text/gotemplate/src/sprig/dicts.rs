//! Dictionaries, which are shared: `set` is seen by everyone who holds the same one.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::sprig::cast::to_text;
use crate::sprig::merge::merge_maps;
use crate::value::{ANY_MAP, Entries, Map as Dict, Value};

use Param::{Any, Map, Str};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::variadic("dict", &[Any], dict),
    Func::new("get", &[Map, Str], |_, args| {
        let found = arg::map(args, 0).and_then(|map| map.get(arg::bytes(args, 1)));
        Ok(found.unwrap_or_else(|| "".into()))
    }),
    Func::new("set", &[Map, Str, Any], set),
    Func::new("unset", &[Map, Str], |_, args| {
        if let Some(map) = arg::map(args, 0) {
            map.remove(arg::bytes(args, 1));
        }
        Ok(arg::any(args, 0).clone())
    }),
    Func::new("hasKey", &[Map, Str], |_, args| {
        Ok(Value::Bool(
            arg::map(args, 0).is_some_and(|map| map.contains(arg::bytes(args, 1))),
        ))
    }),
    Func::variadic("pluck", &[Str, Map], |_, args| {
        let maps = args[1..].iter().filter_map(Value::as_map);
        Ok(Value::list(
            maps.filter_map(|map| map.get(arg::bytes(args, 0))).collect(),
        ))
    }),
    Func::variadic("keys", &[Map], keys),
    Func::new("values", &[Map], |machine, args| {
        let entries = arg::map(args, 0).map(Dict::entries).unwrap_or_default();
        machine.spend(entries.len() as u64)?;
        Ok(Value::list(entries.into_iter().map(|(_, value)| value).collect()))
    }),
    Func::variadic("pick", &[Map, Str], |_, args| {
        let mut picked = Entries::new();
        for key in args[1..].iter().filter_map(Value::as_str) {
            if let Some(value) = arg::map(args, 0).and_then(|map| map.get(key)) {
                picked.insert(key.clone(), value);
            }
        }
        Ok(Value::map(picked))
    }),
    Func::variadic("omit", &[Map, Str], |machine, args| {
        let entries = arg::map(args, 0).map(Dict::entries).unwrap_or_default();
        machine.spend(entries.len() as u64)?;
        let omitted: Vec<_> = args[1..].iter().filter_map(Value::as_str).collect();
        Ok(Value::map(
            entries
                .into_iter()
                .filter(|(key, _)| !omitted.contains(&key))
                .collect(),
        ))
    }),
    Func::variadic("merge", &[Map, Map], |machine, args| merge(machine, args, false)),
    Func::variadic("mustMerge", &[Map, Map], |machine, args| {
        merge(machine, args, false)
    }),
    Func::variadic("mergeOverwrite", &[Map, Map], |machine, args| {
        merge(machine, args, true)
    }),
    Func::variadic("mustMergeOverwrite", &[Map, Map], |machine, args| {
        merge(machine, args, true)
    }),
    Func::new("deepCopy", &[Any], |machine, args| {
        copy(machine, arg::any(args, 0), MAX_DEPTH)
    }),
    Func::new("mustDeepCopy", &[Any], |machine, args| {
        copy(machine, arg::any(args, 0), MAX_DEPTH)
    }),
    Func::variadic("dig", &[Any], dig),
];

const MAX_DEPTH: usize = 200;

fn dict(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    machine.spend(args.len() as u64)?;
    let mut entries = Entries::new();
    for pair in args.chunks(2) {
        let key = to_text(arg::any(pair, 0))?;
        let value = pair.get(1).cloned().unwrap_or_else(|| "".into());
        entries.insert(key.into(), value);
    }
    Ok(Value::map(entries))
}

fn set(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let Some(map) = arg::map(args, 0) else {
        return Err("assignment to entry in nil map".into());
    };
    machine.changed(map);
    map.set(arg::shared(args, 1), arg::any(args, 2).clone());
    Ok(arg::any(args, 0).clone())
}

fn keys(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut all = Vec::new();
    for map in args.iter().filter_map(Value::as_map) {
        machine.spend(map.len() as u64)?;
        all.extend(map.keys());
    }
    Ok(Value::strings(all))
}

fn merge(machine: &mut Machine<'_>, args: &[Value], overwrite: bool) -> Answer {
    let target = match arg::map(args, 0) {
        Some(target) => target.clone(),
        None => Dict::new(Entries::new()),
    };
    for source in args[1..].iter().filter_map(Value::as_map) {
        merge_maps(machine, &target, source, overwrite)?;
    }
    Ok(Value::Map(target))
}

fn copy(machine: &mut Machine<'_>, value: &Value, depth: usize) -> Answer {
    machine.spend(1)?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::new(format!(
            "cannot copy a value with more than {MAX_DEPTH} nested levels"
        )));
    };
    Ok(match value {
        Value::List(list) => {
            let items: Result<Vec<Value>, Fault> =
                list.items.iter().map(|item| copy(machine, item, depth)).collect();
            Value::typed_list(list.ty, items?)
        }
        Value::Map(map) => {
            let mut entries = Entries::new();
            for (key, value) in map.entries() {
                entries.insert(key, copy(machine, &value, depth)?);
            }
            Value::Map(Dict::typed(map.ty(), entries))
        }
        other => other.clone(),
    })
}

fn dig(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let [keys @ .., default, start] = args else {
        return Err("dig needs at least three arguments".into());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let conversion = |value: &Value, wanted: &str| {
        let found = if value.is_nil() { "nil" } else { value.type_name() };
        Fault::new(format!(
            "interface conversion: interface {{}} is {found}, not {wanted}"
        ))
    };
    let mut at = start.clone();
    for key in keys {
        let map = match &at {
            Value::Map(map) if std::ptr::eq(map.ty(), &raw const ANY_MAP) => map.clone(),
            other => return Err(conversion(other, ANY_MAP.name)),
        };
        let Value::Str(key) = key else {
            return Err(conversion(key, "string"));
        };
        match map.get(key) {
            Some(value) => at = value,
            None => return Ok(default.clone()),
        }
    }
    Ok(at)
}
