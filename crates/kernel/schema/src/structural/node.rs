//! The compiled form of one schema object.
//!
//! A server holds a thousand definitions at once, most of them large and rarely used: a node is 40 bytes, keeps only
//! what is set, and drops titles, descriptions and examples (they are served from the definition itself).

use std::sync::Arc;

use serde_json::Value;

use super::formats::Format;
use super::pattern::Pattern;
use super::rules::RuleSet;

/// `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Type {
    /// Not given: anything goes.
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Any,
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListType {
    Atomic,
    Set,
    Map,
}

/// Facts of a node, and of the tree below it, that fit in a bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u16);

impl Flags {
    pub(super) const NULLABLE: Self = Self(1);
    pub(super) const INT_OR_STRING: Self = Self(1 << 1);
    pub(super) const EMBEDDED: Self = Self(1 << 2);
    pub(super) const PRESERVE_UNKNOWN: Self = Self(1 << 3);
    pub(super) const ATOMIC_MAP: Self = Self(1 << 4);
    /// Some node of this tree has a default.
    pub(super) const DEFAULTS_BELOW: Self = Self(1 << 5);
    /// Some node of this tree is a set or map list.
    pub(super) const KEYED_LISTS_BELOW: Self = Self(1 << 6);
    /// Some node of this tree is an embedded resource.
    pub(super) const EMBEDDED_BELOW: Self = Self(1 << 7);
    /// Some node of this tree has rules.
    pub(super) const RULES_BELOW: Self = Self(1 << 8);
    /// There is a format, but not one that is checked.
    pub(super) const UNCHECKED_FORMAT: Self = Self(1 << 9);

    const INHERITED: Self = Self(
        Self::DEFAULTS_BELOW.0 | Self::KEYED_LISTS_BELOW.0 | Self::EMBEDDED_BELOW.0 | Self::RULES_BELOW.0,
    );

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Takes over what a child says about its tree.
    pub(super) fn inherit(&mut self, child: Self) {
        self.0 |= child.0 & Self::INHERITED.0;
    }
}

/// One schema object.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) schema_type: Type,
    pub(super) format: Format,
    pub(super) list_type: ListType,
    pub(super) flags: Flags,
    /// Shared by all nodes that refer to one definition.
    pub(super) children: Option<Arc<Children>>,
    pub(super) checks: Box<[Check]>,
    pub(super) default: Option<Box<Value>>,
}

/// What a node says about the values inside its values.
#[derive(Debug, Default)]
pub(super) struct Children {
    pub(super) items: Option<Box<Node>>,
    /// Sorted by name.
    pub(super) properties: Box<[(Box<str>, Node)]>,
    pub(super) additional: Additional,
    /// `x-kubernetes-list-map-keys`.
    pub(super) map_keys: Box<[Box<str>]>,
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub(super) enum Additional {
    #[default]
    Unset,
    Allowed,
    Forbidden,
    Schema(Box<Node>),
}

/// One constraint on values.
#[derive(Debug)]
pub(super) enum Check {
    AllOf(Box<[Node]>),
    AnyOf(Box<[Node]>),
    OneOf(Box<[Node]>),
    Not(Box<Node>),
    Maximum { limit: f64, exclusive: bool },
    Minimum { limit: f64, exclusive: bool },
    MultipleOf(f64),
    MaxLength(i64),
    MinLength(i64),
    Pattern(Arc<Pattern>),
    MaxItems(i64),
    MinItems(i64),
    UniqueItems,
    MaxProperties(i64),
    MinProperties(i64),
    Required(Box<[Box<str>]>),
    Enum(Box<[Value]>),
    Rules(Box<RuleSet>),
}

impl Node {
    pub(super) fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    pub(super) fn items(&self) -> Option<&Node> {
        self.children.as_ref()?.items.as_deref()
    }

    pub(super) fn properties(&self) -> &[(Box<str>, Node)] {
        self.children.as_ref().map_or(&[], |c| &c.properties)
    }

    pub(super) fn property(&self, name: &str) -> Option<&Node> {
        let properties = self.properties();
        properties
            .binary_search_by(|(n, _)| (**n).cmp(name))
            .ok()
            .map(|i| &properties[i].1)
    }

    /// The schema of the values of undeclared keys.
    pub(super) fn additional(&self) -> Option<&Node> {
        match &self.children.as_ref()?.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        }
    }

    /// The schema of the value under a key, declared or not.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.additional())
    }

    /// Whether undeclared keys are mentioned at all, be it to forbid them.
    pub(super) fn mentions_additional(&self) -> bool {
        self.children
            .as_ref()
            .is_some_and(|c| !matches!(c.additional, Additional::Unset))
    }

    pub(super) fn map_keys(&self) -> &[Box<str>] {
        self.children.as_ref().map_or(&[], |c| &c.map_keys)
    }

    pub(super) fn rules(&self) -> Option<&RuleSet> {
        self.checks.iter().find_map(|check| match check {
            Check::Rules(rules) => Some(&**rules),
            _ => None,
        })
    }
}
