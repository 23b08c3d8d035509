//! Flags of the audit log, under upstream's names.

use std::path::PathBuf;

use clap::Args;

/// What is recorded, where, and for how long.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AuditFlags {
    /// Do not keep an audit log (DIR/audit.log).
    #[arg(long, env = "FAIRWAY_NO_AUDIT")]
    pub no_audit: bool,
    /// What to record: a Policy of audit.k8s.io/v1 [default: metadata of every request].
    #[arg(long, value_name = "FILE", env = "FAIRWAY_AUDIT_POLICY_FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// The audit log; - is the standard output [default: DIR/audit.log].
    #[arg(long, value_name = "FILE", env = "FAIRWAY_AUDIT_LOG_PATH")]
    pub audit_log_path: Option<PathBuf>,
    /// Megabytes after which the audit log is moved aside [default: 100].
    #[arg(long, value_name = "MB", env = "FAIRWAY_AUDIT_LOG_MAXSIZE")]
    pub audit_log_maxsize: Option<u32>,
    /// Days for which parts that were moved aside are kept; 0: for ever [default: 30].
    #[arg(long, value_name = "DAYS", env = "FAIRWAY_AUDIT_LOG_MAXAGE")]
    pub audit_log_maxage: Option<u32>,
    /// How many parts that were moved aside are kept; 0: all [default: 5].
    #[arg(long, value_name = "COUNT", env = "FAIRWAY_AUDIT_LOG_MAXBACKUP")]
    pub audit_log_maxbackup: Option<u32>,
    /// Compress parts that were moved aside.
    #[arg(long, env = "FAIRWAY_AUDIT_LOG_COMPRESS")]
    pub audit_log_compress: bool,
}
