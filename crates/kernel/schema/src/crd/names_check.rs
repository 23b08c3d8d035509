//! Whether the names of a definition are names.

use serde_json::Value;

use super::{list, text};
use crate::field::{FieldError, Path};
use fairway_kernel_scalar::names::is_dns1035_label;

/// Names that have to be there: in `spec`, but not in the status.
pub(super) fn required(names: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(names, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
}

/// Names that are there.
pub(super) fn check(names: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular"] {
        let name = text(names, field);
        let wrong = is_dns1035_label(name);
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.child(field), name, wrong.join(",")));
        }
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field);
        let wrong = is_dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !wrong.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                wrong.join(",")
            );
            errors.push(FieldError::invalid(&path.child(field), name, detail));
        }
    }
    let each = |field: &str, errors: &mut Vec<FieldError>| {
        let at = path.child(field);
        for (i, name) in list(names, field).iter().enumerate() {
            let wrong = is_dns1035_label(name.as_str().unwrap_or(""));
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(&at.index(i), name.clone(), wrong.join(",")));
            }
        }
    };
    each("shortNames", errors);
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), list_kind, detail));
    }
    each("categories", errors);
}
