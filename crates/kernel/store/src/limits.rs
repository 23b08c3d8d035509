//! etcd's limits on a transaction, checked before it is queued, so that they hold on every backend.

use crate::api::{CompareTarget, MAX_TXN_OPS, MAX_VALUE_BYTES, Op, StoreError, Txn};

/// Keys and values of one transaction together: what etcd's gRPC server takes in one message.
pub const MAX_TXN_BYTES: usize = MAX_VALUE_BYTES + 512 * 1024;

/// Refuses what is over a limit or writes a key twice; returns the size of keys and values together.
pub(crate) fn check(txn: &Txn) -> Result<usize, StoreError> {
    for (what, size) in [
        ("the number of comparisons", txn.compare.len()),
        ("the number of operations", txn.success.len()),
        ("the number of operations", txn.failure.len()),
    ] {
        within(what, size, MAX_TXN_OPS)?;
    }
    let mut total = 0;
    for compare in &txn.compare {
        total += key_size(&compare.key)?;
        if let CompareTarget::Value(value) = &compare.target {
            total += value_size(value)?;
        }
    }
    for op in txn.success.iter().chain(&txn.failure) {
        total += match op {
            Op::Put { key, value, .. } => key_size(key)? + value_size(value)?,
            Op::Delete(keys) => bound_size(&keys.start)? + bound_size(&keys.end)?,
            Op::Get(range) => bound_size(&range.keys.start)? + bound_size(&range.keys.end)?,
        };
    }
    within("the transaction", total, MAX_TXN_BYTES)?;
    check_branch(&txn.success)?;
    check_branch(&txn.failure)?;
    Ok(total)
}

/// Refuses a key or value that no transaction could have written.
pub(crate) fn check_pair(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    key_size(key)?;
    value_size(value)?;
    Ok(())
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit {
        Err(StoreError::TooLarge { what, size, limit })
    } else {
        Ok(())
    }
}

fn key_size(key: &[u8]) -> Result<usize, StoreError> {
    if key.is_empty() {
        return Err(StoreError::EmptyKey);
    }
    bound_size(key)
}

fn bound_size(key: &[u8]) -> Result<usize, StoreError> {
    within("the key", key.len(), MAX_VALUE_BYTES)?;
    Ok(key.len())
}

fn value_size(value: &[u8]) -> Result<usize, StoreError> {
    within("the value", value.len(), MAX_VALUE_BYTES)?;
    Ok(value.len())
}

/// As in etcd, a branch may write a key only once, and may not both write it and delete a range that holds it.
/// Deletions may overlap. At most 128 operations, so comparing each with each is bounded.
fn check_branch(ops: &[Op]) -> Result<(), StoreError> {
    if ops.len() < 2 {
        return Ok(());
    }
    let mut puts: Vec<&[u8]> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Put { key, .. } => Some(&key[..]),
            Op::Delete(_) | Op::Get(_) => None,
        })
        .collect();
    puts.sort_unstable();
    let twice = puts
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0]);
    let deleted = || {
        ops.iter().find_map(|op| match op {
            Op::Delete(keys) => puts.iter().find(|key| keys.contains(key)).copied(),
            Op::Put { .. } | Op::Get(_) => None,
        })
    };
    match twice.or_else(deleted) {
        Some(key) => Err(StoreError::DuplicateKey(
            String::from_utf8_lossy(key).into_owned(),
        )),
        None => Ok(()),
    }
}
