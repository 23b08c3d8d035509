//! Programs in browsers: which pages may call, and requests that come as a form.

use super::*;

const CLIENTS: &str = "/apis/fairway.dev/v1alpha1/oidcclients";

fn clients() -> Value {
    let client = |name: &str, public: bool, uri: &str| json!({"metadata": {"name": name}, "spec": {"public": public, "redirectURIs": [uri]}});
    json!({"items": [
        client("spa", true, "https://spa.example/cb"), client("web", false, "https://web.example/cb"),
    ]})
}

fn script(times: usize) -> Script {
    (0..times).fold(Script::new(), |script, _| {
        script.expect_prefix("GET", CLIENTS, 200, clients())
    })
}

async fn ask(provider: &Provider, method: &str, path: &str, origin: Option<&str>) -> Response<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{BASE}/realms/root/{path}"));
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let body = Full::new(Bytes::new()).map_err(|never| match never {});
    let request = request.body(body.boxed_unsync()).unwrap();
    provider.serve(request, IpAddr::from(Ipv4Addr::LOCALHOST)).await
}

fn allowed(answer: &Response<Body>) -> Option<&str> {
    let headers = answer.headers();
    assert!(headers.get("access-control-allow-credentials").is_none());
    headers
        .get("access-control-allow-origin")
        .map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn pages_of_public_clients_may_call_and_no_others() {
    const SPA: &str = "https://spa.example";
    let cases = [
        ("token", SPA, Some(SPA)),
        ("revoke", SPA, Some(SPA)),
        ("userinfo", SPA, Some(SPA)),
        // It has a secret, which no page keeps.
        ("token", "https://web.example", None),
        ("token", "https://evil.example", None),
        ("token", "null", None),
    ];
    let script = script(2 * cases.len());
    let provider = provider(&script, realms());
    for (path, origin, expected) in cases {
        let preflight = ask(&provider, "OPTIONS", path, Some(origin)).await;
        assert_eq!(preflight.status(), StatusCode::NO_CONTENT, "{path}");
        assert_eq!(allowed(&preflight), expected, "{path} {origin}");
        let methods = preflight.headers().get("access-control-allow-methods");
        assert_eq!(methods.is_some(), expected.is_some(), "{path} {origin}");
        assert_eq!(preflight.headers()["vary"], "Origin");
        let called = match path {
            "userinfo" => ask(&provider, "GET", path, Some(origin)).await,
            _ => ask(&provider, "POST", path, Some(origin)).await,
        };
        assert_eq!(called.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(allowed(&called), expected, "{path} {origin}");
    }
    script.finish();
}

#[tokio::test]
async fn pages_call_nothing_that_cookies_open_and_read_what_is_public() {
    let script = Script::new();
    let provider = provider(&script, realms());
    for path in ["authorize", "logout", "device", "account", "introspect"] {
        let answer = ask(&provider, "OPTIONS", path, Some("https://spa.example")).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(allowed(&answer), None, "{path}");
    }
    for path in ["jwks", ".well-known/openid-configuration"] {
        for method in ["OPTIONS", "GET"] {
            let answer = ask(&provider, method, path, Some("https://any.example")).await;
            assert_eq!(allowed(&answer), Some("*"), "{method} {path}");
        }
    }
    script.finish();
}

/// OpenID Connect, section 3.1.2.1: the request may come by POST. It goes on as an address; nobody is signed in by it.
#[tokio::test]
async fn a_request_may_come_as_a_form() {
    let script = Script::new();
    let provider = provider(&script, realms());
    let asked = [
        ("client_id", "fairway"),
        ("redirect_uri", "http://127.0.0.1:9/callback"),
        ("response_type", "code"),
        ("scope", "openid profile"),
        ("state", "a&b"),
    ];
    let body = params::query(asked);
    let request = Request::post(format!("{BASE}/realms/root/authorize"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", "https://app.example")
        .body(
            Full::new(Bytes::from(body))
                .map_err(|never| match never {})
                .boxed_unsync(),
        )
        .unwrap();
    let answer = provider.serve(request, IpAddr::from(Ipv4Addr::LOCALHOST)).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let location = answer.headers()["location"].to_str().unwrap();
    let (path, query) = location.split_once('?').unwrap();
    assert_eq!(path, "/realms/root/authorize");
    let found = fairway_portal_realm::Params::parse(query).unwrap();
    for (name, value) in asked {
        assert_eq!(found.text(name), value);
    }
    script.finish();
}
