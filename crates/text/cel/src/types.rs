//! The static types of CEL and of Kubernetes' libraries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::decl::DeclType;

/// The type of an expression or a variable.
#[derive(Clone, Debug)]
pub enum Type {
    /// Anything; checked when the expression runs.
    Dyn,
    /// The type of `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A 64-bit signed integer.
    Int,
    /// A 64-bit unsigned integer.
    Uint,
    /// A 64-bit floating-point number.
    Double,
    /// Unicode text.
    String,
    /// Octets.
    Bytes,
    /// A span of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A list of elements of one type.
    List(Arc<Type>),
    /// A map from keys to values.
    Map(Arc<(Type, Type)>),
    /// An object with named fields.
    Object(Arc<ObjectType>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// The type of a type, as in `type(x) == int`.
    TypeOf(Arc<Type>),
    /// A library's type, with functions but without fields.
    Opaque(OpaqueType),
    /// A type parameter of a function's signature, or a type that checking has yet to find out.
    #[doc(hidden)]
    Param(u32),
    /// The type of an expression that has a mistake in it; compatible with everything to avoid follow-up errors.
    #[doc(hidden)]
    Error,
}

/// The types that Kubernetes' libraries add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpaqueType {
    /// `net.IP`
    Ip,
    /// `net.CIDR`
    Cidr,
    /// `kubernetes.URL`
    Url,
    /// `kubernetes.Quantity`
    Quantity,
    /// `kubernetes.Semver`
    Semver,
    /// `kubernetes.NamedFormat`
    Format,
    /// `kubernetes.authorization.Authorizer`
    Authorizer,
    /// `kubernetes.authorization.PathCheck`
    PathCheck,
    /// `kubernetes.authorization.GroupCheck`
    GroupCheck,
    /// `kubernetes.authorization.ResourceCheck`
    ResourceCheck,
    /// `kubernetes.authorization.Decision`
    Decision,
}

impl OpaqueType {
    pub(crate) const ALL: [OpaqueType; 11] = [
        OpaqueType::Ip,
        OpaqueType::Cidr,
        OpaqueType::Url,
        OpaqueType::Quantity,
        OpaqueType::Semver,
        OpaqueType::Format,
        OpaqueType::Authorizer,
        OpaqueType::PathCheck,
        OpaqueType::GroupCheck,
        OpaqueType::ResourceCheck,
        OpaqueType::Decision,
    ];

    /// The name that CEL prints.
    pub fn name(self) -> &'static str {
        match self {
            OpaqueType::Ip => "net.IP",
            OpaqueType::Cidr => "net.CIDR",
            OpaqueType::Url => "kubernetes.URL",
            OpaqueType::Quantity => "kubernetes.Quantity",
            OpaqueType::Semver => "kubernetes.Semver",
            OpaqueType::Format => "kubernetes.NamedFormat",
            OpaqueType::Authorizer => "kubernetes.authorization.Authorizer",
            OpaqueType::PathCheck => "kubernetes.authorization.PathCheck",
            OpaqueType::GroupCheck => "kubernetes.authorization.GroupCheck",
            OpaqueType::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            OpaqueType::Decision => "kubernetes.authorization.Decision",
        }
    }
}

/// An object type: a name, which makes it equal to itself only, and fields by their CEL identifiers.
#[derive(Debug)]
pub struct ObjectType {
    pub(crate) name: Arc<str>,
    pub(crate) fields: BTreeMap<Box<str>, Field>,
}

/// One field of an object type.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) ty: Type,
    /// The name in JSON, which differs from the identifier when that had to be escaped.
    pub(crate) json_name: Box<str>,
    /// How to read the field's JSON; absent for types built by hand.
    pub(crate) decl: Option<Arc<DeclType>>,
}

impl Type {
    /// `list(element)`
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `optional_type(inner)`
    pub fn optional(inner: Type) -> Type {
        Type::Optional(Arc::new(inner))
    }

    /// The type of the `authorizer` variable.
    pub fn authorizer() -> Type {
        Type::Opaque(OpaqueType::Authorizer)
    }

    /// The type of a resource check, as of `authorizer.requestResource`.
    pub fn resource_check() -> Type {
        Type::Opaque(OpaqueType::ResourceCheck)
    }

    /// An object type with fields by JSON name; names that CEL cannot spell are left out.
    pub fn object(name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Type {
        let fields = fields.into_iter().filter_map(|(json_name, ty)| {
            let identifier = crate::escaping::escape(&json_name)?;
            Some((
                identifier.into(),
                Field {
                    ty,
                    json_name: json_name.into(),
                    decl: None,
                },
            ))
        });
        Type::Object(Arc::new(ObjectType {
            name: name.into(),
            fields: fields.collect(),
        }))
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn)
    }

    pub(crate) fn type_of(inner: Type) -> Type {
        Type::TypeOf(Arc::new(inner))
    }

    /// The name of the type without parameters, as `type()` shows it at run time.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Type::Dyn | Type::Param(_) => "dyn",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Object(object) => &object.name,
            Type::Optional(_) => "optional_type",
            Type::TypeOf(_) => "type",
            Type::Opaque(opaque) => opaque.name(),
            Type::Error => "!error!",
        }
    }
}

/// Types are equal when they are the same to the last parameter; objects when they have the same name.
impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b))
            | (Type::Optional(a), Type::Optional(b))
            | (Type::TypeOf(a), Type::TypeOf(b)) => a == b,
            (Type::Map(a), Type::Map(b)) => Arc::ptr_eq(a, b) || a == b,
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b) || a.name == b.name,
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (Type::Param(a), Type::Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Type {
    /// The type by its declared names, as errors about results have it; `Display` is shorter for some.
    #[must_use]
    pub fn declared(&self) -> String {
        match self {
            Type::List(element) => format!("list({})", element.declared()),
            Type::Map(pair) => format!("map({}, {})", pair.0.declared(), pair.1.declared()),
            Type::Optional(inner) => format!("optional_type({})", inner.declared()),
            Type::Null | Type::Duration | Type::Timestamp => self.runtime_name().to_owned(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(pair) => write!(f, "map({}, {})", pair.0, pair.1),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
            Type::TypeOf(inner) => write!(f, "type({inner})"),
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Param(id) => write!(f, "_var{id}"),
            _ => f.write_str(self.runtime_name()),
        }
    }
}
