//! Verbs about disks.

use std::path::PathBuf;

use clap::Args;

use super::power::Named;
use super::{DryRun, switch};

/// Options of `vm addvolume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AddVolume {
    /// To which.
    #[command(flatten)]
    pub named: Named,
    /// The DataVolume or PersistentVolumeClaim.
    #[arg(long, value_name = "NAME")]
    pub volume_name: String,
    /// Serial number of the disk [default: the name].
    #[arg(long, value_name = "SERIAL", default_value = "", hide_default_value = true)]
    pub serial: String,
    /// How the host caches: none, writethrough or writeback.
    #[arg(long, value_name = "MODE", default_value = "", hide_default_value = true)]
    pub cache: String,
    /// disk or lun.
    #[arg(long, value_name = "TYPE", default_value = "disk")]
    pub disk_type: String,
    /// Write it into the VirtualMachine, too.
    #[arg(long = "persist", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub persists: bool,
    /// Nothing is to be changed.
    #[command(flatten)]
    pub dry_run: DryRun,
}

/// Options of `vm removevolume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoveVolume {
    /// From which.
    #[command(flatten)]
    pub named: Named,
    /// Name of the volume.
    #[arg(long, value_name = "NAME")]
    pub volume_name: String,
    /// Take it out of the VirtualMachine, too.
    #[arg(long = "persist", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub persists: bool,
    /// Nothing is to be changed.
    #[command(flatten)]
    pub dry_run: DryRun,
}

/// Options of `vm backup`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Backup {
    /// Of which.
    #[command(flatten)]
    pub named: Named,
    /// The directory for the files: qcow2, each over the one before.
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Copy everything, also if less would do.
    #[arg(long)]
    pub full: bool,
}

/// Options of `vm image-upload`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageUpload {
    /// What to fill: dv NAME or pvc NAME.
    #[arg(value_name = "dv|pvc NAME", num_args = 0..=2)]
    pub words: Vec<String>,
    /// The image: raw or qcow2, also packed with gz, xz or zst.
    #[arg(long, value_name = "FILE")]
    pub image_path: Option<PathBuf>,
    /// An archive instead of an image.
    #[arg(long, value_name = "FILE")]
    pub archive_path: Option<PathBuf>,
    /// Size of the volume to make, such as 10Gi.
    #[arg(long, value_name = "SIZE", default_value = "", hide_default_value = true)]
    pub size: String,
    /// Its StorageClass [default: the default one].
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub storage_class: String,
    /// Its access mode.
    #[arg(long, value_name = "MODE", default_value = "", hide_default_value = true)]
    pub access_mode: String,
    /// block or filesystem [default: what the StorageClass has].
    #[arg(long, value_name = "MODE", default_value = "", hide_default_value = true)]
    pub volume_mode: String,
    /// Fill one that is there.
    #[arg(long = "no-create", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub uses_existing: bool,
    /// Do not wait until a machine uses the volume.
    #[arg(long = "force-bind", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub forces_bind: bool,
    /// Make a DataSource for it, too.
    #[arg(long = "datasource", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub makes_data_source: bool,
    /// Address of the upload proxy [default: what CDIConfig says].
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub uploadproxy_url: String,
    /// Believe any certificate of the proxy.
    #[arg(long = "insecure", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_insecure: bool,
    /// How often to try.
    #[arg(long, value_name = "TIMES", default_value_t = 5)]
    pub retry: u32,
    /// Seconds to wait until the volume can be filled.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub wait_secs: u64,
    /// The instance type that goes with the image.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub default_instancetype: String,
    /// Its kind.
    #[arg(long, value_name = "KIND", default_value = "", hide_default_value = true)]
    pub default_instancetype_kind: String,
    /// The preference that goes with the image.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub default_preference: String,
    /// Its kind.
    #[arg(long, value_name = "KIND", default_value = "", hide_default_value = true)]
    pub default_preference_kind: String,
}
