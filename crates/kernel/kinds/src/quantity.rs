//! Amounts of resources in objects: reading them, and bringing them to the one form in which the API stores them.

use serde_json::Value;

pub use fairway_kernel_scalar::quantity::{FORMAT_ERROR, Format, Quantity, QuantityError};

use crate::read;

/// Brings a quantity field to its canonical form; what is no quantity stays for the validator to refuse.
pub fn canonicalize(obj: &mut Value, key: &str) {
    if let Some(slot) = obj.get_mut(key) {
        canonicalize_value(slot, false);
    }
}

fn canonicalize_value(slot: &mut Value, round_to_milli: bool) {
    let Some(mut quantity) = Quantity::from_value(slot) else {
        return;
    };
    if round_to_milli {
        quantity = quantity.round_up_milli();
    }
    let text = quantity.canonical();
    if slot.as_str() != Some(&text) {
        *slot = Value::String(text);
    }
}

/// Brings every amount of a resource list (`limits`, `capacity`, `hard`) to its canonical form, in thousandths.
pub fn canonicalize_list(obj: &mut Value, key: &str) {
    for (_, slot) in obj
        .get_mut(key)
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        canonicalize_value(slot, true);
    }
}

/// The amounts of a resource list.
pub fn amounts<'a>(obj: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, Option<Quantity>)> {
    read::entries(obj, key).map(|(name, value)| (name, Quantity::from_value(value)))
}

#[cfg(test)]
mod tests {
    use super::canonicalize_list;

    #[test]
    fn resource_lists_round_up_to_thousandths() {
        let mut obj = serde_json::json!({"limits": {"cpu": 1, "memory": "1024Mi", "x": "100u", "y": " 1 "}});
        canonicalize_list(&mut obj, "limits");
        assert_eq!(
            obj,
            serde_json::json!({"limits": {"cpu": "1", "memory": "1Gi", "x": "1m", "y": "1"}})
        );
    }
}
