//! Which file answers, as a table: paths, encodings, tags, and the build without the application.

use super::*;

static SOME: &[File] = &[
    File {
        path: "/assets/app-1.js",
        kind: "text/javascript; charset=utf-8",
        tag: "t1",
        raw: b"raw",
        brotli: Some(b"br"),
        gzip: Some(b"gz"),
    },
    File {
        path: "/favicon.ico",
        kind: "image/x-icon",
        tag: "t2",
        raw: b"icon",
        brotli: None,
        gzip: None,
    },
];
static PAGE: Index = Index {
    tag: "p1",
    pieces: &["<head nonce=", ">"],
};

fn asked<'a>(path: &'a str, accept_encoding: &'a str, if_none_match: &'a str) -> Asked<'a> {
    Asked {
        path,
        accept_encoding,
        if_none_match,
    }
}

#[test]
fn every_path_has_an_answer() {
    let browser = "gzip, deflate, br, zstd";
    for (path, encodings, tags, status, keep, encoding, content) in [
        (
            "/assets/app-1.js",
            browser,
            "",
            200,
            Keep::Forever,
            Some("br"),
            Content::File(b"br"),
        ),
        (
            "/assets/app-1.js",
            "gzip",
            "",
            200,
            Keep::Forever,
            Some("gzip"),
            Content::File(b"gz"),
        ),
        (
            "/assets/app-1.js",
            "br;q=0, gzip;q=0.5",
            "",
            200,
            Keep::Forever,
            Some("gzip"),
            Content::File(b"gz"),
        ),
        (
            "/assets/app-1.js",
            "*",
            "",
            200,
            Keep::Forever,
            Some("br"),
            Content::File(b"br"),
        ),
        (
            "/assets/app-1.js",
            "*;q=0",
            "",
            200,
            Keep::Forever,
            None,
            Content::File(b"raw"),
        ),
        (
            "/assets/app-1.js",
            "",
            "",
            200,
            Keep::Forever,
            None,
            Content::File(b"raw"),
        ),
        (
            "/assets/app-1.js",
            browser,
            "\"t1-gzip\"",
            304,
            Keep::Forever,
            None,
            Content::None,
        ),
        (
            "/assets/app-1.js",
            browser,
            "\"t0\"",
            200,
            Keep::Forever,
            Some("br"),
            Content::File(b"br"),
        ),
        (
            "/assets/app-2.js",
            browser,
            "",
            404,
            Keep::Not,
            None,
            Content::File(b"There is no such file; reload the page.\n"),
        ),
        (
            "/favicon.ico",
            browser,
            "",
            200,
            Keep::Ask,
            None,
            Content::File(b"icon"),
        ),
        (
            "/favicon.ico",
            browser,
            "W/\"t2\", \"x\"",
            304,
            Keep::Ask,
            None,
            Content::None,
        ),
        ("/", browser, "", 200, Keep::Ask, None, Content::Page(PAGE.pieces)),
        (
            "/machines/root:acme/web",
            "",
            "",
            200,
            Keep::Ask,
            None,
            Content::Page(PAGE.pieces),
        ),
        (
            "/../../etc/passwd",
            "",
            "",
            200,
            Keep::Ask,
            None,
            Content::Page(PAGE.pieces),
        ),
        ("/", browser, "\"p1\"", 304, Keep::Ask, None, Content::None),
    ] {
        let found = find_in(SOME, Some(&PAGE), asked(path, encodings, tags));
        let case = format!("{path} {encodings:?} {tags:?}");
        assert_eq!(found.status, status, "{case}");
        assert_eq!((found.keep, found.encoding), (keep, encoding), "{case}");
        assert_eq!(found.content, content, "{case}");
    }
}

#[test]
fn without_the_application_the_page_says_how_to_build_it() {
    let found = find_in(&[], None, asked("/", "br", "*"));
    assert_eq!(found.status, 503);
    assert_eq!((found.keep, found.tag), (Keep::Not, None));
    let Content::File(page) = found.content else {
        panic!("no page");
    };
    assert!(String::from_utf8_lossy(page).contains("make web"));
}

#[test]
fn forms_have_tags_of_their_own() {
    let tag = |encodings: &str| {
        find_in(SOME, None, asked("/assets/app-1.js", encodings, ""))
            .tag
            .unwrap()
    };
    assert_eq!(tag("br"), "\"t1-br\"");
    assert_eq!(tag("gzip"), "\"t1-gzip\"");
    assert_eq!(tag(""), "\"t1\"");
}

#[test]
fn the_table_of_this_build_is_sorted() {
    assert!(FILES.is_sorted_by(|a, b| a.path < b.path));
}

#[test]
fn the_letters_are_the_upright_ones_whatever_their_hash_is() {
    let file = |path: &'static str, raw: &'static [u8]| File {
        path,
        kind: "font/woff2",
        tag: "t",
        raw,
        brotli: None,
        gzip: None,
    };
    let files = [
        file("/assets/RedHatDisplayVF-D7m.woff2", b"display"),
        file("/assets/RedHatTextVF-Italic-Bw8.woff2", b"italic"),
        file("/assets/RedHatTextVF-DNK-x_.woff2", b"text"),
    ];
    assert_eq!(letters_in(&files), Some(&b"text"[..]));
    assert_eq!(letters_in(&files[..2]), None);
}
