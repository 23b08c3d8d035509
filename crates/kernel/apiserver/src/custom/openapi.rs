//! The OpenAPI documents of custom kinds. They are made when somebody asks, from the definitions themselves.

use std::sync::Arc;

use fairway_kernel_schema::openapi::{CrdKind, CrdVersion, Served, V2Form, v2_document, v3_crd_document};
use fairway_kernel_tenancy::names::APIS;
use serde_json::Value;

use super::compile::Origin;
use super::definitions;
use crate::kernel::Kernel;
use crate::registry::{Nature, Registry, ResourceDef};
use crate::status::ApiError;

impl Origin {
    /// The definition, in the form of a CRD.
    fn read(&self, kernel: &Kernel, def: &ResourceDef) -> Result<Option<Value>, ApiError> {
        match self {
            Self::Definition(cluster) => {
                let crds = kernel.storage.cache.kind(definitions::prefix().as_str());
                let found = crds.get(&format!("{cluster}//{}.{}", def.resource, def.group));
                found.map(|object| object.value()).transpose()
            }
            Self::Export { cluster, schema, .. } => {
                let cache = &kernel.storage.cache;
                let found = cache.built_in(APIS, "apiresourceschemas", cluster, "", schema);
                let object = found.map(|object| object.value()).transpose()?;
                Ok(object.map(|object| fairway_kernel_tenancy::schema::to_crd(&object)))
            }
            Self::Provided => Ok(kernel.apis.provided_definition(&def.group, &def.resource)),
            Self::System => {
                Ok(fairway_kernel_tenancy::crds::find(&def.group, &def.resource).map(|d| d.crd()))
            }
        }
    }
}

/// The OpenAPI document of a custom group-version, as JSON.
pub fn openapi_document(
    kernel: &Kernel,
    registry: &Registry,
    group: &str,
    version: &str,
) -> Result<Vec<u8>, ApiError> {
    let defs: Vec<&ResourceDef> = registry
        .iter()
        .filter(|def| def.group == group && def.version == version)
        .filter(|def| matches!(def.nature, Nature::Custom(_)))
        .map(|def| &**def)
        .collect();
    let kinds: Vec<CrdKind<'_>> = defs.iter().map(|def| crd_kind(def, &Value::Null)).collect();
    v3_crd_document(group, version, &kinds, |place| {
        // One that is gone meanwhile is any object.
        let def = defs.get(place).copied();
        let schema = def.map(|def| schema_of(kernel, def)).transpose()?.flatten();
        Ok(schema.unwrap_or_default())
    })
}

/// The schema that its definition has for a custom kind's version; none if the definition is gone.
fn schema_of(kernel: &Kernel, def: &ResourceDef) -> Result<Option<Value>, ApiError> {
    let Nature::Custom(custom) = &def.nature else {
        return Ok(None);
    };
    let Some(mut object) = custom.origin.read(kernel, def)? else {
        return Ok(None);
    };
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    let found = versions.and_then(|all| all.iter_mut().find(|v| v["name"] == def.version));
    let schema = found.and_then(|v| v.pointer_mut("/schema/openAPIV3Schema"));
    Ok(Some(schema.map(Value::take).unwrap_or_default()))
}

/// The OpenAPI document of version 2, which has all kinds in it.
pub fn openapi_v2_document(kernel: &Kernel, registry: &Registry, form: V2Form) -> Result<Vec<u8>, ApiError> {
    let found = with_schemas(kernel, registry, |_| true)?;
    let mut versions: Vec<CrdVersion<'_>> = Vec::new();
    for pair in &found {
        let (group, version) = (pair.0.group.as_str(), pair.0.version.as_str());
        match versions
            .iter_mut()
            .find(|v| v.group == group && v.version == version)
        {
            Some(known) => known.kinds.push(crd_kind(&pair.0, &pair.1)),
            None => versions.push(CrdVersion {
                group,
                version,
                kinds: vec![crd_kind(&pair.0, &pair.1)],
            }),
        }
    }
    let mut served = Served::default();
    for service in kernel.api_services.load().iter() {
        let (paths, schemas) = service.openapi_parts();
        served.paths.extend(paths);
        served.schemas.extend(schemas);
    }
    Ok(v2_document(form, &versions, served))
}

/// The custom kinds that are wanted, each with the schema that its CRD has for its version.
fn with_schemas(
    kernel: &Kernel,
    registry: &Registry,
    wanted: impl Fn(&ResourceDef) -> bool,
) -> Result<Vec<(Arc<ResourceDef>, Value)>, ApiError> {
    let mut found = Vec::new();
    for def in registry.iter().filter(|d| wanted(d)) {
        if let Some(schema) = schema_of(kernel, def)? {
            found.push((Arc::clone(def), schema));
        }
    }
    Ok(found)
}

fn crd_kind<'a>(def: &'a ResourceDef, schema: &'a Value) -> CrdKind<'a> {
    CrdKind {
        kind: &def.kind,
        plural: &def.resource,
        namespaced: def.namespaced,
        list_kind: &def.list_kind,
        schema,
        status: def.subresource("status").is_some(),
        scale: def.subresource("scale").is_some(),
    }
}
