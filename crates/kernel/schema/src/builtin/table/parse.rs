//! Reading the table of facts.
//!
//! The text is generated and checked before it is committed, so a line that cannot be read is a defect of the build; it
//! is still reported as a value, with its line number, because the generator's own tests go through here.

use thiserror::Error;

use super::{
    Body, Element, FieldRow, Format, GroupRow, Gvk, Kinds, Presence, Relation, ResourceRow, SubresourceRow,
    Table, Type, TypeRow, VersionRow,
};

/// Why a table cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line} of the table of facts: {reason}")]
pub struct TableError {
    line: usize,
    reason: &'static str,
}

impl<'a> Table<'a> {
    /// Reads a table.
    pub fn parse(text: &'a str) -> Result<Self, TableError> {
        let mut table = Self::default();
        for (index, line) in text.lines().enumerate() {
            table.line(line).map_err(|reason| TableError {
                line: index + 1,
                reason,
            })?;
        }
        Ok(table)
    }

    fn line(&mut self, line: &'a str) -> Result<(), &'static str> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix(" sub ") {
            let resource = self
                .groups
                .last_mut()
                .and_then(|g| g.versions.last_mut()?.resources.last_mut());
            resource
                .ok_or("a subresource before any resource")?
                .subresources
                .push(subresource(rest)?);
        } else if let Some(rest) = line.strip_prefix(' ') {
            match self.types.last_mut().map(|t| &mut t.body) {
                Some(Body::Struct(fields)) => fields.push(field(rest)?),
                _ => return Err("a field outside of a struct"),
            }
        } else if let Some(rest) = line.strip_prefix("type ") {
            self.types.push(named_type(rest)?);
        } else if let Some(name) = line.strip_prefix("group ") {
            self.groups.push(GroupRow {
                name,
                versions: Vec::new(),
            });
        } else if let Some(name) = line.strip_prefix("version ") {
            let group = self.groups.last_mut().ok_or("a version before any group")?;
            group.versions.push(VersionRow {
                name,
                resources: Vec::new(),
            });
        } else if let Some(rest) = line.strip_prefix("resource ") {
            let version = self.groups.last_mut().and_then(|g| g.versions.last_mut());
            version
                .ok_or("a resource before any version")?
                .resources
                .push(resource(rest)?);
        } else {
            return Err("unknown kind of line");
        }
        Ok(())
    }
}

fn named_type(line: &str) -> Result<TypeRow<'_>, &'static str> {
    // Unions are JSON and may hold anything, so they come off first.
    let (line, unions) = match line.split_once(" unions=") {
        Some((head, json)) => (
            head,
            Some(serde_json::from_str(json).map_err(|_| "unions are not JSON")?),
        ),
        None => (line, None),
    };
    let mut words = line.split(' ');
    let name = words.next().ok_or("a type without a name")?;
    let mut row = TypeRow {
        name,
        body: Body::Struct(Vec::new()),
        atomic: false,
        kinds: Kinds::None,
        unions,
    };
    while let Some(word) = words.next() {
        if word == "=" {
            let format = words.next().and_then(Format::named).ok_or("unknown format")?;
            row.body = Body::Scalar(format);
        } else if word == "atomic" {
            row.atomic = true;
        } else if word == "gvk=*" {
            row.kinds = Kinds::Everywhere;
        } else if let Some(text) = word.strip_prefix("gvk=") {
            row.kinds = Kinds::One(gvk(text)?);
        } else {
            return Err("unknown attribute of a type");
        }
    }
    Ok(row)
}

fn gvk(text: &str) -> Result<Gvk<'_>, &'static str> {
    let mut parts = text.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(group), Some(version), Some(kind)) => Ok(Gvk { group, version, kind }),
        _ => Err("a kind is written group/version/Kind"),
    }
}

fn field(line: &str) -> Result<FieldRow<'_>, &'static str> {
    // Default and enum are JSON and may hold blanks, so they come off first; no other attribute begins with `=`.
    let (line, default) = match line.split_once(" =") {
        Some((head, json)) => (
            head,
            Some(serde_json::from_str(json).map_err(|_| "a default is not JSON")?),
        ),
        None => (line, None),
    };
    let (line, enumeration) = match line.split_once(" enum=") {
        Some((head, json)) => (
            head,
            serde_json::from_str(json).map_err(|_| "an enum is not JSON")?,
        ),
        None => (line, Vec::new()),
    };
    let mut words = line.split(' ');
    let name = words.next().ok_or("a field without a name")?;
    let (name, required) = match name.strip_suffix('!') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let marked = Presence::MARKS
        .iter()
        .rev()
        .find_map(|(presence, mark)| Some((*presence, name.strip_suffix(mark)?)));
    let (presence, name) = marked.unwrap_or((Presence::Optional, name));
    let ty = expression(words.next().ok_or("a field without a type")?);
    let mut row = FieldRow {
        name,
        ty,
        required,
        presence,
        relation: Relation::Default,
        patch_strategy: None,
        merge_key: None,
        enumeration,
        default,
    };
    for word in words {
        match word.split_once('=') {
            Some(("patch", strategy)) => row.patch_strategy = Some(strategy),
            Some(("key", key)) => row.merge_key = Some(key),
            Some(_) => return Err("unknown attribute of a field"),
            None => row.relation = relation(word)?,
        }
    }
    Ok(row)
}

fn relation(word: &str) -> Result<Relation<'_>, &'static str> {
    Ok(match word {
        "atomic" => Relation::Atomic,
        "granular" => Relation::Granular,
        "set" => Relation::Set,
        _ => {
            let keys = word.strip_prefix("map(").and_then(|w| w.strip_suffix(')'));
            Relation::Map(keys.ok_or("unknown relation")?.split(',').collect())
        }
    })
}

fn expression(text: &str) -> Type<'_> {
    let element = |text: &'_ str| -> (bool, usize) {
        let pointer = text.starts_with('*');
        (pointer, usize::from(pointer))
    };
    if let Some(rest) = text.strip_prefix("[]") {
        let (pointer, skip) = element(rest);
        Type::List(Box::new(Element {
            ty: expression(&rest[skip..]),
            pointer,
        }))
    } else if let Some(rest) = text.strip_prefix("{}") {
        let (pointer, skip) = element(rest);
        Type::Map(Box::new(Element {
            ty: expression(&rest[skip..]),
            pointer,
        }))
    } else {
        Format::named(text).map_or(Type::Ref(text), Type::Scalar)
    }
}

fn names(list: &str) -> Vec<&str> {
    list.split(',').filter(|n| !n.is_empty()).collect()
}

fn resource(line: &str) -> Result<ResourceRow<'_>, &'static str> {
    let mut words = line.split(' ');
    let mut next = || {
        words
            .next()
            .ok_or("a resource needs name, singular, kind and scope")
    };
    let (name, singular, kind, scope) = (next()?, next()?, next()?, next()?);
    let mut row = ResourceRow {
        name,
        singular,
        kind,
        namespaced: scope == "namespaced",
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        storage_hash: "",
        storage: false,
        returns_deleted: false,
        subresources: Vec::new(),
    };
    for word in words {
        match word.split_once('=') {
            Some(("verbs", list)) => row.verbs = names(list),
            Some(("short", list)) => row.short_names = names(list),
            Some(("cat", list)) => row.categories = names(list),
            // A hash is base64 and ends in `=`; split_once cuts at the first only.
            Some(("hash", hash)) => row.storage_hash = hash,
            None if word == "storage" => row.storage = true,
            None if word == "returns-deleted" => row.returns_deleted = true,
            _ => return Err("unknown attribute of a resource"),
        }
    }
    Ok(row)
}

fn subresource(line: &str) -> Result<SubresourceRow<'_>, &'static str> {
    let mut words = line.split(' ');
    let (Some(name), Some(kind), Some(verbs)) = (
        words.next(),
        words.next(),
        words.next().and_then(|w| w.strip_prefix("verbs=")),
    ) else {
        return Err("a subresource needs name, kind and verbs");
    };
    let query = words
        .next()
        .and_then(|w| w.strip_prefix("query="))
        .map(names)
        .unwrap_or_default();
    let parameter = |text| -> Option<(&str, Format)> {
        let (name, format) = str::split_once(text, ':')?;
        Some((name, Format::named(format)?))
    };
    let query: Option<Vec<_>> = query.into_iter().map(parameter).collect();
    let query = query.ok_or("a query parameter needs name and format")?;
    Ok(SubresourceRow {
        name,
        gvk: gvk(kind)?,
        verbs: names(verbs),
        query,
    })
}
