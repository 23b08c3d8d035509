//! `fairway vm` on the command line: virtctl's verbs, flags and forms, and what Fairway adds to them.

pub(crate) mod credentials;
pub(crate) mod doors;
pub(crate) mod power;
pub(crate) mod show;
pub(crate) mod storage;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Data;
use super::workspace::Where;

/// Options of `vm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Vm {
    /// Which API, which namespace.
    #[command(flatten)]
    pub place: Place,
    /// What to do.
    #[command(subcommand)]
    pub command: VmCommand,
}

/// What can be done with machines.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum VmCommand {
    /// Start a virtual machine.
    Start(power::Start),
    /// Stop a virtual machine.
    Stop(power::Stop),
    /// Restart a virtual machine.
    Restart(power::Stop),
    /// Pause a virtual machine: it keeps its memory and does nothing.
    Pause(power::Pause),
    /// Let a paused virtual machine go on.
    Unpause(power::Pause),
    /// Ask the guest to reboot, by its agent or its power button.
    SoftReboot(power::Named),
    /// Reset a virtual machine at once, as by its button; the guest is not asked.
    Reset(power::Named),
    /// Bring what the guest has written to disk, and let it write nothing until it is unfrozen.
    Freeze(power::Freeze),
    /// Let a frozen guest write again.
    Unfreeze(power::Named),
    /// Move a running virtual machine to another node.
    Migrate(power::Migrate),
    /// Cancel the migration of a virtual machine.
    MigrateCancel(power::Named),
    /// Connect to the serial console of a virtual machine.
    Console(doors::Console),
    /// Open the screen of a virtual machine, or save a picture of it.
    Vnc(doors::Vnc),
    /// Log in to a virtual machine with the ssh of this host.
    Ssh(doors::Ssh),
    /// Copy files from or to a virtual machine with the scp of this host.
    Scp(doors::Scp),
    /// Forward local ports to a virtual machine.
    PortForward(doors::PortForward),
    /// Make a Service for a virtual machine.
    Expose(doors::Expose),
    /// Upload a disk image to a DataVolume or a PersistentVolumeClaim.
    ImageUpload(Box<storage::ImageUpload>),
    /// Add a volume to a running virtual machine.
    Addvolume(storage::AddVolume),
    /// Remove a volume from a running virtual machine.
    Removevolume(storage::RemoveVolume),
    /// Back up the disks of a running virtual machine; into the same directory again, only what has changed.
    Backup(storage::Backup),
    /// Change who may log in to a virtual machine, by the Secrets that it names.
    Credentials(Box<credentials::Credentials>),
    /// Show what the guest agent says of the operating system.
    Guestosinfo(power::Named),
    /// List the file systems of the guest, by its agent.
    Fslist(power::Named),
    /// List who is logged in to the guest, by its agent.
    Userlist(power::Named),
    /// Print a virtual machine with what its instancetype and its preference give it.
    Expand(show::Expand),
    /// List virtual machines.
    #[command(visible_alias = "ls")]
    List(show::List),
    /// Show what running virtual machines use of their hosts.
    Top(show::Top),
    /// Show what happened to virtual machines, their disks and their migrations.
    Events(show::Events),
    /// Show why a virtual machine does not do what it is for: the same as `fairway why vm/NAME`.
    Why(show::Why),
}

/// Which API and which namespace is meant. Takes its place before or after the verb, as with virtctl.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    /// The namespace [default: that of the context, or default].
    #[arg(short = 'n', long, value_name = "NS", global = true)]
    pub namespace: Option<String>,
    /// The context of the kubeconfig to use [default: the current one].
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// The workspace to look into, such as root:acme [default: that of the context].
    #[arg(short = 'w', long, value_name = "PATH", global = true)]
    pub workspace: Option<String>,
    /// The kubeconfig to use [default: $KUBECONFIG, ~/.kube/config, or that of the Fairway on this machine].
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Directory of the installation's state [default: ~/.local/share/fairway].
    #[arg(long, value_name = "DIR", env = "FAIRWAY_DATA", global = true)]
    pub data: Option<PathBuf>,
}

impl Place {
    /// The same for what other commands share.
    pub(crate) fn kubeconfig(&self) -> Where {
        Where {
            kubeconfig: self.kubeconfig.clone(),
            data: Data {
                dir: self.data.clone(),
            },
        }
    }
}

/// A switch as Go's programs read it: `--flag` or `--flag=true`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Nothing is to be changed.
#[derive(Args, Clone, Debug)]
pub(crate) struct DryRun {
    /// Ask, and change nothing.
    #[arg(long = "dry-run", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_dry: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::VmCommand;
    use crate::cli::{Cli, Command};

    fn read(line: &str) -> Result<super::Vm, String> {
        let words = format!("fairway vm {line}");
        match Cli::try_parse_from(words.split(' ')) {
            Ok(Cli {
                command: Command::Vm(vm),
            }) => Ok(*vm),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn lines_that_people_type_for_virtctl() {
        for line in [
            "start web",
            "-n user-vms start web --paused",
            "start web --namespace=user-vms --dry-run=true",
            "stop web --force --grace-period=0",
            "stop web --force=true --grace-period 0",
            "restart web",
            "pause vm web",
            "pause web",
            "unpause vmi web -n user-vms",
            "soft-reboot web",
            "reset web",
            "freeze user-vms/web --unfreeze-timeout=5m",
            "unfreeze web -n user-vms",
            "credentials add-ssh-key --user demo --file key.pub web",
            "credentials add-ssh-key -u demo --value ssh-ed25519 --create-secret --force web -n user-vms",
            "credentials add-ssh-key -u demo -f key.pub --update-secret --secret keys web",
            "credentials remove-ssh-key --user demo --file key.pub --force=true web",
            "credentials set-password --user demo --password - web",
            "migrate web --dry-run",
            "migrate-cancel web",
            "console web --timeout=1",
            "vnc web --proxy-only --port 5900 --address=0.0.0.0",
            "vnc screenshot web -f picture.png",
            "vnc screenshot -f - web --move-cursor",
            "ssh demo@vm/web -i key -t -oStrictHostKeyChecking=no -p 2222 -c hostname",
            "ssh --local-ssh=true --local-ssh-opts=-oLogLevel=ERROR -l demo vmi/web.user-vms",
            "scp file demo@vmi/web:file -r --preserve",
            "port-forward user-vms/web 8080:80",
            "port-forward vm/web --stdio=true 22",
            "port-forward vmi/web.user-vms tcp/8080:80 9090 --address ::1",
            "expose vmi web --port=22 --name=web-ssh --type=NodePort",
            "image-upload dv mine --size=10Gi --image-path=/disk.qcow2 --insecure --force-bind",
            "addvolume web --volume-name=more --serial=1 --persist --cache none --disk-type=lun",
            "removevolume web --volume-name=more --dry-run",
            "guestosinfo web",
            "fslist web",
            "userlist web",
            "expand --vm web",
            "expand --vm=web -n user-vms -o json",
            "expand --file=vm.yaml --output yaml",
            "expand -f -",
            "list -A -o wide",
            "ls -l app=web -o json",
            "top --interval 2 -n user-vms",
            "events web -f",
            "events -A",
            "why user-vms/web -o yaml",
        ] {
            read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        for line in [
            "start",
            "start a b",
            "stop web --force=maybe",
            "expose vm web",
            "vnc",
            "reset",
            "credentials",
            "credentials add-ssh-key --user demo web",
            "credentials add-ssh-key --file key.pub web",
            "credentials add-ssh-key --user demo --file key.pub --value key web",
            "credentials add-ssh-key --user demo --file key.pub --create-secret --update-secret web",
            "credentials set-password --user demo web",
            "expand web",
            "expand --vm web --file vm.yaml",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn switches_have_values() {
        for (line, expected) in [
            ("start web", false),
            ("start web --paused", true),
            ("start web --paused=1", true),
            ("start web --paused=False", false),
        ] {
            match read(line).unwrap().command {
                VmCommand::Start(start) => assert_eq!(start.is_paused, expected, "{line}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
