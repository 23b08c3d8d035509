//! Realms that know nothing of each other, and keys that come and go while tokens live.

use fairway_controller::ClientFactory;
use fairway_portal_realm::Session;
use fairway_portal_realm::claims::{ACCESS, API, Subject, access};
use fairway_portal_realm::keys::{self, PUBLISHED, ROTATION};

use super::*;
use crate::objects::Objects;
use crate::signer::{Signer, Signers, make};

const ACME: &str = "aaaaaaaaaaaaaaaa";
const OTHER: &str = "bbbbbbbbbbbbbbbb";

/// Two organisations, each with an alice.
fn two_realms() -> Arc<Realms> {
    let realms = Arc::<Realms>::default();
    realms.write(|all| {
        for (name, id, uid) in [("acme", ACME, "u-acme"), ("other", OTHER, "u-other")] {
            let workspace =
                json!({"spec": {"type": {"name": "organization", "path": "root"}, "cluster": id}});
            all.take_workspace(ROOT, name, Some(&workspace));
            let alice = json!({"metadata": {"uid": uid}, "spec": {}});
            all.take(Fed::User, id, "alice", Some(&alice));
        }
        let group = json!({"spec": {"members": ["alice"]}});
        all.take(Fed::Group, ACME, "devs", Some(&group));
    });
    realms
}

#[tokio::test]
async fn a_client_of_one_realm_is_unknown_in_another() {
    let at = |id: &str| format!("/clusters/{id}/apis/fairway.dev/v1alpha1/oidcclients/shop");
    let shop = json!({"metadata": {"name": "shop"}, "spec": {"public": true, "redirectURIs": ["https://shop.example/back"]}});
    let script = Script::new()
        .expect("GET", &at(ACME), 200, shop)
        .refuse("GET", &at(OTHER), 404, "NotFound")
        .refuse("GET", &at(OTHER), 404, "NotFound");
    let service = script.clone();
    let clients = ClientFactory::across_workspaces(move |_| service.service()).clients("test");
    let provider = Provider::new(Options {
        base: BASE.to_owned(),
        portal: "https://portal.example".to_owned(),
        realms: two_realms(),
        entries: clients.clone(),
        clients,
        allowed_hosts: AllowedHosts::default(),
    })
    .unwrap();
    let get = async |realm: &str| {
        let asked = params::query([
            ("response_type", "code"),
            ("client_id", "shop"),
            ("redirect_uri", "https://shop.example/back"),
            ("scope", "openid"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
        ]);
        let body = Full::new(Bytes::new()).map_err(|never| match never {});
        let request = Request::get(format!("{BASE}/realms/{realm}/authorize?{asked}"))
            .body(body.boxed_unsync())
            .unwrap();
        provider
            .serve(request, IpAddr::from(Ipv4Addr::LOCALHOST))
            .await
            .status()
    };
    assert_eq!(get("acme").await, StatusCode::OK, "its own realm asks who it is");
    assert_eq!(get("other").await, StatusCode::BAD_REQUEST);
    // Nor does it get anything by its id alone.
    let body = params::query([("client_id", "shop"), ("grant_type", "refresh_token")]);
    let request = Request::post(format!("{BASE}/realms/other/token"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(
            Full::new(Bytes::from(body))
                .map_err(|never| match never {})
                .boxed_unsync(),
        )
        .unwrap();
    let answer = provider.serve(request, IpAddr::from(Ipv4Addr::LOCALHOST)).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    script.finish();
}

#[test]
fn a_group_of_one_realm_is_unknown_in_another() {
    let realms = two_realms();
    let groups = |realm: &str| realms.read(|all| all.member(realm, "alice").unwrap().usergroups());
    assert_eq!(groups("acme"), ["acme/devs", "acme/everyone"]);
    assert_eq!(groups("other"), ["other/everyone"]);
}

/// Makes a key as a running provider does, and what its Credential is then.
async fn rotated(before: Option<&Value>, at: i64) -> Value {
    let path = format!("{CREDENTIALS}/realm");
    let script = match before {
        None => Script::new().expect("POST", CREDENTIALS, 201, json!({})),
        Some(_) => Script::new().expect("PATCH", &path, 200, json!({})),
    };
    make(&Objects::new(script.clients()), ROOT, before, at)
        .await
        .unwrap();
    let mut made = script.finish().remove(0).body;
    made["metadata"]["name"] = json!("realm");
    made
}

async fn signer(signers: &Signers, realms: &Realms, credential: &Value, at: i64) -> Arc<Signer> {
    realms.take(Fed::Credential, ROOT, "realm", Some(credential));
    let script = Script::new().expect("GET", &format!("{CREDENTIALS}/realm"), 200, credential.clone());
    let objects = Objects::new(script.clients());
    let signer = signers.of(realms, &objects, ROOT, at).await.unwrap();
    script.finish();
    signer
}

fn token(realms: &Realms, signer: &Signer, at: i64, seconds: i64) -> String {
    let member = realms.read(|all| all.member(ROOT, "alice").unwrap());
    let issuer = realms.issuer(ROOT);
    let said = Subject {
        issuer: &issuer,
        member: &member,
        session_name: "s1",
        session: &Session {
            client: "fairway".to_owned(),
            ..Session::default()
        },
        api_access: true,
    };
    signer.sign(ACCESS, &access(said, "j", at, seconds)).unwrap()
}

#[tokio::test]
async fn a_token_of_an_old_key_passes_until_it_ends() {
    let realms = realms();
    realms.serve_at(BASE);
    let session = json!({"spec": Session {
        user: "alice".to_owned(), expires_at: time::write(now() + 10 * ROTATION), ..Session::default()
    }});
    realms.take(Fed::Session, ROOT, "s1", Some(&session));
    let signers = Signers::default();
    let begun = now();
    let first = rotated(None, begun).await;
    let old = signer(&signers, &realms, &first, begun).await;

    // The last moment of the key, and the longest that a token lives.
    let last = begun + ROTATION - 1;
    let (short, long) = (
        token(&realms, &old, last, 300),
        token(&realms, &old, last, PUBLISHED - 1),
    );
    let passes = |token: &str, at: i64| realms.check(token, ROOT, API, at);
    assert!(passes(&short, last).is_ok() && passes(&long, last).is_ok());

    // Then another key takes its place, and nobody is asked to begin anew.
    let turn = begun + ROTATION;
    let second = rotated(Some(&first), turn).await;
    let new = signer(&signers, &realms, &second, turn).await;
    // Whoever verifies by the published keys finds both for as long as tokens of the old one live.
    let of = |credential: &Value| keys::read(credential).remove(0).public.id;
    let verifying = |at: i64| {
        let ids = |all: &[keys::KeyEntry]| {
            keys::verifying(all, at)
                .map(|it| it.id.clone())
                .collect::<Vec<_>>()
        };
        realms.read(|all| ids(all.keys(ROOT)))
    };
    assert_eq!(verifying(turn), [of(&second), of(&first)]);
    assert_eq!(verifying(turn + PUBLISHED), [of(&second)]);
    let silent = Script::new();
    let request = Request::get(format!("{BASE}/realms/root/jwks"));
    let body = Full::new(Bytes::new()).map_err(|never| match never {});
    let request = request.body(body.boxed_unsync()).unwrap();
    let provider = provider(&silent, Arc::clone(&realms));
    let answer = provider.serve(request, IpAddr::from(Ipv4Addr::LOCALHOST)).await;
    let answer = answer.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["keys"][0]["kid"], of(&second));
    assert_eq!(answer["keys"][1]["kid"], of(&first));
    assert_ne!(
        token(&realms, &old, turn, 60).split('.').next(),
        token(&realms, &new, turn, 60).split('.').next(),
        "the new key signs"
    );
    assert_eq!(old.refresh_key, new.refresh_key, "refresh tokens go on");
    let fresh = token(&realms, &new, turn, 300);
    assert!(passes(&fresh, turn).is_ok());
    assert!(passes(&short, turn).is_ok() && passes(&long, turn).is_ok());
    assert!(passes(&short, last + 299).is_ok());
    assert!(passes(&short, last + 400).is_err(), "its own time is over");
    assert!(passes(&long, last + PUBLISHED - 2).is_ok());
    // A key that nobody publishes any more stands for nothing, whatever a token says of its time.
    let forged = token(&realms, &old, turn, 10 * PUBLISHED);
    assert!(passes(&forged, turn + PUBLISHED - 1).is_ok());
    let refused = passes(&forged, turn + PUBLISHED).unwrap_err();
    assert!(refused.contains("key that the realm does not have"), "{refused}");
    assert!(
        passes(&token(&realms, &new, turn + PUBLISHED, 60), turn + PUBLISHED).is_ok(),
        "the new one goes on"
    );
}
