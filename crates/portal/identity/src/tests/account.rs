//! One's own account: who may change what, and what is asked for before.

use fairway_portal_realm::totp;
use ring::hmac;

use super::*;

const OLD: &str = "correct horse battery";
const NEW: &str = "staple wrench lantern";
const SEED: &[u8; 20] = b"12345678901234567890";

/// The code that an app shows now.
fn code(seed: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, seed);
    let step = u64::try_from(now() / 30).unwrap();
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[19] & 15);
    let word = [tag[at] & 0x7f, tag[at + 1], tag[at + 2], tag[at + 3]];
    format!("{:06}", u32::from_be_bytes(word) % 1_000_000)
}

fn named(name: &str, kind: Kind, browser: &str) -> Value {
    let session = Session {
        kind,
        user: "alice".to_owned(),
        user_uid: "u-1".to_owned(),
        browser: browser.to_owned(),
        secret_digest: secret::digest("secret"),
        expires_at: time::write(now() + 600),
        ..Session::default()
    };
    json!({"metadata": {"name": name}, "spec": session})
}

fn credential_with(seed: Option<&[u8]>) -> Value {
    let mut credential = credential();
    credential["metadata"]["resourceVersion"] = json!("7");
    if let Some(seed) = seed {
        credential["spec"]["totpSeed"] = json!(totp::encode(seed));
    }
    credential
}

/// A browser that alice has signed in with, what it sends, and what it is told.
struct Desk {
    name: String,
    realms: Arc<Realms>,
    script: Script,
}

impl Desk {
    fn new() -> Self {
        let (name, realms) = (format!("s{}", "0a".repeat(16)), realms());
        let session = named(&name, Kind::Browser, "");
        realms.write(|all| all.take(Fed::Session, ROOT, &name, Some(&session)));
        let script = Script::new().in_any_order();
        let script = script.expect("GET", &format!("{SESSIONS}/{name}"), 200, session);
        Self { name, realms, script }
    }

    fn reads(mut self, credential: &Value, times: usize) -> Self {
        for _ in 0..times {
            let path = format!("{CREDENTIALS}/user.alice");
            self.script = self.script.expect("GET", &path, 200, credential.clone());
        }
        self
    }

    fn writes(mut self, times: usize) -> Self {
        for _ in 0..times {
            let path = format!("{CREDENTIALS}/user.alice");
            self.script = self.script.expect("PATCH", &path, 200, json!({}));
        }
        self
    }

    /// Sends a form; the answer's status, its page, and what was written.
    async fn send(self, fields: &[(&str, &str)]) -> (StatusCode, String, Vec<Value>) {
        let provider = provider(&self.script, self.realms);
        let cookie = format!(
            "{}={}",
            crate::sign_in::session_cookie("root"),
            grant::join(&self.name, "secret")
        );
        let answer = send_to(&provider, "account", &cookie, fields).await;
        let status = answer.status();
        let page = answer.into_body().collect().await.unwrap().to_bytes();
        settled().await;
        let made = self.script.finish().into_iter();
        let written = made.filter(|call| call.method == "PATCH").map(|call| call.body);
        (
            status,
            String::from_utf8(page.to_vec()).unwrap(),
            written.collect(),
        )
    }
}

fn change<'a>(now: &'a str, new: &'a str, again: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("do", "password"),
        ("password", now),
        ("new_password", new),
        ("repeated", again),
    ]
}

#[tokio::test]
async fn whoever_knows_his_password_changes_it_and_is_out_everywhere_else() {
    let mut desk = Desk::new().reads(&credential_with(None), 3).writes(1);
    for (name, kind, browser, is_ended) in [
        ("elsewhere", Kind::Browser, "", true),
        ("program-there", Kind::Grant, "elsewhere", true),
        ("program-here", Kind::Grant, &*desk.name.clone(), false),
    ] {
        let session = named(name, kind, browser);
        desk.realms
            .write(|all| all.take(Fed::Session, ROOT, name, Some(&session)));
        if is_ended {
            let path = format!("{SESSIONS}/{name}");
            desk.script = desk.script.expect("DELETE", &path, 200, json!({}));
        }
    }
    let (status, page, written) = desk.send(&change(OLD, NEW, NEW)).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(page.contains("Your password is changed"), "{page}");
    let kept = written[0]["spec"]["passwordHash"].as_str().unwrap();
    assert!(password::is_right(kept, NEW) && !password::is_right(kept, OLD));
    assert_eq!(
        written[0]["metadata"]["resourceVersion"], "7",
        "nobody else's change is lost"
    );
}

#[tokio::test]
async fn what_is_not_right_changes_nothing() {
    for (fields, reads, told) in [
        (change("wrong", NEW, NEW), 2, "Nothing was changed"),
        (change("", NEW, NEW), 2, "Nothing was changed"),
        (change(OLD, NEW, OLD), 1, "not typed the same twice"),
        (change(OLD, "short", "short"), 1, "at least 12 characters"),
        (change(OLD, "", ""), 1, "at least 12 characters"),
    ] {
        let desk = Desk::new().reads(&credential_with(None), reads);
        let (status, page, _) = desk.send(&fields).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{told}");
        assert!(page.contains(told), "{told}: {page}");
        assert!(!page.contains(NEW), "what was typed stays out of the page");
    }
}

#[tokio::test]
async fn with_codes_a_password_alone_changes_nothing() {
    let seed = credential_with(Some(SEED));
    let (status, ..) = Desk::new().reads(&seed, 2).send(&change(OLD, NEW, NEW)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // The code counts once, which is one of the two writes.
    let shown = code(SEED);
    let fields: Vec<(&str, &str)> = change(OLD, NEW, NEW)
        .into_iter()
        .chain([("otp", shown.as_str())])
        .collect();
    let (status, page, written) = Desk::new().reads(&seed, 3).writes(2).send(&fields).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(written[0]["spec"]["totpLastStep"].is_i64() && written[1]["spec"]["passwordHash"].is_string());
}

#[tokio::test]
async fn guesses_at_the_page_of_an_account_are_counted() {
    let credential = credential_with(None);
    let mut desk = Desk::new().reads(&credential, 6);
    let session = named(&desk.name, Kind::Browser, "");
    for _ in 0..3 {
        let path = format!("{SESSIONS}/{}", desk.name);
        desk.script = desk.script.expect("GET", &path, 200, session.clone());
    }
    // The lock, and what the fourth attempt and its page read.
    desk.script = desk.script.expect("POST", SESSIONS, 201, json!({}));
    desk = desk.reads(&credential, 2);
    let provider = provider(&desk.script, Arc::clone(&desk.realms));
    let cookie = format!(
        "{}={}",
        crate::sign_in::session_cookie("root"),
        grant::join(&desk.name, "secret")
    );
    for _ in 0..3 {
        let wrong = send_to(&provider, "account", &cookie, &change("wrong", NEW, NEW)).await;
        assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    }
    let right = send_to(&provider, "account", &cookie, &change(OLD, NEW, NEW)).await;
    assert_eq!(right.status(), StatusCode::TOO_MANY_REQUESTS);
    settled().await;
    desk.script.finish();
}

#[tokio::test]
async fn codes_are_set_up_once_the_app_has_shown_one() {
    let (status, page, written) = Desk::new()
        .reads(&credential_with(None), 1)
        .send(&[("do", "enrol")])
        .await;
    assert_eq!((status, written.len()), (StatusCode::OK, 0));
    let offered = page
        .split("name=\"enrol_seed\" value=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    let seed = totp::decode(offered).unwrap();
    assert_eq!(seed.len(), totp::SEED);
    let shown = code(&seed);
    let fields = [
        ("do", "confirm"),
        ("enrol_seed", offered),
        ("password", OLD),
        ("new_otp", "000000"),
    ];
    // A wrong code keeps the seed that the app has been told.
    let (status, page, written) = Desk::new().reads(&credential_with(None), 1).send(&fields).await;
    assert_eq!((status, written.len()), (StatusCode::BAD_REQUEST, 0));
    assert!(page.contains(offered), "{page}");
    let fields = [
        ("do", "confirm"),
        ("enrol_seed", offered),
        ("password", OLD),
        ("new_otp", shown.as_str()),
    ];
    let (status, page, written) = Desk::new()
        .reads(&credential_with(None), 3)
        .writes(1)
        .send(&fields)
        .await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert_eq!(written[0]["spec"]["totpSeed"], offered);
    assert!(
        written[0]["spec"]["totpLastStep"].is_i64(),
        "the code does not count again"
    );
    // Who has codes shows one of the old ones, too.
    let (status, _, written) = Desk::new()
        .reads(&credential_with(Some(SEED)), 2)
        .send(&fields)
        .await;
    assert_eq!((status, written.len()), (StatusCode::BAD_REQUEST, 0));
}

#[tokio::test]
async fn codes_that_the_organisation_wants_stay() {
    let shown = code(SEED);
    let fields = [("do", "remove"), ("password", OLD), ("otp", shown.as_str())];
    let (status, _, written) = Desk::new()
        .reads(&credential_with(Some(SEED)), 3)
        .writes(2)
        .send(&fields)
        .await;
    assert_eq!(status, StatusCode::OK);
    assert!(written[1]["spec"]["totpSeed"].is_null());
    let desk = Desk::new().reads(&credential_with(Some(SEED)), 1);
    let wanted = json!({"spec": {"requireTOTP": true}});
    desk.realms
        .write(|all| all.take(Fed::Realm, ROOT, "realm", Some(&wanted)));
    let (status, page, _) = desk.send(&fields).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        page.contains("cannot be removed") && !page.contains("Go without"),
        "{page}"
    );
}

#[tokio::test]
async fn a_form_of_another_page_and_a_browser_that_is_not_signed_in_do_nothing() {
    let script = Script::new();
    let provider = provider(&script, realms());
    let page = async |answer: Response<Body>| {
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    let (status, text) = page(send_to(&provider, "account", "", &change(OLD, NEW, NEW)).await).await;
    assert!(
        status == StatusCode::OK && text.contains("your account"),
        "{text}"
    );
    let body = params::query(change(OLD, NEW, NEW));
    let request = Request::post(format!("{BASE}/realms/root/account"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(
            Full::new(Bytes::from(body))
                .map_err(|never| match never {})
                .boxed_unsync(),
        )
        .unwrap();
    let answer = provider.serve(request, IpAddr::from(Ipv4Addr::LOCALHOST)).await;
    assert_eq!(page(answer).await.0, StatusCode::FORBIDDEN);
    script.finish();
}

/// A realm that wants codes shows a seed to whoever knows his password and has none, and lets him in with a code of it.
#[tokio::test]
async fn who_needs_codes_sets_them_up_at_sign_in() {
    let realms = realms();
    let wanted = json!({"spec": {"requireTOTP": true}});
    realms.write(|all| all.take(Fed::Realm, ROOT, "realm", Some(&wanted)));
    let path = format!("{CREDENTIALS}/user.alice");
    let script = Script::new()
        .in_any_order()
        .expect("GET", &path, 200, credential_with(None))
        .expect("GET", &path, 200, credential_with(None))
        .expect("GET", &path, 200, credential_with(None))
        .expect("GET", &path, 200, credential_with(None))
        .expect("PATCH", &path, 200, json!({}))
        .expect("POST", SESSIONS, 201, json!({}))
        .expect("POST", SESSIONS, 201, json!({}))
        .expect(
            "PATCH",
            "/apis/fairway.dev/v1alpha1/users/alice/status",
            200,
            json!({}),
        );
    let provider = provider(&script, realms);
    let asked = "authorize?response_type=code&client_id=fairway&redirect_uri=http://127.0.0.1:9/callback&scope=openid\
        &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";
    let seed = totp::encode(SEED);
    let shown = code(SEED);
    let try_with = async |password: &str, more: &[(&str, &str)]| {
        let fields: Vec<(&str, &str)> = [("username", "alice"), ("password", password)]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        let answer = send_to(&provider, asked, "", &fields).await;
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    let (status, page) = try_with(OLD, &[]).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(
        page.contains("name=\"enrol_seed\"") && page.contains("otpauth://"),
        "{page}"
    );
    let enrolled = [("enrol_seed", seed.as_str()), ("new_otp", shown.as_str())];
    // Without the password there is no seed and no way in.
    let (status, page) = try_with("wrong", &enrolled).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(!page.contains("enrol_seed"), "{page}");
    let (status, page) = try_with(OLD, &[("enrol_seed", seed.as_str()), ("new_otp", "000000")]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(page.contains(&seed), "the app was told this one already: {page}");
    let (status, _) = try_with(OLD, &enrolled).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    settled().await;
    let made = script.finish();
    let kept = made
        .iter()
        .find(|call| call.method == "PATCH" && call.body["spec"].is_object())
        .unwrap();
    assert_eq!(kept.body["spec"]["totpSeed"], seed.as_str());
    let session = made.iter().find(|call| call.method == "POST").unwrap();
    assert_eq!(session.body["spec"]["methods"], json!(["pwd", "otp"]));
}
