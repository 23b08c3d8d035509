//! The functions of CEL's standard library, its extensions and Kubernetes' libraries, and the values they add.

mod arithmetic;
pub(crate) mod authorizer;
pub(crate) mod base64;
pub(crate) mod conversion;
pub(crate) mod format_string;
mod lists;
mod math;
mod named_format;
mod network;
mod operators;
mod optionals;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
mod strings;
mod timestamps;
mod url;

use fairway_kernel_scalar::quantity::Quantity;

use crate::functions::{Library, Registry};
use crate::types::OpaqueType;
use authorizer::{AuthorizerValue, Decision, GroupCheck, PathCheck, ResourceCheck};
use named_format::NamedFormat;
use network::Cidr;
use semver::Semver;
use url::Url;

/// A library's value.
#[derive(Debug)]
pub enum Opaque {
    #[doc(hidden)]
    Ip(std::net::IpAddr),
    #[doc(hidden)]
    Cidr(Cidr),
    #[doc(hidden)]
    Url(Url),
    #[doc(hidden)]
    Quantity(Quantity),
    #[doc(hidden)]
    Semver(Semver),
    #[doc(hidden)]
    Format(&'static NamedFormat),
    #[doc(hidden)]
    Authorizer(AuthorizerValue),
    #[doc(hidden)]
    PathCheck(PathCheck),
    #[doc(hidden)]
    GroupCheck(GroupCheck),
    #[doc(hidden)]
    ResourceCheck(ResourceCheck),
    #[doc(hidden)]
    Decision(Decision),
}

impl Opaque {
    pub(crate) fn opaque_type(&self) -> OpaqueType {
        match self {
            Opaque::Ip(_) => OpaqueType::Ip,
            Opaque::Cidr(_) => OpaqueType::Cidr,
            Opaque::Url(_) => OpaqueType::Url,
            Opaque::Quantity(_) => OpaqueType::Quantity,
            Opaque::Semver(_) => OpaqueType::Semver,
            Opaque::Format(_) => OpaqueType::Format,
            Opaque::Authorizer(_) => OpaqueType::Authorizer,
            Opaque::PathCheck(_) => OpaqueType::PathCheck,
            Opaque::GroupCheck(_) => OpaqueType::GroupCheck,
            Opaque::ResourceCheck(_) => OpaqueType::ResourceCheck,
            Opaque::Decision(_) => OpaqueType::Decision,
        }
    }

    /// The size that costs are computed from: addresses count their bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Opaque::Ip(address) => {
                if address.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            Opaque::Cidr(cidr) => u64::from(cidr.prefix).div_ceil(8),
            _ => 1,
        }
    }

    pub(crate) fn equals(left: &Opaque, right: &Opaque) -> bool {
        match (left, right) {
            (Opaque::Ip(a), Opaque::Ip(b)) => a == b,
            (Opaque::Cidr(a), Opaque::Cidr(b)) => a == b,
            (Opaque::Url(a), Opaque::Url(b)) => a == b,
            (Opaque::Quantity(a), Opaque::Quantity(b)) => a == b,
            (Opaque::Semver(a), Opaque::Semver(b)) => a.precedence(b).is_eq(),
            (Opaque::Format(a), Opaque::Format(b)) => a.name == b.name,
            (Opaque::PathCheck(a), Opaque::PathCheck(b)) => a == b,
            (Opaque::GroupCheck(a), Opaque::GroupCheck(b)) => a == b,
            (Opaque::ResourceCheck(a), Opaque::ResourceCheck(b)) => a == b,
            (Opaque::Authorizer(a), Opaque::Authorizer(b)) => a == b,
            (Opaque::Decision(a), Opaque::Decision(b)) => a == b,
            _ => false,
        }
    }
}

/// Takes an opaque argument apart; the signature has already been checked, so the else branch is for hand-made calls.
macro_rules! opaque {
    ($args:expr, $index:expr, $variant:ident) => {
        match &$args[$index] {
            $crate::value::Value::Opaque(opaque) => match &**opaque {
                $crate::library::Opaque::$variant(inner) => inner,
                _ => return Err($crate::error::Error::NoSuchOverload),
            },
            _ => return Err($crate::error::Error::NoSuchOverload),
        }
    };
}

/// Takes an argument of a built-in type apart.
macro_rules! arg {
    ($args:expr, $index:expr, $variant:ident) => {
        match &$args[$index] {
            $crate::value::Value::$variant(inner) => inner,
            _ => return Err($crate::error::Error::NoSuchOverload),
        }
    };
}

pub(crate) use {arg, opaque};

pub(crate) fn register(registry: &mut Registry) {
    operators::register(registry);
    arithmetic::register(registry);
    conversion::register(registry);
    timestamps::register(registry);
    optionals::register(registry);
    strings::register(registry);
    lists::register(registry);
    sets::register(registry);
    regex::register(registry);
    url::register(registry);
    quantity::register(registry);
    network::register(registry);
    semver::register(registry);
    named_format::register(registry);
    authorizer::register(registry);
    registry.section(Some(Library::Math));
    math::register(registry);
    registry.section(Some(Library::Encoders));
    base64::register(registry);
    registry.section(Some(Library::StringsLatest));
    strings::register_latest(registry);
    registry.section(Some(Library::JsonPatch));
    strings::register_json_patch(registry);
    registry.section(None);
}
