//! Merging maps as the library mergo does it, whose idea of emptiness decides what is kept.

use crate::error::Fault;
use crate::machine::Machine;
use crate::value::{Map, Value};

const MAX_DEPTH: usize = 200;

/// What mergo counts as empty.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Struct(_) | Value::Time(_) => false,
        other => !other.truth(),
    }
}

/// Adds the entries of `source` to `target`, in place. Without `overwrite`, only what is missing or empty there.
pub fn merge_maps(
    machine: &mut Machine<'_>,
    target: &Map,
    source: &Map,
    overwrite: bool,
) -> Result<(), Fault> {
    merge(machine, target, source, overwrite, MAX_DEPTH)
}

fn merge(
    machine: &mut Machine<'_>,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), Fault> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::new(format!(
            "cannot merge maps with more than {MAX_DEPTH} nested levels"
        )));
    };
    if target.is(source) {
        return Ok(());
    }
    machine.changed(target);
    for (key, value) in source.entries() {
        machine.spend(1)?;
        let old = target.get(&key);
        if value.is_nil() {
            if overwrite {
                target.set(key, value);
            }
            continue;
        }
        match (&value, &old) {
            (Value::Map(inner), Some(Value::Map(own))) => {
                merge(machine, own, inner, overwrite, depth)?;
                if !own.is_empty() {
                    continue;
                }
            }
            (Value::List(_) | Value::Bytes(_), Some(old)) => {
                if overwrite {
                    target.set(key, value);
                    continue;
                }
                if !is_empty(old) {
                    continue;
                }
            }
            _ => {}
        }
        if overwrite || old.as_ref().is_none_or(is_empty) {
            target.set(key, value);
        }
    }
    Ok(())
}
