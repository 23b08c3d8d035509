//! Whoever is asked and does not answer is told of.

use super::*;

#[tokio::test]
async fn whoever_does_not_answer_is_told_of() {
    let key = "GET /secret-path?token=hush | authorization: APIKEY IAMALICE";
    let bearer = "GET / | authorization: Bearer abc";
    let keys = &keys()["rules"]["authentication"];
    let introspection = |endpoint: &str, secret: &str| {
        json!({"authentication": {"them": {"oauth2Introspection": {
            "endpoint": endpoint, "credentialsRef": {"name": secret}}}}})
    };
    let metadata = |http: Value| json!({"authentication": keys, "metadata": {"them": http}});
    let jwt = json!({"jwt": {"issuerUrl": "https://issuer"}});
    let info = json!({"userInfo": {"userInfoUrl": "https://away/me"}});
    let review = json!({"kubernetesSubjectAccessReview": {"user": {"value": "nobody-answers"}}});
    for (rules, request, expected, told) in [
        (
            introspection("http://away/ask", "client"),
            bearer,
            401,
            "authentication \"them\" has no answer for some requests: nobody answers",
        ),
        (
            introspection("http://broken/ask", "client"),
            bearer,
            401,
            "authentication \"them\" has no answer for some requests: http://broken/ask answered 500",
        ),
        (
            introspection("http://broken/ask", "gone"),
            bearer,
            401,
            "authentication \"them\" has no answer for some requests: there is no Secret gone",
        ),
        (introspection("http://no/ask", "client"), bearer, 401, ""),
        (
            json!({"authentication": {"them": {"kubernetesTokenReview": {}}}}),
            "GET / | authorization: Bearer nobody-answers",
            401,
            "authentication \"them\" has no answer for some requests: the API server is away",
        ),
        (
            json!({"authentication": {"them": {"kubernetesTokenReview": {}}}}),
            bearer,
            401,
            "",
        ),
        (
            json!({"authentication": keys, "authorization": {"them": review}}),
            key,
            403,
            "authorization \"them\" has no answer for some requests: the API server is away",
        ),
        (
            metadata(json!({"http": {"url": "http://broken/{request.query}"}})),
            key,
            200,
            "metadata \"them\" has no answer for some requests: http://broken answered 500",
        ),
        (
            metadata(
                json!({"http": {"url": "http://broken/", "sharedSecretRef": {"name": "shared", "key": "token"},
                "credentials": {"queryString": {"name": "k"}}}}),
            ),
            key,
            200,
            "metadata \"them\" has no answer for some requests: http://broken answered 500",
        ),
        (
            json!({"authentication": {"tokens": jwt}, "metadata": {"them": info}}),
            "TOKEN",
            200,
            "metadata \"them\" has no answer for some requests: nobody answers",
        ),
    ] {
        let world = Arc::new(World::default());
        let issuer = Issuer::new("k");
        issuer.publish(&world);
        world.page("http://no/ask", 200, json!({"active": false}));
        for url in [
            "http://broken/ask",
            "http://broken/token=hush",
            "http://broken/?k=hush",
        ] {
            world.page(url, 500, json!("it broke"));
        }
        let token = issuer.token(json!({"sub": "a"}));
        let guard = guard(&world, Some(&json!({ "rules": rules })), None);
        let request = match request {
            "TOKEN" => sent(&format!("GET / | authorization: Bearer {token}")),
            plain => sent(plain),
        };
        assert_eq!(guard.troubles(now()), [""; 0], "{rules}");
        assert_eq!(status(&request.judge(&guard).await.0), expected, "{rules}");
        let found = guard.troubles(now());
        assert_eq!(found.join("; "), told, "{rules}");
        assert_eq!(guard.troubles(now() + 120), [""; 0], "not for ever: {rules}");
        let steps = format!("{:?}", request.explain(&guard).await.1);
        assert!(!steps.contains("k=hush"), "a shared secret is told: {steps}");
    }
}
