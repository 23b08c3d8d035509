//! Which part answers a path, and where a browser may be sent after it has signed in.

/// The longest path that a browser is sent back to.
const MAX_RETURN: usize = 2_048;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// Sign-in: what follows `/auth/`.
    Auth(&'a str),
    /// A part behind: the Kubernetes API or a sibling.
    Behind,
    /// The application.
    Application,
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Who answers a path.
pub(crate) fn place(path: &str) -> Place<'_> {
    if let Some(rest) = path.strip_prefix("/auth/") {
        return Place::Auth(rest);
    }
    // Backstage's clients reach a workspace by what stands before the path: `/clusters/root:acme/api/...`.
    let inner = path
        .strip_prefix("/clusters/")
        .and_then(|rest| rest.find('/').map(|at| &rest[at..]))
        .unwrap_or(path);
    match is_below(inner, "/api") || is_below(path, "/k8s") {
        true => Place::Behind,
        false => Place::Application,
    }
}

/// Where a browser goes after signing in: the path that was asked for if it is one of this host, else the beginning.
pub(crate) fn return_path(asked: &str) -> &str {
    let is_local = asked.starts_with('/')
        // `//host` and `/\host` are other hosts to a browser.
        && !asked[1..].starts_with(['/', '\\'])
        && asked.len() <= MAX_RETURN
        && asked.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
        // Nobody is sent round in a circle, or to an API.
        && place(asked.split(['?', '#']).next().unwrap_or_default()) == Place::Application;
    if is_local { asked } else { "/" }
}

/// The realm whose people are at home in a workspace: the organisation's, or the root's.
pub(crate) fn realm_of(workspace: &str) -> &str {
    workspace
        .strip_prefix("root:")
        .and_then(|rest| rest.split(':').next())
        .filter(|realm| !realm.is_empty())
        .unwrap_or("root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_parts() {
        for (path, expected) in [
            ("/", Place::Application),
            ("/auth", Place::Application),
            ("/auth/login", Place::Auth("login")),
            ("/api/catalog/entities", Place::Behind),
            ("/api", Place::Behind),
            ("/apis", Place::Application),
            ("/k8s/api/v1", Place::Behind),
            ("/k8snodes", Place::Application),
            ("/clusters/root:acme/api/catalog", Place::Behind),
            ("/clusters/root:acme/machines", Place::Application),
            ("/clusters/root:acme/apis", Place::Application),
            ("/machines/root:acme/default/web", Place::Application),
            ("/assets/app.js", Place::Application),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn nobody_is_sent_elsewhere() {
        for (asked, expected) in [
            ("/", "/"),
            ("/machines?ns=a#b", "/machines?ns=a#b"),
            ("/a//b", "/a//b"),
            ("", "/"),
            ("machines", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/a\\b", "/"),
            ("https://evil.example/", "/"),
            ("javascript:alert(1)", "/"),
            ("/\t/evil.example", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("/auth/login?return=/", "/"),
            ("/auth/logout", "/"),
            ("/k8s/api", "/"),
            ("/api/catalog", "/"),
            ("/ä", "/"),
        ] {
            assert_eq!(return_path(asked), expected, "{asked:?}");
        }
        assert_eq!(return_path(&format!("/{}", "a".repeat(MAX_RETURN))), "/");
    }

    #[test]
    fn people_sign_in_at_home() {
        for (workspace, realm) in [
            ("", "root"),
            ("root", "root"),
            ("root:acme", "acme"),
            ("root:acme:team", "acme"),
            ("root:", "root"),
            ("acme", "root"),
        ] {
            assert_eq!(realm_of(workspace), realm, "{workspace}");
        }
    }
}
