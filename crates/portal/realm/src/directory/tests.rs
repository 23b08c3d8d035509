//! Who is known where, and from which moment on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

fn organization(id: &str) -> Value {
    json!({"spec": {"type": {"name": "organization", "path": "root"}, "cluster": id}})
}

fn user(uid: &str, disabled: bool) -> Value {
    json!({"metadata": {"uid": uid}, "spec": {"disabled": disabled, "email": "a@b"}})
}

fn group(members: &[&str]) -> Value {
    json!({"spec": {"members": members}})
}

fn session(user: &str, expires: i64) -> Value {
    json!({"spec": Session { user: user.to_owned(), expires_at: time::write(expires), ..Session::default() }})
}

fn directory() -> Directory {
    let mut all = Directory::default();
    all.take_workspace("root", "acme", Some(&organization("c1")));
    all.take_workspace("root", "other", Some(&organization("c2")));
    for (cluster, uid) in [("c1", "1"), ("c2", "2"), ("root", "3")] {
        all.take(Fed::User, cluster, "alice", Some(&user(uid, false)));
    }
    all.take(Fed::Session, "c1", "s1", Some(&session("alice", 100)));
    all
}

#[test]
fn organisations_below_the_root_are_realms_and_nothing_else() {
    let mut all = Directory::default();
    let team = json!({"spec": {"type": {"name": "universal", "path": "root"}, "cluster": "c1"}});
    let own = json!({"spec": {"type": {"name": "organization", "path": "root:acme"}, "cluster": "c1"}});
    let unborn = json!({"spec": {"type": {"name": "organization", "path": "root"}}});
    for (parent, name, object) in [
        ("root", "team", &team),
        ("root", "own", &own),
        ("root", "unborn", &unborn),
        ("c9", "deep", &organization("c1")),
        ("root", "root", &organization("c1")),
    ] {
        all.take_workspace(parent, name, Some(object));
        assert_eq!(all.realm("c1"), None, "{name}");
        assert!(all.cluster(name).is_none_or(|it| it == ROOT), "{name}");
    }
    all.take_workspace("root", "acme", Some(&organization("c1")));
    assert_eq!((all.cluster("acme"), all.realm("c1")), (Some("c1"), Some("acme")));
    all.take_workspace("root", "acme", None);
    assert_eq!((all.cluster("acme"), all.realm("c1")), (None, None));
    assert_eq!(
        (all.cluster("root"), all.realm("root")),
        (Some("root"), Some("root"))
    );
}

#[test]
fn users_of_the_same_name_are_not_the_same() {
    let all = directory();
    let names: Vec<_> = ["acme", "other", "root"]
        .iter()
        .map(|realm| all.member(realm, "alice").unwrap())
        .map(|it| (it.uid.clone(), it.username()))
        .collect();
    let expected = [("1", "acme/alice"), ("2", "other/alice"), ("3", "root/alice")];
    assert_eq!(
        names,
        expected.map(|(uid, name)| (uid.to_owned(), name.to_owned()))
    );
    assert_eq!(all.member("acme", "bob"), None);
    assert_eq!(all.member("nowhere", "alice"), None);
}

#[test]
fn a_user_counts_until_he_is_disabled_or_gone_whatever_became_of_his_sessions() {
    let mut all = directory();
    all.take(Fed::Session, "c1", "s1", None);
    let mut leaving = user("1", false);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (object, counts, why) in [
        (Some(user("1", false)), true, "enabled"),
        (Some(user("1", true)), false, "disabled"),
        (Some(user("1", false)), true, "enabled again"),
        (Some(leaving), false, "being deleted"),
        (None, false, "gone"),
        (Some(user("4", false)), false, "another one of that name"),
    ] {
        all.take(Fed::User, "c1", "alice", object.as_ref());
        assert_eq!(all.counts("acme", "alice", "1"), counts, "{why}");
        assert!(all.counts("other", "alice", "2"), "{why}: a neighbour's");
    }
    assert!(!all.counts("acme", "alice", "") && !all.counts("nowhere", "alice", "1"));
}

#[test]
fn who_is_out_is_known_where_the_realm_is_in_use() {
    let mut all = directory();
    all.take_workspace("root", "empty", Some(&organization("c3")));
    all.take(Fed::Group, "c3", "devs", Some(&group(&["alice"])));
    all.take(Fed::User, "c1", "bob", Some(&user("5", true)));
    for (realm, name, expected, why) in [
        ("acme", "alice", false, "a user"),
        ("acme", "bob", true, "a disabled one"),
        ("acme", "carol", true, "one who is gone, or never was"),
        ("empty", "alice", false, "another issuer may stand in for it"),
        ("nowhere", "alice", false, "no realm"),
    ] {
        assert_eq!(all.is_out(realm, name), expected, "{why}");
    }
    // The last user goes: the keys tell that there were some.
    let point = [&[4_u8][..], &[7; 64]].concat();
    let keys = json!({"spec": {"keys": [{"publicKey": STANDARD.encode(point)}]}});
    all.take(Fed::Credential, "c2", REALM_OBJECT, Some(&keys));
    all.take(Fed::User, "c2", "alice", None);
    assert!(all.is_out("other", "alice"));
}

#[test]
fn a_sign_in_is_known_as_it_was_noted() {
    let mut all = directory();
    assert_eq!(all.last_sign_in("acme", "alice"), None);
    let mut alice = user("1", false);
    alice["status"]["lastSignIn"] = json!(time::write(100));
    all.take(Fed::User, "c1", "alice", Some(&alice));
    assert_eq!(all.last_sign_in("acme", "alice"), Some(100));
    assert_eq!(all.last_sign_in("other", "alice"), None);
    assert_eq!(all.last_sign_in("nowhere", "alice"), None);
}

#[test]
fn groups_count_from_the_moment_on() {
    let mut all = directory();
    let of = |all: &Directory| all.member("acme", "alice").unwrap().usergroups();
    assert_eq!(of(&all), ["acme/everyone"]);
    assert!(!all.take(Fed::Group, "c1", "devs", Some(&group(&["alice", "bob"]))));
    assert!(!all.take(Fed::Group, "c1", "admins", Some(&group(&["alice"]))));
    // Another realm's group of the same name is another group.
    all.take(Fed::Group, "c2", "owners", Some(&group(&["alice"])));
    assert_eq!(of(&all), ["acme/admins", "acme/devs", "acme/everyone"]);
    assert!(
        all.take(Fed::Group, "c1", "devs", Some(&group(&["bob"]))),
        "leaving takes rights away"
    );
    assert_eq!(of(&all), ["acme/admins", "acme/everyone"]);
    assert!(all.take(Fed::Group, "c1", "admins", None));
    assert_eq!(of(&all), ["acme/everyone"]);
    // A group may not pretend to be the one that everybody is in, nor one of Kubernetes' own.
    all.take(Fed::Group, "c1", EVERYONE, Some(&group(&["alice"])));
    assert_eq!(of(&all), ["acme/everyone"]);
    all.take_workspace("root", "system", Some(&organization("c3")));
    all.take(Fed::User, "c3", "x", Some(&user("9", false)));
    all.take(Fed::Group, "c3", "masters", Some(&group(&["x"])));
    let groups = all.member("system", "x").unwrap().usergroups();
    assert!(groups.iter().all(|it| !it.starts_with("system:")), "{groups:?}");
}

#[test]
fn who_is_disabled_gone_or_signed_out_is_not_known() {
    let mut all = directory();
    let ask = |all: &Directory| all.signed_in("acme", "alice", "1", "s1", 99).map(|it| it.uid);
    assert_eq!(ask(&all), Ok("1".to_owned()));
    assert!(
        all.signed_in("acme", "alice", "1", "s1", 100).is_err(),
        "its time is up"
    );
    assert!(
        all.signed_in("acme", "alice", "1", "s2", 99).is_err(),
        "no such session"
    );
    assert!(
        all.signed_in("acme", "alice", "0", "s1", 99).is_err(),
        "somebody else of that name"
    );
    assert!(
        all.signed_in("other", "alice", "2", "s1", 99).is_err(),
        "another realm's session"
    );
    assert!(all.take(Fed::User, "c1", "alice", Some(&user("1", true))));
    assert_eq!(ask(&all), Err("the user is gone or disabled"));
    assert!(!all.take(Fed::User, "c1", "alice", Some(&user("1", false))));
    assert!(all.take(Fed::Session, "c1", "s1", None));
    assert_eq!(ask(&all), Err("the session has ended"));
    assert!(all.take(Fed::User, "c1", "alice", None));
    // What is empty is not kept.
    assert!(!all.rooms.contains_key("c1"));
}

#[test]
fn sessions_are_found_and_swept() {
    let mut all = directory();
    let of_browser = json!({"spec": Session {
        user: "alice".to_owned(), browser: "b1".to_owned(), expires_at: time::write(50), ..Session::default()
    }});
    let browser = json!({"spec": Session {
        kind: Kind::Browser, user: "alice".to_owned(), expires_at: time::write(200), ..Session::default()
    }});
    let device =
        json!({"spec": Session { kind: Kind::Device, expires_at: time::write(60), ..Session::default() }});
    all.take(Fed::Session, "c1", "s2", Some(&of_browser));
    all.take(Fed::Session, "c1", "b1", Some(&browser));
    all.take(Fed::Session, "c1", "d1", Some(&device));
    all.take(Fed::Session, "c1", "orphan", Some(&session("bob", 1000)));
    let mut found = all.sessions_of_browser("acme", "b1");
    found.sort_unstable();
    assert_eq!(found, ["b1", "s2"]);
    assert_eq!(all.sessions_of_user("acme", "alice", Kind::Grant), ["s2", "s1"]);
    assert_eq!((all.waiting("acme", 59), all.waiting("acme", 60)), (1, 0));
    let mut over: Vec<_> = all.over(100, 10).into_iter().map(|(_, name)| name).collect();
    over.sort_unstable();
    assert_eq!(over, ["d1", "orphan", "s1", "s2"]);
    assert_eq!(all.over(100, 1).len(), 1);
}

#[test]
fn a_wait_that_was_written_down_holds_for_one_user_and_a_time() {
    let mut all = directory();
    let lock = json!({"spec": guard::lock("alice", "1", 100)});
    all.take(
        Fed::Session,
        "c1",
        &guard::lock_name("acme", "alice"),
        Some(&lock),
    );
    for (realm, user, now, expected) in [
        ("acme", "alice", 40, Some(60)),
        ("acme", "alice", 100, None),
        ("acme", "bob", 40, None),
        ("other", "alice", 40, None),
    ] {
        assert_eq!(all.locked(realm, user, now), expected, "{realm}/{user} at {now}");
    }
    // It is none of the user's sessions, so that new ones do not push it out; and it is swept like them.
    assert!(all.sessions_of_user("acme", "alice", Kind::Browser).is_empty());
    assert!(all.over(100, 10).len() == 2, "with s1");
}

#[test]
fn a_token_without_a_name_lapses_with_its_user_and_its_session() {
    let mut all = directory();
    all.take(Fed::Session, "c2", "s2", Some(&session("alice", 100)));
    const USER: Option<&str> = Some("the user is gone or disabled");
    const SESSION: Option<&str> = Some("the session has ended");
    for (realm, uid, session, now, expected, reason) in [
        ("acme", "1", "s1", 99, None, "as signed in"),
        ("acme", "1", "s1", 100, SESSION, "its time is up"),
        ("acme", "1", "s2", 99, SESSION, "that of another realm"),
        ("acme", "1", "", 99, SESSION, "a token without a session"),
        ("acme", "2", "s1", 99, USER, "somebody else's session"),
        ("acme", "", "s1", 99, USER, "a token of nobody"),
        ("other", "2", "s2", 99, None, "each realm has its own"),
        ("none", "1", "s1", 99, SESSION, "no such realm"),
    ] {
        assert_eq!(all.lapsed(realm, uid, session, now), expected, "{reason}");
    }
    all.take(Fed::User, "c1", "alice", Some(&user("1", true)));
    assert_eq!(all.lapsed("acme", "1", "s1", 99), USER, "disabled");
    all.take(Fed::User, "c1", "alice", Some(&user("9", false)));
    assert_eq!(
        all.lapsed("acme", "1", "s1", 99),
        USER,
        "another of the same name"
    );
    all.take(Fed::User, "c1", "alice", Some(&user("1", false)));
    assert_eq!(all.lapsed("acme", "1", "s1", 99), None, "enabled again");
    all.take(Fed::Session, "c1", "s1", None);
    assert_eq!(all.lapsed("acme", "1", "s1", 99), SESSION, "signed out");
}
