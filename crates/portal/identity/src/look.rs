//! How pages of sign-in look: as the portal does, which is PatternFly 6, without its scripts and with a style of few kilobytes. Who serves such
//! a page at another host serves the style and the font beside it.

/// The style. It takes its colours, sizes and radii from PatternFly's tokens, and the letters from `font.woff2` beside it, if there is one.
pub const STYLE: &str = include_str!("style.css");
/// The logo, which is the portal's.
const LOGO: &str = include_str!("logo.svg");

/// A text as part of a page.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
    out
}

/// A whole page: a title, which is escaped here, and HTML, which is not. The style is at `style`.
pub fn page(title: &str, style: &str, content: &str) -> String {
    let title = escape(title);
    let logo = LOGO.trim_end();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <link rel=\"stylesheet\" href=\"{style}\">\n</head>\n<body>\n<header>{logo}<span>Fairway</span></header>\n<main>\n\
         <h1>{title}</h1>\n{content}</main>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logo_is_the_portals_and_hides_from_screen_readers() {
        let portal = include_str!("../../../../web/src/shell/icon.svg");
        let drawn = |svg: &str| svg[svg.find("<rect").unwrap()..].trim_end().to_owned();
        assert_eq!(drawn(LOGO), drawn(portal));
        assert!(LOGO.starts_with("<svg aria-hidden=\"true\""));
    }

    #[test]
    fn pages_load_nothing_but_what_lies_beside_them() {
        for strange in ["http:", "https:", "//", "data:", "@import"] {
            assert!(!STYLE.contains(strange), "{strange}");
        }
        let addresses: Vec<&str> = STYLE
            .split("url(")
            .skip(1)
            .filter_map(|it| it.split(')').next())
            .collect();
        assert_eq!(addresses, ["\"font.woff2\""]);
        let page = page("<b>", "/style.css", "<p>x</p>");
        assert!(
            !page.contains("<script") && !page.contains("style=") && page.contains("<h1>&lt;b&gt;</h1>"),
            "{page}"
        );
        assert!(STYLE.len() < 8_000, "{} bytes", STYLE.len());
    }
}
