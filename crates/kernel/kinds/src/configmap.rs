//! ConfigMap: keys, total size, immutability.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::read::{self, entries, flag};
use crate::secret::{DATA_MAX, decoded_len};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::validation;

pub(crate) struct ConfigMap;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// Fields that may not change once `immutable` is set.
pub(crate) fn validate_immutable(errs: &mut Errors, obj: &Value, old: &Value, fields: &[&str]) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(obj, "immutable") {
        errs.forbidden(&At::new("immutable"), IMMUTABLE);
    }
    for field in fields {
        if !read::same(obj.get(*field), old.get(*field)) {
            errs.forbidden(&At::new(field), IMMUTABLE);
        }
    }
}

impl Strategy for ConfigMap {
    fn profile(&self) -> &'static Profile {
        &Profile::NAMESPACED
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let mut size = 0;
        let at = At::new("data");
        let binary = read::part(obj, "binaryData");
        for (key, value) in entries(obj, "data") {
            errs.all_invalid(&at.key(key), key, validation::is_config_map_key(key));
            if binary.get(key).is_some() {
                errs.invalid(&at.key(key), key, "duplicate of key present in binaryData");
            }
            size += value.as_str().map_or(0, str::len);
        }
        let at = At::new("binaryData");
        for (key, value) in entries(obj, "binaryData") {
            errs.all_invalid(&at.key(key), key, validation::is_config_map_key(key));
            size += decoded_len(value.as_str().unwrap_or(""));
        }
        if size > DATA_MAX {
            // The error is about the whole object; this is how upstream spells that.
            errs.too_long(&At::new("[]"), DATA_MAX);
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate_immutable(errs, obj, old, &["data", "binaryData"]);
    }
}
