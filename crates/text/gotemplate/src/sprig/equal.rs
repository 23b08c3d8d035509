//! Go's `reflect.DeepEqual`: same type, same content.

use crate::value::Value;

const MAX_DEPTH: usize = 200;

/// Whether two values are equal through and through; an error if they are nested too deeply to know.
pub fn deep_equal(left: &Value, right: &Value) -> Result<bool, String> {
    compare(left, right, MAX_DEPTH)
}

fn compare(left: &Value, right: &Value, depth: usize) -> Result<bool, String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!(
            "cannot compare values with more than {MAX_DEPTH} nested levels"
        ));
    };
    Ok(match (left, right) {
        (Value::Invalid | Value::Nil, Value::Invalid | Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left_type, left), Value::Int(right_type, right)) => {
            left_type == right_type && left == right
        }
        (Value::Uint(left_type, left), Value::Uint(right_type, right)) => {
            left_type == right_type && left == right
        }
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Str(left), Value::Str(right)) | (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Time(left), Value::Time(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            if !std::ptr::eq(left.ty, right.ty) || left.items.len() != right.items.len() {
                return Ok(false);
            }
            for (left, right) in left.items.iter().zip(&right.items) {
                if !compare(left, right, depth)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) => {
            if left.is(right) {
                return Ok(true);
            }
            if !std::ptr::eq(left.ty(), right.ty()) || left.len() != right.len() {
                return Ok(false);
            }
            left.with(|left| {
                for (key, value) in left {
                    match right.get(key) {
                        Some(other) if compare(value, &other, depth)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok::<bool, String>(true)
            })?
        }
        (Value::Struct(left), Value::Struct(right)) => {
            if !std::ptr::eq(left.ty, right.ty) {
                return Ok(false);
            }
            for (left, right) in left.fields.iter().zip(&right.fields) {
                if !compare(left, right, depth)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}
