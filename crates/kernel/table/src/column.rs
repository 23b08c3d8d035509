//! Columns, and short ways to write them down.

use serde::Serialize;

/// A column of a table; serialises as a `TableColumnDefinition`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer`, `boolean`, `number` or `date`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `name` for the column that names the object, otherwise empty.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0 for columns that are always shown, 1 for those that `-o wide` adds.
    pub priority: i32,
}

pub(crate) const NAME: Column = Column {
    format: "name",
    ..text("Name", "The object's name")
};
pub(crate) const AGE: Column = text("Age", "The time since the object was created");
pub(crate) const CONTAINERS: Column = wide("Containers", "The names of the template's containers");
pub(crate) const IMAGES: Column = wide("Images", "The images of the template's containers");
pub(crate) const SELECTOR: Column = wide("Selector", "The labels that select the pods");

pub(crate) const fn text(name: &'static str, description: &'static str) -> Column {
    Column {
        name,
        kind: "string",
        format: "",
        description,
        priority: 0,
    }
}

pub(crate) const fn integer(name: &'static str, description: &'static str) -> Column {
    Column {
        kind: "integer",
        ..text(name, description)
    }
}

pub(crate) const fn boolean(name: &'static str, description: &'static str) -> Column {
    Column {
        kind: "boolean",
        ..text(name, description)
    }
}

pub(crate) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column {
        priority: 1,
        ..text(name, description)
    }
}
