//! Which machine and which port a word means. Words in, values out.

use anyhow::{bail, ensure};

/// What a machine is asked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Machine,
    Instance,
}

impl Kind {
    /// The kind that a word means, in any of kubectl's forms.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word.to_lowercase().as_str() {
            "vm" | "vms" | "virtualmachine" | "virtualmachines" => Some(Self::Machine),
            "vmi" | "vmis" | "virtualmachineinstance" | "virtualmachineinstances" => Some(Self::Instance),
            _ => None,
        }
    }

    /// The short word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Machine => "vm",
            Self::Instance => "vmi",
        }
    }

    /// The resource.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Machine => "virtualmachines",
            Self::Instance => "virtualmachineinstances",
        }
    }
}

/// A machine that somebody means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Option<Kind>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl Target {
    /// `NAME`, `vm/NAME`, `vmi/NAME` or `NAMESPACE/NAME`. A namespace with the name of a kind is meant with `-n` only.
    pub(super) fn parse(word: &str) -> anyhow::Result<Self> {
        let (before, name) = match word.split_once('/') {
            Some((_, rest)) if rest.contains('/') => bail!("target is not valid with more than one '/'"),
            Some((before, name)) => (Some(before), name),
            None => (None, word),
        };
        ensure!(!name.is_empty(), "expected name after '/'");
        let kind = before.and_then(Kind::parse);
        let namespace = before.filter(|_| kind.is_none());
        ensure!(namespace != Some(""), "expected kind or namespace before '/'");
        checked(name)?;
        namespace.map(checked).transpose()?;
        Ok(Self {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }

    /// The same, and `NAME.NAMESPACE`: where virtctl understands that, names have no dots.
    pub(super) fn parse_dotted(word: &str) -> anyhow::Result<Self> {
        let mut target = Self::parse(word)?;
        ensure!(!target.name.starts_with('.'), "expected name before '.'");
        ensure!(!target.name.ends_with('.'), "expected namespace after '.'");
        if let (None, Some((name, namespace))) = (&target.namespace, target.name.rsplit_once('.')) {
            (target.name, target.namespace) = (name.to_owned(), Some(namespace.to_owned()));
        }
        Ok(target)
    }
}

/// What becomes part of an address must not lead elsewhere.
fn checked(name: &str) -> anyhow::Result<()> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_');
    ensure!(
        name.chars().all(is_plain) && name != "." && name != "..",
        "{name:?} is not a name: names have lower-case letters, digits, dashes and dots"
    );
    Ok(())
}

/// A user and a machine: `USER@TARGET`.
pub(super) fn login(word: &str) -> anyhow::Result<(Option<String>, Target)> {
    let (user, rest) = match word.split_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, word),
    };
    ensure!(user != Some(""), "expected username before '@'");
    ensure!(!rest.is_empty(), "expected target after '@'");
    // ssh would take it for an option.
    ensure!(
        user.is_none_or(|it| !it.starts_with('-')),
        "{word:?} is not a user"
    );
    Ok((user.map(str::to_owned), Target::parse_dotted(rest)?))
}

/// A copy: what is here, what is there, and which way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) local: String,
    pub(super) user: Option<String>,
    pub(super) target: Target,
    pub(super) path: String,
    pub(super) to_guest: bool,
}

/// Reads both ends of a copy: one of them has a colon.
pub(super) fn copy(source: &str, destination: &str) -> anyhow::Result<Copy> {
    let (remote, local, to_guest) = match (source.split_once(':'), destination.split_once(':')) {
        (Some(_), Some(_)) => bail!(
            "copying from a remote location to another remote location is not supported: {source:?} to {destination:?}"
        ),
        (None, None) => bail!(
            "none of the two provided locations seems to be a remote location: {source:?} to {destination:?}"
        ),
        (Some(remote), None) => (remote, destination, false),
        (None, Some(remote)) => (remote, source, true),
    };
    let (user, target) = login(remote.0)?;
    Ok(Copy {
        local: local.to_owned(),
        user,
        target,
        path: remote.1.to_owned(),
        to_guest,
    })
}

/// A port here and a port of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) local: u16,
    pub(super) remote: u16,
}

impl Port {
    /// `[tcp/]LOCAL[:REMOTE]`.
    pub(super) fn parse(word: &str) -> anyhow::Result<Self> {
        let (protocol, ports) = word.split_once('/').unwrap_or(("tcp", word));
        match protocol {
            "tcp" => {}
            "udp" => bail!(
                "UDP ports are not forwarded: Fairway carries TCP into guests; make a Service with `fairway vm expose \
                 --protocol UDP`"
            ),
            other => bail!("unknown protocol: {other}"),
        }
        let mut numbers = ports.split(':').filter(|it| !it.is_empty());
        let Some(local) = numbers.next() else {
            bail!("invalid port, missing local and/or remote port");
        };
        let number = |text: &str| match text.parse::<u16>() {
            Ok(number) => Ok(number),
            Err(_) => bail!("{text:?} is not a port: 0 to 65535"),
        };
        let local = number(local)?;
        let remote = numbers.next().map_or(Ok(local), number)?;
        ensure!(
            numbers.next().is_none(),
            "{word:?} has more than two ports: LOCAL:REMOTE"
        );
        ensure!(
            remote != 0,
            "0 is no port of a guest: write 0:REMOTE for any local port"
        );
        Ok(Self { local, remote })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: Option<Kind>, namespace: Option<&str>, name: &str) -> Target {
        Target {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn machines() {
        let (vm, vmi) = (Some(Kind::Machine), Some(Kind::Instance));
        for (word, plain, dotted) in [
            ("web", target(None, None, "web"), target(None, None, "web")),
            ("vm/web", target(vm, None, "web"), target(vm, None, "web")),
            ("VMIs/web", target(vmi, None, "web"), target(vmi, None, "web")),
            (
                "virtualmachines/web",
                target(vm, None, "web"),
                target(vm, None, "web"),
            ),
            (
                "ns/web",
                target(None, Some("ns"), "web"),
                target(None, Some("ns"), "web"),
            ),
            // Whoever names the namespace means the whole of the rest as the name.
            (
                "ns/a.b",
                target(None, Some("ns"), "a.b"),
                target(None, Some("ns"), "a.b"),
            ),
            (
                "vm/web.ns",
                target(vm, None, "web.ns"),
                target(vm, Some("ns"), "web"),
            ),
            (
                "a.b.ns",
                target(None, None, "a.b.ns"),
                target(None, Some("ns"), "a.b"),
            ),
        ] {
            assert_eq!(Target::parse(word).unwrap(), plain, "{word}");
            assert_eq!(Target::parse_dotted(word).unwrap(), dotted, "{word}");
        }
        for (word, expected) in [
            ("vm/", "expected name after '/'"),
            ("", "expected name after '/'"),
            ("/web", "expected kind or namespace before '/'"),
            ("vm/a/b", "target is not valid with more than one '/'"),
            ("vm/.ns", "expected name before '.'"),
            ("vm/web.", "expected namespace after '.'"),
            (
                "vm/we?b",
                "\"we?b\" is not a name: names have lower-case letters, digits, dashes and dots",
            ),
            (
                "..",
                "\"..\" is not a name: names have lower-case letters, digits, dashes and dots",
            ),
        ] {
            let error = Target::parse_dotted(word).unwrap_err().to_string();
            assert_eq!(error, expected, "{word}");
        }
    }

    #[test]
    fn logins_and_copies() {
        let web = target(Some(Kind::Machine), Some("ns"), "web");
        assert_eq!(
            login("jdoe@vm/web.ns").unwrap(),
            (Some("jdoe".to_owned()), web.clone())
        );
        assert_eq!(login("vm/web.ns").unwrap(), (None, web.clone()));
        for (word, expected) in [
            ("@web", "expected username before '@'"),
            ("jdoe@", "expected target after '@'"),
            ("-oProxyCommand=x@web", "\"-oProxyCommand=x@web\" is not a user"),
        ] {
            assert_eq!(login(word).unwrap_err().to_string(), expected, "{word}");
        }
        let copied = copy("jdoe@vm/web.ns:a:b", "here").unwrap();
        let expected = Copy {
            local: "here".to_owned(),
            user: Some("jdoe".to_owned()),
            target: web,
            path: "a:b".to_owned(),
            to_guest: false,
        };
        assert_eq!(copied, expected);
        assert!(copy("here", "vm/web:").unwrap().to_guest);
        assert!(copy("a", "b").is_err() && copy("a:b", "c:d").is_err());
    }

    #[test]
    fn ports() {
        for (word, local, remote) in [
            ("8080", 8080, 8080),
            ("8080:80", 8080, 80),
            ("tcp/8080:80", 8080, 80),
            (":80", 80, 80),
            ("0:80", 0, 80),
        ] {
            assert_eq!(Port::parse(word).unwrap(), Port { local, remote }, "{word}");
        }
        for (word, expected) in [
            ("", "invalid port, missing local and/or remote port"),
            (":", "invalid port, missing local and/or remote port"),
            ("http", "\"http\" is not a port: 0 to 65535"),
            ("80:70000", "\"70000\" is not a port: 0 to 65535"),
            ("1:2:3", "\"1:2:3\" has more than two ports: LOCAL:REMOTE"),
            ("0", "0 is no port of a guest: write 0:REMOTE for any local port"),
            ("sctp/1", "unknown protocol: sctp"),
        ] {
            assert_eq!(Port::parse(word).unwrap_err().to_string(), expected, "{word}");
        }
        assert!(
            Port::parse("udp/53")
                .unwrap_err()
                .to_string()
                .starts_with("UDP ports are not forwarded")
        );
    }
}
