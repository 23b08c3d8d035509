//! Secret: types and the keys they need, the write-only `stringData`, total size, immutability.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use crate::at::{At, Errors};
use crate::configmap::validate_immutable;
use crate::read::{self, entries, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_changed};
use crate::{meta, validation};

/// Most bytes that the data of a Secret or ConfigMap may have.
pub(crate) const DATA_MAX: usize = 1024 * 1024;
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const REDACTED: &str = "<secret contents redacted>";

/// As Go's standard encoding: padded, and lenient about the bits after the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// How many bytes a base64 text stands for.
pub(crate) fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3 + (text.len() % 4).saturating_sub(1)).saturating_sub(padding)
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|e| match e {
        base64::DecodeError::InvalidByte(at, _) => {
            format!("illegal base64 data at input byte {at}")
        }
        _ => format!("illegal base64 data at input byte {}", text.len() / 4 * 4),
    })
}

pub(crate) struct Secret;

impl Strategy for Secret {
    fn profile(&self) -> &'static Profile {
        &Profile::NAMESPACED
    }

    fn default(&self, obj: &mut Value) {
        read::set_default_text(obj, "type", "Opaque");
        for (_, value) in obj
            .get_mut("data")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            // Line breaks inside base64 are allowed and say nothing.
            if let Value::String(s) = value
                && s.contains(['\n', '\r'])
            {
                s.retain(|c| c != '\n' && c != '\r');
            }
        }
        if let Some(Value::Object(plain)) = read::unset(obj, "stringData")
            && !plain.is_empty()
        {
            let data = part_mut(obj, "data");
            for (key, value) in plain {
                read::set(data, &key, BASE64.encode(value.as_str().unwrap_or("")));
            }
        }
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        if text(obj, "type").is_empty() {
            read::copy(obj, old, "type");
        }
        prepare_changed(self.profile(), ctx, obj, old);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let at = At::new("data");
        let mut size = 0;
        for (key, value) in entries(obj, "data") {
            errs.all_invalid(&at.key(key), key, validation::is_config_map_key(key));
            let encoded = value.as_str().unwrap_or("");
            match decode(encoded) {
                Ok(bytes) => size += bytes.len(),
                Err(why) => errs.invalid(&at.key(key), REDACTED, why),
            }
        }
        if size > DATA_MAX {
            errs.too_long(&at, DATA_MAX);
        }
        validate_type(errs, &at, obj);
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("type"), obj.get("type"), old.get("type"));
        validate_immutable(errs, obj, old, &["data"]);
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![("type", text(obj, "type").to_owned())]
    }
}

fn validate_type(errs: &mut Errors, at: &At<'_>, obj: &Value) {
    let data = part(obj, "data");
    let missing = |key: &&str| data.get(*key).is_none();
    let needed: Vec<&str> = match text(obj, "type") {
        "kubernetes.io/service-account-token" => {
            let name = meta::annotation(obj, SERVICE_ACCOUNT_NAME).unwrap_or("");
            if name.is_empty() {
                errs.required(&At::new("metadata.annotations").key(SERVICE_ACCOUNT_NAME), "");
            }
            return;
        }
        "kubernetes.io/dockercfg" => return validate_json(errs, at, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => return validate_json(errs, at, data, ".dockerconfigjson"),
        // One of the two is enough, but without either both are named.
        "kubernetes.io/basic-auth" if ["username", "password"].iter().all(&missing) => {
            vec!["username", "password"]
        }
        "kubernetes.io/ssh-auth" if text(data, "ssh-privatekey").is_empty() => vec!["ssh-privatekey"],
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().filter(missing).collect(),
        _ => return,
    };
    for key in needed {
        errs.required(&at.key(key), "");
    }
}

fn validate_json(errs: &mut Errors, at: &At<'_>, data: &Value, key: &str) {
    let Some(encoded) = data.get(key).and_then(Value::as_str) else {
        errs.required(&at.key(key), "");
        return;
    };
    if let Ok(bytes) = decode(encoded)
        && let Err(why) = serde_json::from_slice::<Map<String, Value>>(&bytes)
    {
        let fault = fairway_text_yaml::json_fault(&bytes).unwrap_or_else(|| why.to_string());
        errs.invalid(&at.key(key), REDACTED, fault);
    }
}
