//! Mail addresses, as RFC 5322 has them in a header: `a@example.com` or `Name <a@example.com>`.

/// Characters of atoms; anything beyond ASCII counts (RFC 6532).
fn atom_char(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// A quoted string at the beginning: what follows it, and whether it was empty.
fn quoted(text: &str) -> Option<(&str, bool)> {
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Some((&text[i + 2..], i == 0)),
            '\\' => {
                chars.next()?;
            }
            '\r' | '\n' => return None,
            c if c.is_control() && c != '\t' => return None,
            _ => {}
        }
    }
    None
}

/// Atoms joined by single dots at the beginning: what follows.
fn dot_atom(text: &str) -> Option<&str> {
    let length = text.find(|c| !atom_char(c) && c != '.').unwrap_or(text.len());
    let atom = &text[..length];
    let well_formed = !atom.is_empty() && atom.split('.').all(|part| !part.is_empty());
    well_formed.then(|| &text[length..])
}

/// `local@domain` at the beginning: what follows.
fn addr_spec(text: &str) -> Option<&str> {
    let rest = match quoted(text) {
        Some((_, true)) => return None,
        Some((rest, false)) => rest,
        None if text.starts_with('"') => return None,
        None => dot_atom(text)?,
    };
    let domain = skip_space(skip_space(rest).strip_prefix('@')?);
    match domain.strip_prefix('[') {
        Some(literal) => {
            let (address, rest) = literal.split_once(']')?;
            let address = address.strip_prefix("IPv6:").unwrap_or(address);
            address.parse::<std::net::IpAddr>().ok().map(|_| rest)
        }
        None => dot_atom(domain),
    }
}

/// Spaces and comments in parentheses may follow an address.
fn only_comments(mut text: &str) -> bool {
    loop {
        text = skip_space(text);
        if text.is_empty() {
            return true;
        }
        let mut depth = 0_usize;
        let mut end = None;
        let mut escaped = false;
        for (i, c) in text.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' if depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        end = Some(i + 1);
                        break;
                    }
                }
                _ if depth == 0 => return false,
                _ => {}
            }
        }
        match end {
            Some(end) => text = &text[end..],
            None => return false,
        }
    }
}

pub(super) fn is_address(text: &str) -> bool {
    let text = skip_space(text);
    if addr_spec(text).is_some_and(only_comments) {
        return true;
    }
    // A display name: words, quoted or not, before an address in angle brackets.
    let mut rest = text;
    loop {
        rest = skip_space(rest);
        if let Some(inner) = rest.strip_prefix('<') {
            return addr_spec(skip_space(inner))
                .and_then(|r| skip_space(r).strip_prefix('>'))
                .is_some_and(only_comments);
        }
        rest = match quoted(rest) {
            Some((after, _)) => after,
            None => {
                let length = rest.find(|c| !atom_char(c) && c != '.').unwrap_or(rest.len());
                if length == 0 {
                    return false;
                }
                &rest[length..]
            }
        };
    }
}
