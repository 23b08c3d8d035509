//! Sizes and tastes that a volume of the machine knows: labels of the claim, or of what it is made from.

use fairway_admission::{Place, Request, Resource};
use serde_json::{Value, json};

use super::super::data_volume::IMAGES_NAMESPACE;
use super::super::{CLAIMS, DATA_SOURCES, DATA_VOLUMES, name, not_found, text};

const DEFAULTS: [(&str, &str, &str); 2] = [
    (
        "instancetype",
        "instancetype.kubevirt.io/default-instancetype",
        "instancetype.kubevirt.io/default-instancetype-kind",
    ),
    (
        "preference",
        "instancetype.kubevirt.io/default-preference",
        "instancetype.kubevirt.io/default-preference-kind",
    ),
];

/// Why a volume does not tell.
enum Failure {
    /// It has nothing to say: a machine may prefer to do without.
    Silent(String),
    /// Something is not there.
    Missing(String),
}

/// Puts names in the place of volumes that know them.
pub(super) fn matchers(request: &Request<'_>, vm: &mut Value) -> Result<(), String> {
    for (field, name_label, kind_label) in DEFAULTS {
        let matcher = &vm["spec"][field];
        let volume = text(matcher, "/inferFromVolume");
        if volume.is_empty() {
            continue;
        }
        let may_fail = matcher["inferFromVolumeFailurePolicy"] == "Ignore";
        let found = Search {
            request,
            vm,
            labels: (name_label, kind_label),
        }
        .of_volume(volume);
        let Some(spec) = vm["spec"].as_object_mut() else {
            continue;
        };
        match found {
            Ok((name, kind)) => {
                let mut matcher = json!({ "name": name });
                if !kind.is_empty() {
                    matcher["kind"] = kind.into();
                }
                spec.insert(field.to_owned(), matcher);
                // What was there in case the volume says nothing would clash with the size.
                if may_fail
                    && field == "instancetype"
                    && let Some(domain) = vm
                        .pointer_mut("/spec/template/spec/domain")
                        .and_then(Value::as_object_mut)
                {
                    domain.shift_remove("memory");
                }
            }
            Err(Failure::Silent(_)) if may_fail => {
                spec.shift_remove(field);
            }
            Err(Failure::Silent(why) | Failure::Missing(why)) => return Err(why),
        }
    }
    Ok(())
}

type Found = Result<(String, String), Failure>;

struct Search<'s> {
    request: &'s Request<'s>,
    vm: &'s Value,
    /// Of the name and of the kind.
    labels: (&'static str, &'static str),
}

impl Search<'_> {
    fn of_volume(&self, wanted: &str) -> Found {
        let volumes = self.vm.pointer("/spec/template/spec/volumes");
        let mut volumes = volumes.and_then(Value::as_array).into_iter().flatten();
        let Some(volume) = volumes.find(|it| it["name"] == wanted) else {
            let why = format!("unable to find volume {wanted} to infer defaults");
            return Err(Failure::Missing(why));
        };
        if volume["persistentVolumeClaim"].is_object() {
            let claim = text(volume, "/persistentVolumeClaim/claimName");
            return self.of_claim(claim, self.request.namespace);
        }
        if volume["dataVolume"].is_object() {
            return self.of_data_volume(text(volume, "/dataVolume/name"));
        }
        Err(Failure::Silent(format!(
            "unable to infer defaults from volume {wanted} as type is not supported"
        )))
    }

    fn of_labels(&self, object: &Value) -> Found {
        let labels = &object["metadata"]["labels"];
        let (name, kind) = self.labels;
        match labels[name].as_str() {
            Some(found) => Ok((
                found.to_owned(),
                labels[kind].as_str().unwrap_or_default().to_owned(),
            )),
            None => Err(Failure::Silent(format!(
                "unable to find required {name} label on the volume"
            ))),
        }
    }

    fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.request.world.get(Place::Here, resource, namespace, name)
    }

    fn of_claim(&self, name: &str, namespace: &str) -> Found {
        match self.get(CLAIMS, namespace, name) {
            Some(claim) => self.of_labels(&claim),
            None => Err(Failure::Missing(not_found(CLAIMS, name))),
        }
    }

    fn of_data_volume(&self, wanted: &str) -> Found {
        let templates = self.vm["spec"]["dataVolumeTemplates"].as_array();
        let mut templates = templates.into_iter().flatten();
        if let Some(template) = templates.find(|it| name(it) == wanted) {
            return self.of_source(&template["spec"]);
        }
        let Some(volume) = self.get(DATA_VOLUMES, self.request.namespace, wanted) else {
            // One that was cleared away left its claim.
            return self.of_claim(wanted, self.request.namespace);
        };
        self.of_labels(&volume)
            .or_else(|_| self.of_source(&volume["spec"]))
    }

    fn of_source(&self, spec: &Value) -> Found {
        if spec["source"]["pvc"].is_object() {
            let claim = &spec["source"]["pvc"];
            return self.of_claim(text(claim, "/name"), text(claim, "/namespace"));
        }
        let reference = &spec["sourceRef"];
        if !reference.is_object() {
            return Err(Failure::Silent(
                "unable to infer defaults from DataVolumeSpec as DataVolumeSource is not supported"
                    .to_owned(),
            ));
        }
        let kind = text(reference, "/kind");
        if kind != "DataSource" {
            return Err(Failure::Silent(format!(
                "unable to infer defaults from DataVolumeSourceRef as Kind {kind} is not supported"
            )));
        }
        let namespace = reference["namespace"].as_str().unwrap_or(self.request.namespace);
        self.of_data_source(text(reference, "/name"), namespace)
    }

    fn of_data_source(&self, name: &str, namespace: &str) -> Found {
        let own = self.get(DATA_SOURCES, namespace, name);
        let source = own.or_else(|| match namespace {
            IMAGES_NAMESPACE => (self.request.world).get(Place::Root, DATA_SOURCES, namespace, name),
            _ => None,
        });
        let Some(source) = source else {
            return Err(Failure::Missing(not_found(DATA_SOURCES, name)));
        };
        self.of_labels(&source).or_else(|_| {
            let claim = &source["spec"]["source"]["pvc"];
            if claim.is_object() {
                return self.of_claim(text(claim, "/name"), text(claim, "/namespace"));
            }
            Err(Failure::Silent(
                "unable to infer defaults from DataSource that doesn't provide DataVolumeSourcePVC"
                    .to_owned(),
            ))
        })
    }
}
