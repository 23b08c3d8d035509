//! Steps from one workspace to another.

use super::*;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

#[test]
fn steps() {
    let long = "n".repeat(63);
    let too_long = "n".repeat(64);
    let deepest = vec!["n"; 31].join(":");
    let too_deep = vec!["n"; 32].join(":");
    for (here, typed, want) in [
        // Down, up, and both.
        ("root", "acme", "root:acme"),
        ("root:acme", "team", "root:acme:team"),
        ("root:acme", "team:x", "root:acme:team:x"),
        ("root:acme", "team/x", "root:acme:team:x"),
        ("root:acme", "./team", "root:acme:team"),
        ("root:acme", "..", "root"),
        ("root:acme", "../", "NO PATH"),
        ("root:acme:team", "../..", "root"),
        ("root:acme:team", "..:other", "root:acme:other"),
        ("root:acme:team", "a:../b", "root:acme:team:b"),
        ("root:acme:team", "..:..:..", "ABOVE root"),
        ("root", "..", "ABOVE root"),
        ("2x8f0a9b1c3d4e5f", "..", "ABOVE 2x8f0a9b1c3d4e5f"),
        ("2x8f0a9b1c3d4e5f", "team", "2x8f0a9b1c3d4e5f:team"),
        // From the top.
        ("root:acme", ":", "root"),
        ("root:acme", "/", "root"),
        ("2x8f0a9b1c3d4e5f:team", ":", "2x8f0a9b1c3d4e5f"),
        ("root:acme", ":root", "root"),
        ("root:acme", ":root:other", "root:other"),
        ("root:acme", ":root:other:..", "root"),
        ("root:acme", ":root:..", "ABOVE root"),
        ("root:acme", ":2x8f0a9b1c3d4e5f", "2x8f0a9b1c3d4e5f"),
        ("root:acme", ":system:fairway", "system:fairway"),
        ("root:acme", "root", "root"),
        ("root:acme", "root:other", "root:other"),
        ("root:acme", "rooted", "root:acme:rooted"),
        // What needs more than the path.
        ("root:acme", ".", "HERE"),
        ("root:acme", "", "HERE"),
        ("root:acme", "-", "BACK"),
        ("root:acme", "~", "HOME "),
        ("root:acme", "~:a:..", "HOME a:.."),
        ("root:acme", "~/a", "HOME a"),
        // A shell has been there first.
        ("root:acme", "/home/ann", "HOME "),
        ("root:acme", "/home/ann/a", "HOME a"),
        ("root:acme", "/home/anna", "home:anna"),
        // What is no name.
        ("root:acme", "a::b", "NO PATH"),
        ("root:acme", "a:", "NO PATH"),
        ("root:acme", "::", "NO PATH"),
        ("root:acme", "A", "NO PATH"),
        ("root:acme", "a b", "NO PATH"),
        ("root:acme", "-a", "NO PATH"),
        ("root:acme", "a~", "NO PATH"),
        ("root:acme", "...", "NO PATH"),
        ("root:acme", "*", "NO PATH"),
        ("root", &too_long, "NO PATH"),
        ("root", &too_deep, "NO PATH"),
        ("root", &long, &format!("root:{long}")),
        ("root", &deepest, &format!("root:{deepest}")),
    ] {
        let got = match destination(&path(here), typed, Some("/home/ann")) {
            Ok(Destination::Here) => "HERE".to_owned(),
            Ok(Destination::Back) => "BACK".to_owned(),
            Ok(Destination::Path(path)) => path.to_string(),
            Ok(Destination::Home(steps)) => format!("HOME {}", steps.0),
            Err(StepError::AboveTop(path)) => format!("ABOVE {path}"),
            Err(StepError::NoPath { typed: told, .. }) => {
                assert_eq!(told, typed);
                "NO PATH".to_owned()
            }
        };
        assert_eq!(got, want, "{typed:?} from {here}");
    }
}

#[test]
fn a_home_directory_of_one_character_is_no_hint() {
    for home in [None, Some(""), Some("/")] {
        let got = destination(&path("root:acme"), "/root", home);
        assert_eq!(got, Ok(Destination::Path(path("root"))), "{home:?}");
    }
}

#[test]
fn steps_from_home() {
    for (steps, want) in [
        ("", Ok("user:ann")),
        ("a", Ok("user:ann:a")),
        ("a:..", Ok("user:ann")),
        ("A", Err(())),
    ] {
        let got = from_home(&path("user:ann"), &Steps(steps.into()));
        assert_eq!(got.map_err(drop), want.map(path), "{steps}");
    }
}

#[test]
fn addresses() {
    for (server, base, workspace) in [
        ("https://h:6443", "https://h:6443", "root"),
        ("https://h:6443/", "https://h:6443", "root"),
        ("https://h:6443/clusters/root:a", "https://h:6443", "root:a"),
        ("https://h:6443/clusters/root:a/", "https://h:6443", "root:a"),
        ("https://h/proxy/clusters/root:a/x", "https://h/proxy", "root:a"),
        ("https://[::1]:6443/clusters/root", "https://[::1]:6443", "root"),
    ] {
        let url = WorkspaceUrl::parse(server).unwrap();
        assert_eq!(
            (url.base.as_str(), url.path.as_str()),
            (base, workspace),
            "{server}"
        );
        assert_eq!(
            url.of(&path("root:b")).to_string(),
            format!("{base}/clusters/root:b")
        );
    }
    for server in [
        "https://h/clusters/*",
        "https://h/clusters//x",
        "https://h/clusters/Root",
    ] {
        assert!(WorkspaceUrl::parse(server).is_err(), "{server}");
    }
}
