//! Who owns what after a write.
//!
//! An update takes every field that it changed from whoever owned it. An apply owns exactly the fields that its
//! configuration mentions; it must not change what others own unless it is forced to, and it removes what it owned
//! before, mentions no more, and nobody else owns.

mod prune;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::fieldpath::{Filter, Path, Set};
use crate::typed::{Comparison, Typed, ValidationErrors, reconcile};
use crate::value_order;

/// What a manager owns, in the version in which it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedSet {
    /// The fields.
    pub set: Set,
    /// The version in which their paths are true.
    pub api_version: String,
    /// Whether they were applied, or written by an update.
    pub applied: bool,
}

/// What each manager owns.
pub type Managers = BTreeMap<String, VersionedSet>;

/// Conversion of objects between versions.
pub trait Converter<'s> {
    /// The object in that version; itself, if it is in that version.
    fn convert<'v>(
        &self,
        object: &'v Typed<'s, '_>,
        api_version: &str,
    ) -> Result<Typed<'s, 'v>, ConvertError>;
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConvertError {
    /// The version is not served any more. Owners that wrote in it are forgotten.
    #[error("no such version: {0}")]
    MissingVersion(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Filters of what a request may own, by version.
#[derive(Clone, Debug, Default)]
pub struct ResetFields(Vec<(String, Filter)>);

impl ResetFields {
    /// A filter for each version.
    pub fn new(filters: Vec<(String, Filter)>) -> Self {
        Self(filters)
    }

    /// No filter for any version.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    fn of(&self, api_version: &str) -> Option<&Filter> {
        self.0
            .iter()
            .find(|(version, _)| version == api_version)
            .map(|(_, filter)| filter)
    }
}

/// A field that an apply would have to take from another manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns it.
    pub manager: String,
    /// The field.
    pub path: Path,
}

/// Why ownership could not be worked out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UpdateError {
    /// Others own fields that the configuration changes.
    #[error("{} conflicts", .0.len())]
    Conflicts(Vec<Conflict>),
    /// Two objects cannot be compared, merged or taken apart.
    #[error("failed to {task}: {errors}")]
    Invalid {
        /// What was attempted.
        task: &'static str,
        /// What does not fit.
        errors: ValidationErrors,
    },
    /// An object cannot be converted.
    #[error("failed to convert {object}: {error}")]
    Convert {
        /// Which object.
        object: &'static str,
        /// Why.
        error: ConvertError,
    },
}

/// Works out ownership.
pub struct Updater<'a, 's> {
    /// Conversion between the versions of the kind.
    pub converter: &'a dyn Converter<'s>,
    /// What may not be owned by the request.
    pub reset_fields: &'a ResetFields,
    /// A path whose values count as equal, such as the record of ownership itself.
    pub skip: &'a [&'a str],
}

/// The outcome of an apply.
#[derive(Debug)]
pub struct Applied<'s> {
    /// The new object; `None` if it is equal to the live one.
    pub object: Option<Typed<'s, 'static>>,
    /// Who owns what.
    pub managers: Managers,
}

impl<'s> Updater<'_, 's> {
    /// The ownership after `manager` replaced `live` by `new`.
    pub fn update(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        api_version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, UpdateError> {
        let managers = self.reconcile_all(live, managers)?;
        let (mut managers, changes) = self.hand_over(live, new, api_version, managers, manager, true)?;
        let mut owned = managers
            .remove(manager)
            .map(|owned| owned.set)
            .unwrap_or_default();
        owned.subtract(&changes.removed);
        let mut set = owned.joined(changes.modified).joined(changes.added);
        if let Some(filter) = self.reset_fields.of(api_version) {
            set = filter.filter(&set);
        }
        if !set.is_empty() {
            let owned = VersionedSet {
                set,
                api_version: api_version.to_owned(),
                applied: false,
            };
            managers.insert(manager.to_owned(), owned);
        }
        Ok(managers)
    }

    /// The object and ownership after `manager` applied `config`.
    pub fn apply(
        &self,
        live: &Typed<'s, '_>,
        config: &Typed<'s, '_>,
        api_version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<Applied<'s>, UpdateError> {
        let mut managers = self.reconcile_all(live, managers)?;
        let merged = live.merge(config).map_err(|errors| UpdateError::Invalid {
            task: "merge config",
            errors,
        })?;
        let mut set = config.to_field_set().map_err(|errors| UpdateError::Invalid {
            task: "get field set",
            errors,
        })?;
        if let Some(filter) = self.reset_fields.of(api_version) {
            set = filter.filter(&set);
        }
        let applied = VersionedSet {
            set,
            api_version: api_version.to_owned(),
            applied: true,
        };
        let last = managers.insert(manager.to_owned(), applied);
        let new = match last {
            Some(last) => self.prune(merged, &managers, manager, &last)?,
            None => merged,
        };
        let (managers, _) = self.hand_over(live, &new, api_version, managers, manager, force)?;
        let same = value_order::equals(&live.value, &new.value);
        Ok(Applied {
            object: (!same).then_some(new),
            managers,
        })
    }

    /// Takes what changed from everyone but `manager`.
    fn hand_over(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        api_version: &str,
        mut managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Managers, Comparison), UpdateError> {
        let changes = self.changes(live, new, api_version)?;
        let mut by_version: Vec<(String, Comparison)> = Vec::new();
        let mut lost: Vec<(String, Set)> = Vec::new();
        let mut conflicts = Vec::new();
        let mut gone = Vec::new();
        for (name, owned) in managers.iter().filter(|(name, _)| *name != manager) {
            let known = if owned.api_version == api_version {
                Some(&changes)
            } else {
                by_version
                    .iter()
                    .find(|(version, _)| *version == owned.api_version)
                    .map(|(_, c)| c)
            };
            let in_version = match known {
                Some(known) => known,
                None => {
                    let Some(comparison) = self.changes_in_version(live, new, &owned.api_version)? else {
                        gone.push(name.clone());
                        continue;
                    };
                    by_version.push((owned.api_version.clone(), comparison));
                    match by_version.last() {
                        Some((_, comparison)) => comparison,
                        None => continue,
                    }
                }
            };
            if in_version.is_same() {
                continue;
            }
            let taken = owned
                .set
                .intersection(&in_version.modified.union(&in_version.added));
            if !force {
                conflicts.extend(taken.paths().into_iter().map(|path| Conflict {
                    manager: name.clone(),
                    path,
                }));
            }
            if !taken.is_empty() || !in_version.removed.is_empty() {
                lost.push((name.clone(), taken.union(&in_version.removed)));
            }
        }
        if !conflicts.is_empty() {
            return Err(UpdateError::Conflicts(conflicts));
        }
        for name in gone {
            managers.remove(&name);
        }
        for (name, set) in lost {
            if let Some(owned) = managers.get_mut(&name) {
                owned.set = owned.set.difference(&set);
            }
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok((managers, changes))
    }

    /// What changed, as far as the request may own it.
    fn changes(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        api_version: &str,
    ) -> Result<Comparison, UpdateError> {
        let comparison = live
            .compare_except(new, self.skip)
            .map_err(|errors| UpdateError::Invalid {
                task: "compare objects",
                errors,
            })?;
        Ok(match self.reset_fields.of(api_version) {
            Some(filter) => comparison.filter(filter),
            None => comparison,
        })
    }

    /// What changed, seen in another version; `None` if that version is gone.
    fn changes_in_version(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        api_version: &str,
    ) -> Result<Option<Comparison>, UpdateError> {
        let Some(live) = self.convert("old object", live, api_version)? else {
            return Ok(None);
        };
        let Some(new) = self.convert("new object", new, api_version)? else {
            return Ok(None);
        };
        self.changes(&live, &new, api_version).map(Some)
    }

    /// The object in a version; `None` if that version is gone.
    fn convert<'v>(
        &self,
        what: &'static str,
        object: &'v Typed<'s, '_>,
        api_version: &str,
    ) -> Result<Option<Typed<'s, 'v>>, UpdateError> {
        match self.converter.convert(object, api_version) {
            Ok(converted) => Ok(Some(converted)),
            Err(ConvertError::MissingVersion(_)) => Ok(None),
            Err(error) => Err(UpdateError::Convert { object: what, error }),
        }
    }

    /// Fits every record to the schema as it is now, and forgets those in versions that are gone.
    fn reconcile_all(&self, live: &Typed<'s, '_>, managers: Managers) -> Result<Managers, UpdateError> {
        let mut reconciled = Managers::new();
        for (name, mut owned) in managers {
            if let Some(converted) = self.convert("live object", live, &owned.api_version)? {
                reconcile(converted.shapes, converted.shape, &mut owned.set);
                reconciled.insert(name, owned);
            }
        }
        Ok(reconciled)
    }
}
