//! One served version of a CRD: decode, default, prepare, validate.

use std::sync::Arc;

use fairway_admission::Admission;
use fairway_kernel_kinds::at::Errors;
use fairway_kernel_kinds::meta::{self as object_meta, NameRule};
use fairway_kernel_schema::crd::Version;
use fairway_kernel_schema::field::FieldError;
use fairway_kernel_schema::jsonpath::JsonPath;
use fairway_kernel_schema::structural::{Budget, Structural};
use fairway_kernel_table::CustomColumns;
use serde_json::{Value, json};

use super::schema::Schema;
use crate::rest::call::metadata_mut;
use crate::status::ApiError;

/// A served version.
pub struct CustomVersion {
    /// What the CRD says of it.
    pub version: Version,
    /// Its schema.
    pub schema: Schema,
    /// Columns of tables.
    pub columns: CustomColumns,
    /// Where the cells of the columns after the name come from.
    pub paths: Vec<Option<JsonPath>>,
    /// Said on every write of a deprecated version.
    pub deprecation: Option<String>,
    /// For discovery.
    pub storage_hash: String,
    /// Objects older than this were written under another schema.
    pub schema_since: u64,
    /// Changes when its schema does.
    pub fingerprint: u64,
    /// Where its definition is.
    pub origin: super::Origin,
    /// What completes and judges its objects, beyond the schema.
    pub domain: Option<Arc<dyn Admission>>,
}

impl CustomVersion {
    fn structural(&self) -> &Structural {
        &self.schema.get().structural
    }

    /// Whether an object was stored before this schema took effect, so that it must be defaulted when it is read.
    pub fn predates_schema(&self, revision: u64) -> bool {
        revision < self.schema_since
    }

    /// Brings an object that was stored under another schema up to this one.
    pub fn refresh(&self, object: &mut Value) {
        self.structural().prune(object);
        self.structural().default(object);
    }

    /// Drops what the schema does not have; returns the paths.
    pub fn prune(&self, object: &mut Value) -> Result<Vec<String>, ApiError> {
        let mut unknown = self.structural().prune(object);
        let coerced = self
            .structural()
            .coerce(object)
            .map_err(|e| ApiError::bad_request(e.to_string()))?;
        unknown.extend(coerced);
        self.structural().drop_nulls(object);
        Ok(unknown)
    }

    /// Fills in the schema's defaults.
    pub fn default(&self, object: &mut Value) {
        self.structural().default(object);
    }

    /// A new object has no status of its own, and generation 1.
    pub fn prepare_create(&self, object: &mut Value) {
        if self.version.subresources.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.shift_remove("status");
        }
        metadata_mut(object).insert("generation".to_owned(), 1.into());
    }

    /// Each endpoint changes only its part; a change of anything but metadata and status raises the generation.
    pub fn prepare_update(&self, subresource: Option<&str>, object: &mut Value, old: &Value) {
        if subresource == Some("status") {
            self.keep_all_but_status(object, old);
            return;
        }
        if self.version.subresources.status
            && let Some(fields) = object.as_object_mut()
        {
            match old.get("status") {
                Some(status) => {
                    fields.insert("status".to_owned(), status.clone());
                }
                None => {
                    fields.shift_remove("status");
                }
            }
        }
        if self.content_differs(object, old) {
            let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
            metadata_mut(object).insert("generation".to_owned(), (before + 1).into());
        }
    }

    fn keep_all_but_status(&self, object: &mut Value, old: &Value) {
        let status = object.get("status").cloned();
        let managed = object["metadata"].get("managedFields").cloned();
        let mut kept = old.clone();
        if let Some(fields) = kept.as_object_mut() {
            match status {
                Some(status) => {
                    fields.insert("status".to_owned(), status);
                }
                None => {
                    fields.shift_remove("status");
                }
            }
        }
        match managed {
            Some(managed) => {
                metadata_mut(&mut kept).insert("managedFields".to_owned(), managed);
            }
            None => {
                metadata_mut(&mut kept).shift_remove("managedFields");
            }
        }
        *object = kept;
    }

    fn content_differs(&self, new: &Value, old: &Value) -> bool {
        let counted = |key: &str| key != "metadata" && !(self.version.subresources.status && key == "status");
        let fields = |object: &Value| -> Vec<(String, Value)> {
            object
                .as_object()
                .map(|o| {
                    o.iter()
                        .filter(|(k, _)| counted(k))
                        .map(|(k, v)| (k.clone(), v.clone()))
                        .collect()
                })
                .unwrap_or_default()
        };
        let (mut new, mut old) = (fields(new), fields(old));
        new.sort_by(|a, b| a.0.cmp(&b.0));
        old.sort_by(|a, b| a.0.cmp(&b.0));
        new != old
    }

    /// Everything that is wrong with a new object.
    pub fn validate_create(&self, object: &Value, namespaced: bool) -> Vec<FieldError> {
        let mut errors = Errors::new();
        object_meta::validate_create(&mut errors, object, namespaced, NameRule::Subdomain);
        let budget = &mut Budget::default();
        let found = self
            .structural()
            .validate_after(errors.into_vec(), object, None, budget);
        self.with_scale_errors(found, object, false)
    }

    /// Everything that is wrong with a changed object.
    pub fn validate_update(&self, subresource: Option<&str>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        object_meta::validate_update(&mut errors, object, old);
        let mut errors = errors.into_vec();
        let mut budget = Budget::default();
        let status = subresource == Some("status");
        let found = if status {
            self.structural().validate_status(object, old, &mut budget)
        } else {
            self.structural().validate(object, Some(old), &mut budget)
        };
        errors.extend(self.with_scale_errors(found, object, status));
        errors
    }

    /// What is wrong with the fields that `scale` reads stands before the remark that rules were not checked.
    fn with_scale_errors(&self, mut found: Vec<FieldError>, object: &Value, status: bool) -> Vec<FieldError> {
        if let Some(scale) = &self.version.subresources.scale {
            let at = found
                .iter()
                .position(|e| e.path.as_str().is_empty())
                .unwrap_or(found.len());
            found.splice(at..at, scale.validate(object, status));
        }
        found
    }

    /// Said on every write.
    pub fn warnings(&self) -> Vec<String> {
        self.deprecation.iter().cloned().collect()
    }

    /// Fields that an apply through this endpoint cannot own.
    pub fn reset_fields(&self, subresource: Option<&str>) -> &'static [&'static str] {
        match subresource {
            None if self.version.subresources.status => &["status"],
            Some("status") => &["spec", "metadata"],
            _ => &[],
        }
    }

    /// The fields that selectors may use, with their values.
    pub fn selectable_fields(&self, object: &Value) -> Vec<(String, String)> {
        self.version
            .selectable_fields
            .iter()
            .map(|field| (field.name.clone(), field.value(object)))
            .collect()
    }

    /// The object as a `Scale`.
    pub fn scale(&self, object: &Value) -> Result<Value, ApiError> {
        let paths = self
            .version
            .subresources
            .scale
            .as_ref()
            .ok_or_else(ApiError::no_such_path)?;
        let replicas = paths
            .spec_replicas(object)
            .map_err(ApiError::internal)?
            .unwrap_or(0);
        let observed = paths
            .status_replicas(object)
            .map_err(ApiError::internal)?
            .unwrap_or(0);
        let mut meta = serde_json::Map::new();
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object["metadata"].get(field) {
                meta.insert(field.to_owned(), value.clone());
            }
        }
        let mut status = json!({"replicas": observed});
        if let Some(selector) = paths.label_selector(object).map_err(ApiError::internal)? {
            status["selector"] = selector.into();
        }
        Ok(json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta,
            "spec": {"replicas": replicas}, "status": status,
        }))
    }

    /// Sets the number of replicas.
    pub fn set_replicas(&self, object: &mut Value, replicas: i64) -> Result<(), ApiError> {
        let paths = self
            .version
            .subresources
            .scale
            .as_ref()
            .ok_or_else(ApiError::no_such_path)?;
        paths
            .set_spec_replicas(object, replicas)
            .map_err(ApiError::internal)
    }
}
