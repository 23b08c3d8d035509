//! The table of functions: signatures for the checker, code for the evaluator, prices for both cost models.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::cost::Cost;
use crate::error::Error;
use crate::library;
use crate::meter::Meter;
use crate::types::{OpaqueType, Type};
use crate::value::{Kind, Value};

/// The code of a function. The receiver of a method is its first argument.
pub(crate) type Function = for<'a> fn(&Meter, &[Value<'a>]) -> Result<Value<'a>, Error>;

/// Libraries that Kubernetes leaves out; a caller may switch them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `cel.bind(x, value, expression)`
    Bindings,
    /// `math.greatest`, `math.least` and kin.
    Math,
    /// `base64.encode`, `base64.decode`
    Encoders,
    /// `jsonpatch.escapeKey`, for mutating admission policies.
    JsonPatch,
    /// String functions newer than Kubernetes' version of the library: `reverse`.
    StringsLatest,
}

/// One signature of a function.
pub(crate) struct Overload {
    pub(crate) member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) cost: Cost,
    pub(crate) call: Function,
    guards: Vec<Guard>,
    /// `None` for what Kubernetes always has.
    pub(crate) library: Option<Library>,
}

/// What a parameter's type demands of a value at run time; elements of lists and maps are not looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    Any,
    Kind(Kind),
    Opaque(OpaqueType),
}

impl Guard {
    fn of(ty: &Type) -> Guard {
        match ty {
            Type::Null => Guard::Kind(Kind::Null),
            Type::Bool => Guard::Kind(Kind::Bool),
            Type::Int => Guard::Kind(Kind::Int),
            Type::Uint => Guard::Kind(Kind::Uint),
            Type::Double => Guard::Kind(Kind::Double),
            Type::String => Guard::Kind(Kind::String),
            Type::Bytes => Guard::Kind(Kind::Bytes),
            Type::Duration => Guard::Kind(Kind::Duration),
            Type::Timestamp => Guard::Kind(Kind::Timestamp),
            Type::List(_) => Guard::Kind(Kind::List),
            Type::Map(_) | Type::Object(_) => Guard::Kind(Kind::Map),
            Type::Optional(_) => Guard::Kind(Kind::Optional),
            Type::TypeOf(_) => Guard::Kind(Kind::Type),
            Type::Opaque(opaque) => Guard::Opaque(*opaque),
            Type::Dyn | Type::Param(_) | Type::Error => Guard::Any,
        }
    }

    fn admits(self, value: &Value<'_>) -> bool {
        match self {
            Guard::Any => true,
            Guard::Kind(kind) => value.kind() == kind,
            Guard::Opaque(opaque) => value.opaque_type() == Some(opaque),
        }
    }
}

impl Overload {
    pub(crate) fn admits(&self, args: &[Value<'_>]) -> bool {
        self.guards.len() == args.len() && self.guards.iter().zip(args).all(|(guard, arg)| guard.admits(arg))
    }
}

/// All functions by name.
pub(crate) struct Registry {
    functions: HashMap<&'static str, Vec<Overload>>,
    library: Option<Library>,
}

impl Registry {
    /// Declares an overload. Signatures read `(int, list<A>) -> bool` or, for methods, `string.(int) -> string`.
    pub(crate) fn add(&mut self, name: &'static str, signature: &str, cost: Cost, call: Function) {
        let (params, result) = signature.split_once("->").unwrap_or((signature, "dyn"));
        let (receiver, params) = params.split_once('(').unwrap_or(("", params));
        let member = !receiver.trim().is_empty();
        let mut types: Vec<Type> = Vec::new();
        if member {
            types.push(parse_type(receiver.trim().trim_end_matches('.')));
        }
        types.extend(split_top_level(params.trim().trim_end_matches(')')).map(parse_type));
        let guards = types.iter().map(Guard::of).collect();
        let overload = Overload {
            member,
            params: types,
            result: parse_type(result),
            cost,
            call,
            guards,
            library: self.library,
        };
        self.functions.entry(name).or_default().push(overload);
    }

    /// Declares what follows as part of an optional library.
    pub(crate) fn section(&mut self, library: Option<Library>) {
        self.library = library;
    }

    /// The overloads of a function.
    pub(crate) fn get(&self, name: &str) -> Option<&[Overload]> {
        self.functions.get(name).map(Vec::as_slice)
    }
}

fn split_top_level(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.into_iter().filter(|part| !part.is_empty())
}

fn parse_type(text: &str) -> Type {
    let text = text.trim();
    if let Some((name, inner)) = text.strip_suffix('>').and_then(|t| t.split_once('<')) {
        let mut inner = split_top_level(inner).map(parse_type);
        let first = inner.next().unwrap_or(Type::Dyn);
        return match name {
            "list" => Type::list(first),
            "map" => Type::map(first, inner.next().unwrap_or(Type::Dyn)),
            "optional" => Type::optional(first),
            _ => Type::type_of(first),
        };
    }
    match text {
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "ip" => Type::Opaque(OpaqueType::Ip),
        "cidr" => Type::Opaque(OpaqueType::Cidr),
        "url" => Type::Opaque(OpaqueType::Url),
        "quantity" => Type::Opaque(OpaqueType::Quantity),
        "semver" => Type::Opaque(OpaqueType::Semver),
        "format" => Type::Opaque(OpaqueType::Format),
        "authorizer" => Type::Opaque(OpaqueType::Authorizer),
        "path_check" => Type::Opaque(OpaqueType::PathCheck),
        "group_check" => Type::Opaque(OpaqueType::GroupCheck),
        "resource_check" => Type::Opaque(OpaqueType::ResourceCheck),
        "decision" => Type::Opaque(OpaqueType::Decision),
        _ => match text.as_bytes() {
            [letter @ b'A'..=b'Z'] => Type::Param(u32::from(letter - b'A')),
            _ => Type::Dyn,
        },
    }
}

/// The functions of all libraries.
pub(crate) static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = Registry {
        functions: HashMap::new(),
        library: None,
    };
    library::register(&mut registry);
    registry
});
