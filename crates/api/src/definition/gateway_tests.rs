//! The definitions of what publishes services: valid, and with the rules that upstream's have.

use fairway_kernel_schema::crd;
use fairway_kernel_schema::structural::{Budget, Structural};

use super::*;
use crate::Kind;

fn of(kind: &str) -> Definition {
    gateway_definitions()
        .into_iter()
        .find(|it| it.kind().kind == kind)
        .unwrap()
}

#[test]
fn every_definition_is_a_valid_one() {
    for definition in gateway_definitions() {
        let mut whole = definition.crd();
        let name = whole["metadata"]["name"].clone();
        crd::set_defaults(&mut whole);
        crd::prepare_for_create(&mut whole);
        assert_eq!(crd::validate(&whole), [], "{name}");
        let schema = &whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert!(schema["description"].is_string(), "{name} is not described");
        Structural::load_shared(&definition.schema()).unwrap();
        crd::CrdSpec::parse(&definition.head()).unwrap();
    }
}

#[test]
fn what_has_no_word_is_json() {
    for definition in gateway_definitions() {
        let table = Table::parse(definition.source.facts).unwrap();
        let of_types = table.types.values().filter_map(|it| it.more);
        let fields = table.types.values().flat_map(|it| &it.fields);
        let of_fields = fields.flat_map(|it| &it.rules).filter_map(|rule| match rule {
            Rule::More(more) => Some(*more),
            _ => None,
        });
        for more in of_types.chain(of_fields) {
            assert!(read(more).is_object(), "{more}");
        }
    }
}

#[test]
fn names_are_those_of_the_definitions() {
    for Kind {
        group,
        version,
        kind,
        plural,
    } in [
        gateway::GATEWAY_CLASS,
        gateway::GATEWAY,
        gateway::HTTP_ROUTE,
        gateway::GRPC_ROUTE,
        gateway::TLS_ROUTE,
        gateway::TCP_ROUTE,
        gateway::REFERENCE_GRANT,
        gateway::BACKEND_TLS_POLICY,
        gateway::ROUTE,
        gateway::AUTH_POLICY,
        gateway::RATE_LIMIT_POLICY,
        gateway::TLS_POLICY,
        gateway::DNS_POLICY,
        gateway::PLAN_POLICY,
        gateway::API_PRODUCT,
        gateway::API_KEY,
        gateway::API_KEY_REQUEST,
        gateway::API_KEY_APPROVAL,
    ] {
        let definition = of(kind);
        let facts = definition.kind();
        assert_eq!(
            (definition.group(), facts.version, facts.plural),
            (group, version, plural)
        );
    }
}

#[test]
fn rules_see_through_what_is_written_once() {
    let structural = Structural::load_shared(&of("HTTPRoute").schema()).unwrap();
    let verdict = |rule: Value| -> Vec<String> {
        let mut object = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "a"},
            "spec": {"parentRefs": [{"name": "g"}], "rules": [rule]},
        });
        structural.default(&mut object);
        let errors = structural.validate(&object, None, &mut Budget::default());
        errors.iter().map(ToString::to_string).collect()
    };
    let backend = json!({"name": "b", "port": 80});
    let redirect = json!({"type": "RequestRedirect", "requestRedirect": {"statusCode": 302}});
    assert_eq!(verdict(json!({"backendRefs": [backend]})), [""; 0]);
    assert_eq!(verdict(json!({"filters": [redirect]})), [""; 0]);
    let both = verdict(json!({"backendRefs": [backend], "filters": [redirect]}));
    assert!(
        both.len() == 1
            && both[0].contains("RequestRedirect filter must not be used together with backendRefs"),
        "{both:?}"
    );
    let no_port = verdict(json!({"backendRefs": [{"name": "b"}]}));
    assert!(
        no_port.len() == 1 && no_port[0].contains("Must have port for Service reference"),
        "{no_port:?}"
    );
}

#[test]
fn upstreams_defaults_and_limits_are_there() {
    let schema = of("HTTPRoute").crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let rules = &schema["properties"]["spec"]["properties"]["rules"];
    assert_eq!(rules["maxItems"], 16);
    assert_eq!(
        rules["items"]["properties"]["matches"]["default"][0]["path"]["value"],
        "/"
    );
    assert_eq!(
        of("HTTPRoute").crd()["metadata"]["annotations"]["gateway.networking.k8s.io/channel"],
        "experimental"
    );
    let mut gateway = json!({"spec": {"gatewayClassName": "fairway", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]}});
    let structural = Structural::load_shared(&of("Gateway").schema()).unwrap();
    structural.default(&mut gateway);
    assert_eq!(
        gateway["spec"]["listeners"][0]["allowedRoutes"]["namespaces"]["from"],
        "Same"
    );
}

#[test]
fn what_is_kept_without_being_known_is_told() {
    let policy = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "targetRef": {"group": "g", "kind": "k", "name": "n"}, "rulez": {},
        "rules": {"authentication": {"a": {"anything": 1}}, "authorisation": {}},
        "when": [{"predicate": "true", "predicat": "x"}],
    }});
    assert_eq!(
        of("AuthPolicy").unlisted(&policy),
        ["spec.rulez", "spec.rules.authorisation", "spec.when[0].predicat"]
    );
}
