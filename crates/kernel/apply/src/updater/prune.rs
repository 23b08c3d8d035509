//! Removal of what a manager applied before and applies no more.
//!
//! A field goes if the manager applied it last time, does not apply it now, and no other manager owns it. Removing an
//! item removes all that is in it, owned or not, so the removal is done in three steps: take out everything from last
//! time, put back what anyone owns, put back what was nobody's to begin with.

use std::collections::BTreeMap;

use super::{Managers, UpdateError, Updater, VersionedSet};
use crate::fieldpath::Set;
use crate::typed::Typed;

impl<'s> Updater<'_, 's> {
    /// The merged object without what the manager owned in `last` and nobody owns now.
    pub(super) fn prune(
        &self,
        merged: Typed<'s, 'static>,
        managers: &Managers,
        manager: &str,
        last: &VersionedSet,
    ) -> Result<Typed<'s, 'static>, UpdateError> {
        let Some(applied) = managers.get(manager) else {
            return Ok(merged);
        };
        // All that leads to an applied field is applied with it, so nothing can go if all of last time is applied
        // again: the common case by far.
        if last.api_version == applied.api_version && last.set.is_subset(&applied.set) {
            return Ok(merged);
        }
        let Some(in_last) = self.convert(
            "merged object to last applied version",
            &merged,
            &last.api_version,
        )?
        else {
            return Ok(merged);
        };
        let without_last = in_last.remove(&last.set.with_named_fields(in_last.shapes, Some(in_last.shape)));
        let with_owned = self.add_back_owned(&in_last, without_last, &last.api_version, managers)?;
        let pruned = self.add_back_dangling(&in_last, &with_owned, last)?;
        self.converter
            .convert(&pruned, &applied.api_version)
            .map(Typed::into_owned)
            .map_err(|error| UpdateError::Convert {
                object: "pruned object",
                error,
            })
    }

    /// Puts back what any manager owns, the applying one included.
    fn add_back_owned(
        &self,
        merged: &Typed<'s, '_>,
        pruned: Typed<'s, 'static>,
        pruned_version: &str,
        managers: &Managers,
    ) -> Result<Typed<'s, 'static>, UpdateError> {
        let mut owned_in: BTreeMap<&str, Set> = BTreeMap::new();
        for owned in managers.values() {
            let set = owned_in.entry(owned.api_version.as_str()).or_default();
            *set = set.union(&owned.set);
        }
        // First in the version at hand: conversion may need fields that were taken out.
        let first = owned_in.remove_entry(pruned_version);
        let (mut merged, mut pruned) = (merged.by_ref().into_owned(), pruned);
        for (version, owned) in first.into_iter().chain(owned_in) {
            let Some(merged_here) = self
                .convert("merged object", &merged, version)?
                .map(Typed::into_owned)
            else {
                continue;
            };
            merged = merged_here;
            let Some(pruned_here) = self.convert("pruned object", &pruned, version)? else {
                continue;
            };
            let named = |set: &Set| set.with_named_fields(merged.shapes, Some(merged.shape));
            let kept = named(&field_set(&pruned_here)?).union(&named(&owned));
            pruned = merged.remove(&named(&field_set(&merged)?).difference(&kept));
        }
        Ok(pruned)
    }

    /// Puts back what the manager did not own: only its own fields may go.
    fn add_back_dangling(
        &self,
        merged: &Typed<'s, '_>,
        pruned: &Typed<'s, '_>,
        last: &VersionedSet,
    ) -> Result<Typed<'s, 'static>, UpdateError> {
        let Some(pruned) =
            self.convert("pruned object to last applied version", pruned, &last.api_version)?
        else {
            return Ok(merged.by_ref().into_owned());
        };
        let named = |set: &Set| set.with_named_fields(merged.shapes, Some(merged.shape));
        let gone = named(&field_set(merged)?).difference(&named(&field_set(&pruned)?));
        Ok(merged.remove(&gone.intersection(&named(&last.set))))
    }
}

fn field_set(object: &Typed<'_, '_>) -> Result<Set, UpdateError> {
    object.to_field_set().map_err(|errors| UpdateError::Invalid {
        task: "create field set",
        errors,
    })
}
