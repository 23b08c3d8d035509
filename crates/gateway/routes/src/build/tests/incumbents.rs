//! What a workspace has, it keeps, whoever else asks for it later.

use std::sync::Arc;

use super::read;
use crate::build::{Holders, build};
use crate::settings::Settings;
use crate::table::Door;

/// A Gateway of a workspace, made in that minute.
fn gateway(workspace: &str, name: &str, minute: u32, listeners: &str) -> String {
    format!(
        "---\nkind: Gateway\nworkspace: {workspace}\n\
         metadata: {{name: {name}, creationTimestamp: \"2026-01-01T00:{minute:02}:00Z\"}}\n\
         spec: {{gatewayClassName: fairway, listeners: [{listeners}]}}\n"
    )
}

fn route(workspace: &str, minute: u32, host: &str) -> String {
    format!(
        "---\nkind: Route\nworkspace: {workspace}\n\
         metadata: {{name: r, creationTimestamp: \"2026-01-01T00:{minute:02}:00Z\"}}\n\
         spec: {{host: {host}, to: {{kind: Service, name: web}}}}\n"
    )
}

const HELLO: &str = "{name: http, port: 9000, protocol: HTTP, hostname: hello.com}";
const SHOP: &str = "{name: http, port: 9000, protocol: HTTP, hostname: www.shop.com}";
const SHOPS: &str = "{name: http, port: 9000, protocol: HTTP, hostname: \"*.shop.com\"}";
const TCP: &str = "{name: tcp, port: 9000, protocol: TCP}";
const UDP: &str = "{name: http, port: 9000, protocol: UDP}";

/// Who answers for `www.shop.com` on that port.
fn answers(before: Option<&str>, after: &str, port: u16) -> Option<String> {
    let before = before.map(|text| {
        let (observed, settings) = read(&format!("kind: Settings\n{text}"));
        // As over a restart.
        Holders::restore(build(&observed, &settings).holders.list())
    });
    let (observed, settings) = read(&format!("kind: Settings\n{after}"));
    let settings = Settings {
        holders: Arc::new(before.unwrap_or_default()),
        ..settings
    };
    let table = build(&observed, &settings).table;
    let key = match table.doors.get(&format!("127.0.0.1:{port}").parse().unwrap())? {
        Door::Http(names) => names.candidates("www.shop.com").next()?.key.clone(),
        Door::Tcp(forward) => forward.key.listener.clone(),
        Door::Tls(_) => panic!("nobody asks for it"),
    };
    Some(format!("{}/{}", key.workspace, key.gateway))
}

#[test]
fn who_has_a_name_keeps_it() {
    // `old` is a Gateway that is older than `new`, which has the name.
    let hello = gateway("thief", "old", 1, HELLO);
    let had = |listener: &str| hello.clone() + &gateway("shop", "new", 2, listener);
    let wants =
        |theirs: &str, own: &str| gateway("thief", "old", 1, theirs) + &gateway("shop", "new", 2, own);
    let cases = [
        (
            "nobody had it: the older has it",
            None,
            wants(SHOP, SHOP),
            "thief/old",
        ),
        (
            "an older object asks later",
            Some(had(SHOP)),
            wants(SHOP, SHOP),
            "shop/new",
        ),
        (
            "… for a part of it",
            Some(had(SHOPS)),
            wants(SHOP, SHOPS),
            "shop/new",
        ),
        (
            "… for more than it",
            Some(had(SHOP)),
            wants(SHOPS, SHOP),
            "shop/new",
        ),
        (
            "… for the port, for another protocol",
            Some(had(SHOP)),
            wants(TCP, SHOP),
            "shop/new",
        ),
        (
            "a port without names is kept too",
            Some(gateway("shop", "new", 2, TCP)),
            wants(TCP, TCP),
            "shop/new",
        ),
        (
            "who had it asks for another one",
            Some(had(SHOP)),
            wants(SHOP, HELLO),
            "thief/old",
        ),
        (
            "who had it cannot be served any more",
            Some(had(SHOP)),
            wants(SHOP, UDP),
            "thief/old",
        ),
        (
            "who had it is gone",
            Some(had(SHOP)),
            gateway("thief", "old", 1, SHOP),
            "thief/old",
        ),
        (
            "within a workspace age decides",
            Some(gateway("shop", "old", 1, HELLO) + &gateway("shop", "new", 2, SHOP)),
            gateway("shop", "old", 1, SHOP) + &gateway("shop", "new", 2, SHOP),
            "shop/old",
        ),
        (
            "another object of the workspace follows",
            Some(had(SHOP)),
            gateway("thief", "old", 1, SHOP) + &gateway("shop", "newest", 3, SHOP),
            "shop/newest",
        ),
    ];
    for (why, before, after, expected) in cases {
        let got = answers(before.as_deref(), &after, 9000);
        assert_eq!(got.as_deref(), Some(expected), "{why}");
    }
}

#[test]
fn routes_keep_their_hosts_too() {
    let own = route("shop", 2, "www.shop.com");
    let theirs = route("thief", 1, "www.shop.com");
    let before = route("thief", 1, "hello.com") + &own;
    let after = theirs + &own;
    assert_eq!(answers(None, &after, 80).as_deref(), Some("thief/"), "the older");
    assert_eq!(
        answers(Some(&before), &after, 80).as_deref(),
        Some("shop/"),
        "who had it"
    );
}
