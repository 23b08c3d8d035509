//! Settings of the audit log.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use fairway_kernel_apiserver::audit::policy::Policy;
use fairway_kernel_apiserver::audit::rotation::Limits;
use fairway_kernel_apiserver::audit::{self, Options};
use serde::Deserialize;

use crate::cli::audit::AuditFlags;
use crate::data_dir::DataDir;

/// What `config.yaml` may say of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AuditFile {
    policy_file: Option<PathBuf>,
    log_path: Option<PathBuf>,
    log_maxsize: Option<u32>,
    log_maxage: Option<u32>,
    log_maxbackup: Option<u32>,
    log_compress: Option<bool>,
}

/// `audit: false`, or a section.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AuditSetting {
    /// Whether there is a log.
    Kept(bool),
    /// There is one, and this is how.
    As(Box<AuditFile>),
}

/// Where the log is and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuditConfig {
    policy_file: Option<PathBuf>,
    log_path: Option<PathBuf>,
    limits: Limits,
}

impl AuditConfig {
    /// From the file and the flags; `None`: no log is kept.
    pub(super) fn merge(file: Option<AuditSetting>, flags: &AuditFlags) -> anyhow::Result<Option<Self>> {
        let file = match file {
            _ if flags.no_audit => return Ok(None),
            Some(AuditSetting::Kept(false)) => return Ok(None),
            None | Some(AuditSetting::Kept(true)) => AuditFile::default(),
            Some(AuditSetting::As(file)) => *file,
        };
        let standard = Limits::default();
        let megabytes = flags.audit_log_maxsize.or(file.log_maxsize);
        if megabytes == Some(0) {
            bail!("the audit log's maximum size must be at least one megabyte (--audit-log-maxsize)");
        }
        Ok(Some(Self {
            policy_file: flags.audit_policy_file.clone().or(file.policy_file),
            log_path: flags.audit_log_path.clone().or(file.log_path),
            limits: Limits {
                size: megabytes.map_or(standard.size, |mb| u64::from(mb) << 20),
                days: flags
                    .audit_log_maxage
                    .or(file.log_maxage)
                    .unwrap_or(standard.days),
                parts: flags
                    .audit_log_maxbackup
                    .or(file.log_maxbackup)
                    .unwrap_or(standard.parts),
                compress: flags.audit_log_compress || file.log_compress.unwrap_or(standard.compress),
            },
        }))
    }

    /// Where the log is.
    pub(crate) fn path(&self, data: &DataDir) -> PathBuf {
        self.log_path.clone().unwrap_or_else(|| data.audit_log())
    }

    /// Reads the policy.
    pub(crate) fn options(&self, data: &DataDir) -> anyhow::Result<audit::Options> {
        let policy = match &self.policy_file {
            None => Policy::standard(),
            Some(path) => {
                let content = std::fs::read(path)
                    .with_context(|| format!("the audit policy {} could not be read", path.display()))?;
                Policy::parse(&content)
                    .map_err(|error| anyhow!("the audit policy {} is wrong: {error}", path.display()))?
            }
        };
        Ok(Options {
            path: self.path(data),
            policy,
            limits: self.limits,
        })
    }
}
