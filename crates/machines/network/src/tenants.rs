//! Workspaces as numbers, which frames are judged by, and back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fairway_machines_frames::Tenant;

/// Numbers are given out once and kept: a workspace that comes back has the same one.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    known: Mutex<(HashMap<String, Tenant>, Vec<String>)>,
}

impl Tenants {
    pub(crate) fn number(&self, workspace: &str) -> Tenant {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (numbers, names) = &mut *known;
        if let Some(tenant) = numbers.get(workspace) {
            return *tenant;
        }
        let tenant = Tenant(u32::try_from(names.len()).unwrap_or(u32::MAX));
        numbers.insert(workspace.to_owned(), tenant);
        names.push(workspace.to_owned());
        tenant
    }

    /// The number of a workspace that has one.
    pub(crate) fn find(&self, workspace: &str) -> Option<Tenant> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.0.get(workspace).copied()
    }

    pub(crate) fn name(&self, tenant: Tenant) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.get(usize::try_from(tenant.0).ok()?).cloned()
    }
}
