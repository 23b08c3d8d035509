//! Structural schemas: the types of custom resources.
//!
//! [`Structural`] is compiled once from the `openAPIV3Schema` of a CustomResourceDefinition's version and then shared.
//! Reading an object goes through [`Structural::decode`] (prune, coerce metadata, drop nulls, default), writing one
//! through [`Structural::validate`]. Both take time in proportion to the object, whatever the schema says.

mod canonical;
mod correlate;
mod default_check;
mod defaulting;
mod fieldpath;
mod formats;
mod invariants;
mod lists;
mod node;
mod objectmeta;
mod openapi_rules;
mod parse;
mod pattern;
mod pruning;
mod raw;
mod rules;
mod shapes;
mod trail;
mod validate;

use serde_json::Value;

pub(crate) use self::fieldpath::Resolved;
use self::node::{Flags, Node};
pub use self::objectmeta::coerce_object_meta;
pub(crate) use self::objectmeta::{
    validate as validate_object_meta, validate_update as validate_object_meta_update,
};
use self::parse::Parser;
use self::raw::Props;
pub(crate) use self::raw::is_zero;
use self::rules::{Evaluation, Past};
use self::trail::Trail;
use self::validate::Validation;
use crate::field::{ErrorKind, FieldError, Path};
use crate::shape::{ShapeId, Shapes};

/// The declared field that a path without brackets leads to.
pub(crate) fn resolve_field<'a>(schema: &'a Value, path: &str) -> Result<Resolved<'a>, String> {
    let props = Props::of(schema).ok_or("does not refer to a valid field")?;
    fieldpath::resolve(props, path, false)
}

/// Collects the formats of a schema that are not checked.
pub(crate) fn unrecognized_formats<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    raw::visit(schema, 0, &mut |props| {
        let format = props.text("format");
        let schema_type = node::Type::parse(props.schema_type()).unwrap_or(node::Type::Any);
        if !format.is_empty() && formats::Format::parse(format, schema_type) == formats::Format::None {
            found.push(format);
        }
    });
}

/// Whether the text is an absolute URI or path.
pub(crate) fn is_request_uri(text: &str) -> bool {
    formats::Format::Uri.accepts(text)
}

/// A compiled schema.
#[derive(Debug)]
pub struct Structural {
    root: Node,
}

/// What one validation may spend.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Pairs of value and schema to look at.
    pub steps: u64,
    /// Cost of all rules together, in upstream's units.
    pub cost: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: 20_000_000,
            cost: 10_000_000,
        }
    }
}

impl Structural {
    /// Compiles a schema that a client sent.
    ///
    /// # Errors
    /// The schema is not structural, uses what is not supported, or contradicts itself.
    pub fn compile(schema: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compile_at(schema, &Path::root())
    }

    /// Compiles a schema that stands at `path` of the object that a client sent.
    ///
    /// # Errors
    /// As [`Structural::compile`].
    pub fn compile_at(schema: &Value, path: &Path) -> Result<Self, Vec<FieldError>> {
        let compiled = Self::load_at(schema, path)?;
        let Some(props) = Props::of(schema) else {
            return Err(vec![FieldError::invalid(
                path,
                schema.clone(),
                "must be a schema object",
            )]);
        };
        let unsupported = invariants::unsupported(schema);
        let mut errors = Vec::new();
        if unsupported.is_none() {
            errors = invariants::check(props, path);
            if errors.is_empty() {
                errors = default_check::check(&compiled.root, path);
            }
        }
        openapi_rules::check(props, path, openapi_rules::Context::root(), &mut errors);
        if let Some(reason) = unsupported.filter(|_| errors.is_empty()) {
            errors.push(FieldError::invalid(path, "", reason));
        }
        // Rules and defaults under rules can be judged only if the types are right.
        if errors.is_empty() && compiled.root.has(Flags::RULES_BELOW) {
            errors = rules::check(props, &compiled.root, path);
        }
        if errors.is_empty() && compiled.root.has(Flags::RULES_BELOW) {
            errors = default_check::check_rules(&compiled.root, path);
        }
        if errors.is_empty() {
            Ok(compiled)
        } else {
            Err(errors)
        }
    }

    /// Compiles a schema that was accepted before, without checking it again.
    ///
    /// # Errors
    /// A field of the schema has the wrong JSON type.
    pub fn load(schema: &Value) -> Result<Self, Vec<FieldError>> {
        Self::load_at(schema, &Path::root())
    }

    /// Compiles a schema that is part of the program, in which what repeats is written once: `$ref` names an entry of the
    /// root's `$defs`. No entry may contain itself. The compiled form shares what the text shares.
    ///
    /// # Errors
    /// As [`Structural::load`], or a reference leads nowhere.
    pub fn load_shared(schema: &Value) -> Result<Self, Vec<FieldError>> {
        let mut parser = Parser::default();
        parser.definitions = schema.get("$defs").and_then(Value::as_object);
        let root = parser.node(schema, &Path::root(), 0, None);
        if parser.errors.is_empty() {
            Ok(Self { root })
        } else {
            Err(parser.errors)
        }
    }

    fn load_at(schema: &Value, path: &Path) -> Result<Self, Vec<FieldError>> {
        let mut parser = Parser::default();
        let root = parser.node(schema, path, 0, None);
        if parser.errors.is_empty() {
            Ok(Self { root })
        } else {
            Err(parser.errors)
        }
    }

    /// Why a schema is not structural; empty if it is.
    pub fn violations(schema: &Value, path: &Path) -> Vec<FieldError> {
        Props::of(schema).map_or_else(Vec::new, |props| invariants::check(props, path))
    }

    /// All that is wrong with an object. With `old` it is an update: parts that did not change are not held against it.
    pub fn validate(&self, value: &Value, old: Option<&Value>, budget: &mut Budget) -> Vec<FieldError> {
        self.validate_after(Vec::new(), value, old, budget)
    }

    /// As [`Self::validate`], after errors have been found elsewhere in the object: they too keep rules from running.
    pub fn validate_after(
        &self,
        mut errors: Vec<FieldError>,
        value: &Value,
        old: Option<&Value>,
        budget: &mut Budget,
    ) -> Vec<FieldError> {
        let root = Path::root();
        errors.append(&mut Validation::new(&root, &mut budget.steps).run(&self.root, value, old));
        objectmeta::validate_embedded(&self.root, false, value, &Trail::ROOT, &mut errors);
        self.validate_beyond_schema(errors, value, old, budget)
    }

    /// All that is wrong with an object whose status alone is updated.
    pub fn validate_status(&self, value: &Value, old: &Value, budget: &mut Budget) -> Vec<FieldError> {
        let at = Path::new("status");
        let errors = match (value.get("status"), self.root.property("status")) {
            (Some(status), Some(node)) => {
                let old = old.get("status").unwrap_or(&Value::Null);
                Validation::new(&at, &mut budget.steps).run(node, status, Some(old))
            }
            _ => Vec::new(),
        };
        self.validate_beyond_schema(errors, value, Some(old), budget)
    }

    fn validate_beyond_schema(
        &self,
        mut errors: Vec<FieldError>,
        value: &Value,
        old: Option<&Value>,
        budget: &mut Budget,
    ) -> Vec<FieldError> {
        let mut old_errors = Vec::new();
        if let Some(old) = old {
            lists::validate(&self.root, old, &Trail::ROOT, &mut old_errors);
        }
        if old_errors.is_empty() {
            lists::validate(&self.root, value, &Trail::ROOT, &mut errors);
        }
        if self.root.has(Flags::RULES_BELOW) {
            if Self::blocks_rules(&errors) {
                errors.push(FieldError::invalid(
                    &Path::root(),
                    Value::Null,
                    "some validation rules were not checked because the object was invalid; correct the existing \
                     errors to complete validation",
                ));
            } else {
                let root = Path::root();
                let past = old.map_or_else(Past::default, |old| Past::of(&self.root, value, old));
                let mut evaluation = Evaluation::new(&root, &mut budget.cost);
                evaluation.visit(&self.root, value, &Trail::ROOT, past);
                errors.append(&mut evaluation.errors);
            }
        }
        errors
    }

    /// Whether rules cannot be evaluated because the object is not even of the right types.
    fn blocks_rules(errors: &[FieldError]) -> bool {
        errors.iter().any(|error| {
            matches!(
                error.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        })
    }

    /// Fills in defaults.
    pub fn default(&self, value: &mut Value) {
        defaulting::apply(&self.root, value);
    }

    /// Removes unknown fields and returns their paths, sorted. Metadata is left alone, see [`Structural::coerce`].
    pub fn prune(&self, value: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        pruning::prune(Some(&self.root), true, value, &Trail::ROOT, &mut unknown);
        unknown.sort();
        unknown
    }

    /// Removes nulls that mean "not set".
    pub fn drop_nulls(&self, value: &mut Value) {
        defaulting::drop_nulls(&self.root, value);
    }

    /// Reads the metadata of embedded resources: drops unknown fields and returns their paths, sorted. The metadata of
    /// the object itself is read by [`coerce_object_meta`], as for all kinds.
    ///
    /// # Errors
    /// Type or metadata of an embedded resource is malformed.
    pub fn coerce(&self, value: &mut Value) -> Result<Vec<String>, Box<FieldError>> {
        let mut unknown = Vec::new();
        objectmeta::coerce_embedded(&self.root, false, value, &Trail::ROOT, &mut unknown)?;
        unknown.sort();
        Ok(unknown)
    }

    /// All that happens to an object when it is read: prune, drop nulls, read embedded metadata, default. Returns the
    /// paths of unknown fields.
    ///
    /// # Errors
    /// As [`Structural::coerce`].
    pub fn decode(&self, value: &mut Value) -> Result<Vec<String>, Box<FieldError>> {
        let mut unknown = self.prune(value);
        self.drop_nulls(value);
        unknown.append(&mut self.coerce(value)?);
        self.default(value);
        Ok(unknown)
    }

    /// The shape of objects, for server-side apply.
    pub fn shapes(&self) -> (Shapes, ShapeId) {
        let mut builder = shapes::Builder::new();
        let root = builder.node(&self.root, true, false);
        (builder.finish(), root)
    }
}

#[cfg(test)]
mod tests;
