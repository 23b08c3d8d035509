//! Addresses of repositories and refspecs: what of them may be handed to `git`.

use percent_encoding::percent_decode_str;

use crate::GitError;
use crate::refs::ref_problem;

/// Takes the password out of an address: what remains, and name and password if there were any. A name alone stays, since
/// SSH needs it.
pub fn split_credentials(url: &str) -> (String, Option<(String, String)>) {
    let Some((scheme, rest)) = url.split_once("://") else {
        return (url.to_owned(), None);
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let Some((user, host)) = authority.rsplit_once('@') else {
        return (url.to_owned(), None);
    };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let found = Some((decode(name), decode(password)));
    let keeps_name = scheme == "ssh" || (password.is_empty() && !name.is_empty());
    match keeps_name {
        true => (format!("{scheme}://{name}@{host}{path}"), found),
        false => (format!("{scheme}://{host}{path}"), found),
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Refuses what is no address, and what `git` would take for something else.
pub(super) fn check(url: &str) -> Result<(), GitError> {
    let refuse = |why: &str| Err(GitError::invalid("the address", url, why));
    if url.starts_with('-') || url.contains(char::is_control) || url.contains(' ') {
        return refuse("it begins with -, or has a space or control character in it");
    }
    if url.len() > 2048 {
        return refuse("it is longer than 2048 bytes");
    }
    // `helper::address` would name a program.
    if url.contains("::") && !url.contains('[') {
        return refuse("it names a helper program");
    }
    match url.split_once("://") {
        Some(("https" | "http" | "ssh" | "file", rest)) => {
            let host = rest.split('/').next().unwrap_or("");
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            match host.starts_with('-') {
                true => refuse("its host begins with -"),
                false => Ok(()),
            }
        }
        Some(_) => refuse("its scheme is not one of https, http and ssh"),
        None => match url.split_once(':') {
            Some((host, path)) if !host.is_empty() && !host.contains('/') && !path.is_empty() => {
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                match host.starts_with('-') {
                    true => refuse("its host begins with -"),
                    false => Ok(()),
                }
            }
            _ => refuse("it is neither a URL nor user@host:path"),
        },
    }
}

/// Whether it is reached over SSH.
pub(super) fn is_ssh(url: &str) -> bool {
    url.starts_with("ssh://") || !url.contains("://")
}

/// Scheme, host and port: what credentials are good for.
pub(super) fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority = rest.split('/').next().unwrap_or("");
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

/// Refuses what is no refspec.
pub(super) fn check_refspec(refspec: &str) -> Result<(), GitError> {
    let plain = refspec.strip_prefix('+').unwrap_or(refspec);
    let (source, target) = plain.split_once(':').unwrap_or((plain, ""));
    let is_good =
        |side: &str| side.matches('*').count() <= 1 && ref_problem(&side.replace('*', "x")).is_none();
    let has_both_stars = target.is_empty() || source.contains('*') == target.contains('*');
    match !refspec.starts_with('-')
        && is_good(source)
        && (target.is_empty() || is_good(target))
        && has_both_stars
    {
        true => Ok(()),
        false => Err(GitError::invalid(
            "the refspec",
            refspec,
            "it is not of the form [+]SOURCE[:TARGET]",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_taken_out_of_addresses() {
        type Case<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>);
        let cases: &[Case<'_>] = &[
            ("https://a:p%40ss@h/x", "https://h/x", Some(("a", "p@ss"))),
            ("https://a:b:c@h:1/x@y", "https://h:1/x@y", Some(("a", "b:c"))),
            ("https://tok@h/x", "https://tok@h/x", Some(("tok", ""))),
            ("https://h/x", "https://h/x", None),
            ("ssh://git:pw@h/x", "ssh://git@h/x", Some(("git", "pw"))),
            ("git@h:x/y", "git@h:x/y", None),
            ("https://a:%zz%4@h/", "https://h/", Some(("a", "%zz%4"))),
        ];
        for (url, clean, found) in cases {
            let found = found.map(|(name, word)| (name.to_owned(), word.to_owned()));
            assert_eq!(split_credentials(url), ((*clean).to_owned(), found), "{url}");
        }
    }

    #[test]
    fn addresses_that_name_programs_or_options_are_refused() {
        let cases: &[(&str, bool)] = &[
            ("https://example.com/a/b.git", true),
            ("http://[::1]:3000/a", true),
            ("git@example.com:a/b.git", true),
            ("ssh://git@example.com:22/a", true),
            ("ext::sh -c x", false),
            ("ext::sh", false),
            ("--upload-pack=x", false),
            ("ssh://-oProxyCommand=x/a", false),
            ("ssh://u@-oProxyCommand=x/a", false),
            ("u@-oProxyCommand=x:a", false),
            ("-oProxyCommand=x:a", false),
            ("git://example.com/a", false),
            ("/etc", false),
            ("../x", false),
            ("https://a/\nb", false),
        ];
        for (url, good) in cases {
            assert_eq!(check(url).is_ok(), *good, "{url}");
        }
    }

    #[test]
    fn refspecs_are_judged() {
        let cases: &[(&str, bool)] = &[
            ("+refs/heads/*:refs/heads/*", true),
            ("main", true),
            ("refs/pull/1/head:refs/pull/1/head", true),
            ("refs/heads/*:refs/heads/x", false),
            ("--upload-pack=x", false),
            ("a b", false),
            ("", false),
            ("**:**", false),
        ];
        for (refspec, good) in cases {
            assert_eq!(check_refspec(refspec).is_ok(), *good, "{refspec}");
        }
    }
}
